"""Who may call what: every row of the public application."""

import itertools
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.http.openapi import POLICY
from gatewayd.http.routes import BASES, RouteAccess
from tests.fakes.daemons.role_site import AUTHS, GROUPS, SCIM_TOKEN, Site, opened_roles
from tests.fakes.http.multipart_forms import FORM as MULTIPART
from tests.fakes.http.samples import MEDIA_FORMS, SAMPLES, STORED_RESPONSES, media_form
from tests.fakes.http.samples_batches import BATCH_ROWS
from tests.fakes.http.samples_chats import (
    CHATS,
    EVENTS,
    LISTENING,
    LIVE_SAMPLES,
    OWN_SAMPLES,
    PERMISSIONS,
    SERVERS,
)
from tests.fakes.http.samples_documents import BYTES, DOCUMENT_SAMPLES, KNOWLEDGE, RETRIEVAL, UPLOAD, upload
from tests.fakes.http.samples_models import MODEL_PATHS
from tests.fakes.http.samples_scim import SCIM_SAMPLES


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    collections = {"USER_PERMISSIONS_WORKSPACE_KNOWLEDGE_ACCESS": "true"}
    with opened_roles(tmp_path_factory.mktemp("s"), **collections, **PERMISSIONS) as opened:
        yield opened


FORM = "application/x-www-form-urlencoded"
ALL_SAMPLES = {**SAMPLES, **DOCUMENT_SAMPLES, **LIVE_SAMPLES}


WAYS = {
    "bearer": {"Authorization": f"Bearer {SCIM_TOKEN}"},
    "x-api-key": {"x-api-key": SCIM_TOKEN},
    "cookie": {"Cookie": f"token={SCIM_TOKEN}"},
}
"""The SCIM token in each place where a credential may stand."""

MEDIA_ROWS = {("POST", base + path): path for base in BASES for path in MEDIA_FORMS}
"""Rows whose body is a form that goes on to a provider."""

# Rows whose success depends on more than who asks: tested in test_credentials.py and below, by name.
OWN_TESTS = {
    ("POST", f"{AUTHS}/update/password"),
    ("DELETE", f"{AUTHS}/sessions/{{id}}"),
    ("DELETE", f"{AUTHS}/identities/{{provider}}"),
    ("POST", f"{AUTHS}/confirm"),
    ("POST", f"{AUTHS}/api_key"),
    ("GET", f"{AUTHS}/api_key"),
    ("DELETE", f"{AUTHS}/api_key"),
    ("POST", f"{AUTHS}/api_keys"),
    ("DELETE", f"{AUTHS}/api_keys/{{id}}"),
    ("DELETE", "/api/v1/users/{id}/api_keys/{key_id}"),
    ("POST", "/ollama/api/blobs/{digest}"),
    ("HEAD", "/ollama/api/blobs/{digest}"),
    UPLOAD,
    *MEDIA_ROWS,
    *BATCH_ROWS,
    *BYTES,
    *STORED_RESPONSES,
    *OWN_SAMPLES,
    *LISTENING,
}


# A provider counts what it would get unchanged: who has the right to its model may ask it.
COUNTS = {row for row in SAMPLES if row[1].endswith("/count_tokens")}

# What administrators send by POST and nothing is told of, beside what is asked of models (MODEL_PATHS).
QUESTIONS = {
    *COUNTS,
    ("POST", "/api/chat/completed"),
    ("POST", "/api/chat/actions/{action_id}"),
    ("POST", f"{GROUPS}/id/{{id}}/users"),
    ("POST", f"{KNOWLEDGE}/{{id}}/sync/diff"),
    ("POST", f"{RETRIEVAL}/query/doc"),
    ("POST", f"{RETRIEVAL}/query/collection"),
    ("POST", f"{RETRIEVAL}/query/explain"),
    ("POST", f"{CHATS}/tags"),
    ("POST", f"{CHATS}/{{chat_id}}/messages/{{message_id}}/event"),
    ("POST", f"{EVENTS}/ticket"),
    ("POST", f"{SERVERS}/verify"),
    ("POST", "/openai/verify"),
    ("POST", "/ollama/verify"),
}

NUMBERS = itertools.count()

Rows = dict[tuple[str, str], RouteAccess]
"""The policy of each row."""


def is_change(row: tuple[str, str]) -> bool:
    """Tell whether the audit has a line of what an administrator does there."""
    decided = MODEL_PATHS.get(row)
    asks = row in QUESTIONS or (decided is not None and not decided.is_administration)
    return row[0] not in {"GET", "HEAD"} and not asks


def audited(site: Site, row: tuple[str, str], path: str, body: Any) -> tuple[int, int]:
    """Send a request as an administrator; return its status and how many lines the audit has of it."""
    name, printed = f"audited-{next(NUMBERS)}-end", len(site.daemon.log)
    status = site.call(row[0], path, body, site.admin, X_Request_Id=name)[0]
    deadline = time.monotonic() + 10
    while not (lines := _lines(site, name, printed)) and is_change(row) and time.monotonic() < deadline:
        time.sleep(0.01)
    return status, len(lines)


def _lines(site: Site, name: str, printed: int) -> list[str]:
    """Return the lines of the audit about a request that came when so many lines were printed."""
    return [line for line in site.daemon.log[printed:] if name in line and "gatewayd.audit" in line]


def asked(site: Site) -> list[str]:
    """Return what the provider was asked beside what is asked by itself: its lists of models."""
    return [
        f"{request.method} {request.path}"
        for request in site.provider.fake.requests
        if request.path not in {"/v1/models", "/api/tags", "/api/ps", "/api/version"}
    ]


@pytest.fixture(scope="module")
def rows(site: Site) -> Rows:
    """Return every documented row with its policy."""
    policies = {sentence: access for access, sentence in POLICY.items()}
    document = site.call("GET", "/openapi.json")[1]
    return {
        (method.upper(), path): policies[operation["description"]]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


PAGE = {
    ("GET", path)
    for path in (
        *("/c/{id}", "/s/{id}", "/auth", "/overview", "/documents", "/documents/{rest}", "/settings"),
        *("/settings/{rest}", "/admin", "/admin/{rest}", "/static/{digest}/{name}", "/frame.html"),
        *("/picture.html", "/offline.html", "/service-worker.js", "/manifest.webmanifest"),
    )
}
"""The page asks the API for everything that is not the same for all readers."""


def test_each_row_has_a_policy_and_a_sample(rows: Rows) -> None:
    found = rows
    guarded = {
        row for row, access in found.items() if access not in {RouteAccess.PUBLIC, RouteAccess.OPTIONAL}
    }
    assert guarded == ALL_SAMPLES.keys() | OWN_TESTS | SCIM_SAMPLES.keys()
    assert {row for row, access in found.items() if access is RouteAccess.SCIM} == SCIM_SAMPLES.keys()
    open_rows = {row for row, access in found.items() if access in {RouteAccess.PUBLIC, RouteAccess.OPTIONAL}}
    assert open_rows == {
        ("GET", "/health"),
        ("GET", "/health/db"),
        ("GET", "/livez"),
        ("GET", "/readyz"),
        # Off unless a setting says who may read it; `http.public.metrics` checks the token.
        ("GET", "/metrics"),
        ("GET", "/ready"),
        ("GET", "/api/version"),
        ("GET", "/api"),
        ("GET", "/"),
        ("GET", "/ollama"),
        ("GET", "/api/config"),
        *PAGE,
        # It asks for a token in its own protocol.
        ("GET", "/ws/socket.io"),
        ("POST", f"{AUTHS}/signin"),
        ("POST", f"{AUTHS}/ldap"),
        ("POST", f"{AUTHS}/signup"),
        ("POST", f"{AUTHS}/invitations/accept"),
        ("POST", f"{AUTHS}/invitations/show"),
        ("POST", f"{AUTHS}/link"),
        ("POST", f"{AUTHS}/signout"),
        ("GET", f"{AUTHS}/signout"),
        ("GET", "/oauth/{provider}/login"),
        ("GET", "/oauth/{provider}/callback"),
        ("GET", "/oauth/{provider}/login/callback"),
        ("POST", "/oauth/backchannel-logout"),
        ("POST", f"{AUTHS}/oauth/{{provider}}/token/exchange"),
        ("POST", "/api/v1/oauth/{provider}/token/exchange"),
    }


@pytest.mark.parametrize("row", [pytest.param(row, id=" ".join(row)) for row in ALL_SAMPLES])
def test_row_lets_in_whom_it_should(site: Site, rows: Rows, row: tuple[str, str]) -> None:
    method, access = row[0], rows[row]
    path, body = ALL_SAMPLES[row](site)

    def status(token: str | None) -> int:
        """Ask for the same thing until somebody gets it: it outlives each refusal."""
        nonlocal path, body
        told = site.call(method, path, body, token)[0]
        if told == 200:
            path, body = ALL_SAMPLES[row](site)
        return told

    site.provider.script()
    assert status(None) == 401
    assert status("sk-" + "0" * 64) == 401
    assert status("eyJhbGciOiJub25lIn0.e30.") == 401
    assert status(site.pending) == (200 if access is RouteAccess.ACCOUNT else 403)
    assert access is RouteAccess.ACCOUNT or asked(site) == []
    assert status(site.user) == (403 if access is RouteAccess.ADMIN else 200)
    assert audited(site, row, path, body) == (200, int(is_change(row)))
    # A new path that reaches a provider fails here until tests.fakes.http.samples_models says what holds.
    assert bool(asked(site)) == (row in MODEL_PATHS or row in COUNTS)


@pytest.fixture(scope="module")
def stranger(site: Site) -> str:
    """Return the session of a user who owns nothing."""
    return site.add(Role.USER)[1]


@pytest.mark.parametrize("row", [pytest.param(row, id=" ".join(row)) for row in OWN_SAMPLES])
def test_row_lets_in_the_owner_and_nobody_else(site: Site, stranger: str, row: tuple[str, str]) -> None:
    path, body = OWN_SAMPLES[row](site, site.user)
    for token, expected in ((None, 401), ("sk-" + "0" * 64, 401), (site.pending, 403), (stranger, 404)):
        assert site.call(row[0], path, body, token)[0] == expected
    assert site.call(row[0], path, body, site.user)[0] == 200
    path, body = OWN_SAMPLES[row](site, site.admin)
    assert site.call(row[0], path, body, site.user)[0] == 404
    assert audited(site, row, path, body) == (200, int(is_change(row)))


@pytest.mark.parametrize(("method", "path"), sorted(LISTENING))
def test_listening_is_for_verified_accounts(site: Site, method: str, path: str) -> None:
    path, body = path.replace("{id}", "none"), b'{"result": 1}' if method == "POST" else None
    for token, expected in ((None, 401), ("sk-" + "0" * 64, 401), (site.pending, 403)):
        assert site.send(method, path, body, token).status == expected


@pytest.mark.parametrize("way", WAYS)
def test_the_scim_token_opens_nothing_but_scim(site: Site, rows: Rows, way: str) -> None:
    for method, path in ALL_SAMPLES.keys() | OWN_TESTS:
        place = path.replace("{id}", site.ids["user"]).replace("{index}", "0").replace("{digest}", "sha256:0")
        place = re.sub(r"\{\w+\}", "0", place)
        body = None if method in {"GET", "HEAD"} else b"{}"
        reply = site.send(method, place, body, headers=WAYS[way])
        assert reply.status == 401, (method, path, rows[method, path])


def test_no_row_lets_a_page_of_another_origin_write(site: Site, rows: Rows) -> None:
    guarded = {("GET", "/ws/socket.io"), ("GET", f"{AUTHS}/signout")}
    writes = {(method, path) for method, path in rows if method not in {"GET", "HEAD"}}
    assert len(writes) > 100
    for method, path in writes | guarded:
        place = re.sub(r"\{\w+\}", "0", path)
        for token in (None, site.admin):
            reply = site.send(method, place, b"{}", token, {"Origin": "https://evil.example"})
            assert reply.status == 403, (method, path)
            assert b"evil.example" in reply.body, (method, path)


def test_no_row_reads_a_body_that_a_form_can_send(site: Site, rows: Rows) -> None:
    passed_over = {("POST", "/ollama/api/blobs/{digest}")}
    for (method, path), access in rows.items():
        if method in {"GET", "HEAD"} or (access is RouteAccess.SCIM and method == "DELETE"):
            continue
        place = re.sub(r"\{\w+\}", "0", path)
        token = SCIM_TOKEN if access is RouteAccess.SCIM else site.admin
        for kind in ("text/plain", FORM):
            reply = site.send(method, place, b"{}", token, {"Content-Type": kind})
            # A logout token is signed by the provider, and its specification wants a form.
            is_logout = path == "/oauth/backchannel-logout" and kind == FORM
            is_read = is_logout or (method, path) in passed_over
            assert (reply.status == 415) is not is_read, (method, path)


@pytest.mark.parametrize("method", ["POST", "HEAD"])
def test_blobs_are_refused_to_those_who_may_ask(site: Site, method: str) -> None:
    path = f"/ollama/api/blobs/sha256:{'0' * 64}"
    tokens = (None, site.pending, site.user, site.admin)
    assert [site.send(method, path, None, token).status for token in tokens] == [401, 403, 403, 404]


def test_a_file_is_taken_from_whom_it_should(site: Site) -> None:
    tokens = (None, "sk-wrong", site.pending, site.user, site.admin)
    assert [upload(site, token).status for token in tokens] == [401, 401, 403, 200, 200]


@pytest.mark.parametrize("path", MEDIA_FORMS)
def test_a_form_goes_on_for_whom_it_should(site: Site, path: str) -> None:
    site.provider.script()
    body, headers = media_form(path), {"Content-Type": MULTIPART}
    tokens = (None, "sk-wrong", site.pending, site.user, site.admin)
    places = [base + path for base in BASES[: len(tokens)]]
    replies = [
        site.send("POST", place, body, token, headers) for place, token in zip(places, tokens, strict=True)
    ]
    assert [reply.status for reply in replies] == [401, 401, 403, 200, 200]
    assert len(asked(site)) == 2


@pytest.mark.parametrize("row", [pytest.param(row, id=" ".join(row)) for row in BYTES])
def test_bytes_are_for_those_who_may_read_the_file(site: Site, stranger: str, row: tuple[str, str]) -> None:
    path = BYTES[row](site)[0]
    tokens = (None, "sk-wrong", site.pending, stranger, site.user, site.admin)
    statuses = [site.send("GET", path, None, token).status for token in tokens]
    assert statuses == [401, 401, 403, 404, 200, 200]


@pytest.mark.parametrize("path", ["/api", "/", "/ollama"])
def test_probes_need_no_credential(site: Site, path: str) -> None:
    for token in (None, "sk-wrong", site.pending):
        assert site.send("HEAD", path, None, token).status == 200
