"""What `/openapi.json` says of replies is true of those that the gateway gives."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from openapi_spec_validator import validate

from gatewayd.accounts.records import Role
from tests.fakes.daemons.role_site import AUTHS, PASSWORD, SCIM_TOKEN, Site, opened_roles
from tests.fakes.http.declared_replies import closed, faults_of, validators_of
from tests.fakes.http.raw_http import Reply
from tests.fakes.http.samples import SAMPLES, Row
from tests.fakes.http.samples_chats import LIVE_SAMPLES, OWN_SAMPLES, PERMISSIONS
from tests.fakes.http.samples_documents import BYTES, DOCUMENT_SAMPLES, UPLOAD, upload
from tests.fakes.http.samples_scim import SCIM_SAMPLES

OPEN = (
    *("/health", "/health/db", "/livez", "/readyz", "/ready"),
    *("/api", "/", "/ollama", "/api/version", "/api/config"),
)
FORM = {"email": "root@example.org", "password": PASSWORD}
BODILESS = {"101", "204"}
OF_OTHERS = {"application/x-ndjson", "application/manifest+json"}
"""Media types without a schema: lines of JSON; the manifest of the page (Web Application Manifest, W3C)."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    collections = {"USER_PERMISSIONS_WORKSPACE_KNOWLEDGE_ACCESS": "true"}
    with opened_roles(tmp_path_factory.mktemp("s"), **collections, **PERMISSIONS) as opened:
        opened.provider.script()
        yield opened


@pytest.fixture(scope="module")
def document(site: Site) -> Any:
    described = site.call("GET", "/openapi.json")[1]
    validate(described)
    return closed(described)


def test_every_success_has_a_schema_or_a_media_type(document: Any) -> None:
    bare = [
        (method, path, status)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for status, response in operation["responses"].items()
        if status not in BODILESS and not response.get("content")
    ]
    assert len(document["paths"]) > 100
    assert bare == []
    plain = [
        (method, path, status)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for status, response in operation["responses"].items()
        for media_type, content in response.get("content", {}).items()
        if media_type.endswith("json") and media_type not in OF_OTHERS and "schema" not in content
    ]
    assert plain == []


def check(document: Any, row: Row, reply: Reply) -> None:
    """Compare a reply with what its row declares; it is a success."""
    status = str(reply.status)
    response = document["paths"][row[1]][row[0].lower()]["responses"].get(status)
    assert response is not None, (row, status, reply.body)
    if status in BODILESS:
        assert reply.body == b""
        return
    media_type = reply.headers.get("content-type", "application/octet-stream").partition(";")[0]
    validators = validators_of(response["content"], document["components"])
    assert faults_of(validators, media_type, reply.body) == [], row


def ask(site: Site, row: Row, path: str, body: Any, token: str) -> Reply:
    kind = "application/scim+json" if row in SCIM_SAMPLES else "application/json"
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    return site.send(row[0], path, data, token, {} if data is None else {"Content-Type": kind})


SHARED: Mapping[Row, Any] = {**SAMPLES, **DOCUMENT_SAMPLES, **LIVE_SAMPLES}


def test_replies_to_users_and_administrators(site: Site, document: Any) -> None:
    for row, sample in SHARED.items():
        path, body = sample(site)
        reply = ask(site, row, path, body, site.user)
        if reply.status != 403:
            check(document, row, reply)
        path, body = sample(site)
        check(document, row, ask(site, row, path, body, site.admin))


def test_replies_to_owners(site: Site, document: Any) -> None:
    for row, sample in OWN_SAMPLES.items():
        path, body = sample(site, site.user)
        check(document, row, ask(site, row, path, body, site.user))


def test_replies_to_provisioning(site: Site, document: Any) -> None:
    for row, sample in SCIM_SAMPLES.items():
        path, body, status = sample(site)
        if status < 300:
            check(document, row, ask(site, row, path, body, SCIM_TOKEN))


def test_replies_to_strangers(site: Site, document: Any) -> None:
    for path in OPEN:
        check(document, ("GET", path), site.send("GET", path))
        check(document, ("GET", path), site.send("GET", path, token=site.user))


def test_sessions_and_keys(site: Site, document: Any) -> None:
    def post(path: str, form: Any, token: str | None = None, method: str = "POST") -> Any:
        data = None if form is None else json.dumps(form).encode()
        headers = {} if data is None else {"Content-Type": "application/json"}
        place = path.replace("{id}", made["id"]) if "{id}" in path else path
        reply = site.send(method, place, data, token, headers)
        check(document, (method, path), reply)
        return json.loads(reply.body)

    made: Any = {}
    site.configure(ENABLE_SIGNUP=True, ENABLE_API_KEYS=True)
    post(f"{AUTHS}/signin", FORM)
    post(f"{AUTHS}/signup", {"name": "N", "email": "new@example.org", "password": PASSWORD})
    user_id, token = site.add(Role.USER)
    site.add_group(user_id, features={"api_keys": True})
    made = post(f"{AUTHS}/api_keys", {"name": "k"}, token)
    post(f"{AUTHS}/api_keys", None, token, "GET")
    post(f"{AUTHS}/api_keys/{{id}}", None, token, "DELETE")
    post(f"{AUTHS}/api_key", {}, token)
    post(f"{AUTHS}/api_key", None, token, "DELETE")
    post(f"{AUTHS}/update/password", {"password": PASSWORD, "new_password": "another horse"}, token)
    for method in ("POST", "GET"):
        _, token = site.add(Role.USER)
        post(f"{AUTHS}/signout", None, token, method)


def test_files_and_their_bytes(site: Site, document: Any) -> None:
    check(document, UPLOAD, upload(site, site.user))
    for row, sample in BYTES.items():
        check(document, row, site.send("GET", sample(site)[0], None, site.user))
