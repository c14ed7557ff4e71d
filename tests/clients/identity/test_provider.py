"""Sign-in by a certified provider, on each database: sign-up, SCIM in both orders, the end of a session."""

import json
import re
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest

from tests.clients.identity.provider import SECRET, CertifiedProvider, Person, running_provider
from tests.clients.node import NodeMissingError
from tests.clients.scim.gateway import ADMINISTRATOR, Gateway, opened_gateway
from tests.conftest import missing
from tests.fakes.http.public_app import bearer
from tests.fakes.storage.postgres import Postgres

pytestmark = [pytest.mark.real("node"), pytest.mark.process]


# A JSON Web Token in its compact form: header and claims are base64url of JSON objects (RFC 7519, section 3).
# Three letters alone also stand in sealed texts by chance.
JSON_WEB_TOKEN = re.compile(rb"eyJ[\w-]+\.eyJ[\w-]+\.")

PIPE = """
import json

class Pipe:
    def pipe(self, body, __oauth_token__):
        return json.dumps(__oauth_token__)
"""


def claims(name: str) -> dict[str, object]:
    return {
        "email": f"{name}@example.org",
        "email_verified": True,
        "name": name.capitalize(),
        "oid": f"oid-{name}",
        "groups": ["Team", "Everybody"],
        "roles": ["user"],
    }


@pytest.fixture(scope="module")
def provider() -> Iterator[CertifiedProvider]:
    try:
        with running_provider() as made:
            yield made
    except NodeMissingError as error:
        missing("node", str(error))


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, provider: CertifiedProvider
) -> Iterator[Gateway]:
    """Return a gateway that knows the provider, which has five people."""
    settings = {
        "OPENID_PROVIDER_URL": provider.url,
        "OAUTH_CLIENT_ID": "gateway",
        "OAUTH_CLIENT_SECRET": SECRET,
        "OAUTH_PROVISIONING_CLAIM": "oid",
        "ENABLE_OAUTH_SIGNUP": "true",
        "ENABLE_OAUTH_ROLE_MANAGEMENT": "true",
        "ENABLE_OAUTH_GROUP_MANAGEMENT": "true",
        "ENABLE_OAUTH_GROUP_CREATION": "true",
        "OAUTH_BLOCKED_GROUPS": "Everybody",
        "OAUTH_SCOPES": "openid email profile offline_access",
        "OAUTH_AUTHORIZE_PARAMS": '{"prompt": "consent"}',
        "SCIM_AUTH_PROVIDER": "oidc",
    }
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        settings["DATABASE_URL"] = postgres.migrated_database()
    folder = tmp_path_factory.mktemp("p")
    (folder / "shows.py").write_text(PIPE)
    settings |= {"PLUGINS_DIR": str(folder), "BYPASS_MODEL_ACCESS_CONTROL": "true"}
    with opened_gateway(tmp_path_factory.mktemp("g"), **settings) as made:
        people = {name: claims(name) for name in ("ann", "bob", "cy", "dee")}
        eve = {**claims("eve"), "email": "root@example.org", "oid": "oid-eve"}
        provider.serve(made.url, {**people, "eve": eve})
        yield made


def session_of(gateway: Gateway, person: Person) -> dict[str, str]:
    return bearer(person.token(gateway.url))


def sign_in(gateway: Gateway, name: str) -> tuple[Person, dict[str, object]]:
    """Sign a person in; return them and their account."""
    person = Person(name)
    assert person.visit(f"{gateway.url}/oauth/oidc/login", gateway.url) == "/"
    status, account = gateway.daemon.call("GET", "/api/v1/auths/", headers=session_of(gateway, person))
    assert status == 200
    return person, account


def test_a_person_has_one_account_whichever_came_first(gateway: Gateway) -> None:
    _, ann = sign_in(gateway, "ann")
    assert (ann["email"], ann["name"], ann["role"]) == ("ann@example.org", "Ann", "user")
    found = gateway.ask("GET", "/Users?filter=externalId%20eq%20%22oid-ann%22").json
    assert [each["id"] for each in found["Resources"]] == [ann["id"]]
    sent = {
        "userName": "ann@corp.example",
        "externalId": "oid-ann",
        "emails": [{"value": "other@example.org"}],
    }
    schema = {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"]}
    assert gateway.ask("POST", "/Users", {**schema, **sent}).status == 409
    assert gateway.ask("PUT", f"/Users/{ann['id']}", {**schema, **sent}).status == 200
    assert sign_in(gateway, "ann")[1]["id"] == ann["id"]

    made = gateway.ask("POST", "/Users", {**schema, "userName": "bob@corp.example", "externalId": "oid-bob"})
    assert sign_in(gateway, "bob")[1]["id"] == made.json["id"]
    patch = [{"op": "replace", "path": "active", "value": False}]
    body = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": patch}
    assert gateway.ask("PATCH", f"/Users/{made.json['id']}", body).status == 200
    refused = Person("bob").visit(f"{gateway.url}/oauth/oidc/login", gateway.url)
    assert refused == "/auth?error=deactivated"

    refused = Person("eve").visit(f"{gateway.url}/oauth/oidc/login", gateway.url)
    assert refused == "/auth?error=email_taken"
    groups = gateway.daemon.run_ctl("group", "list", "-o", "name").stdout.split()
    assert groups == ["Team"]


def test_a_plugin_has_the_refreshed_token_of_who_asks(gateway: Gateway, provider: CertifiedProvider) -> None:
    person, account = sign_in(gateway, "dee")
    body = {"model": "shows", "messages": [{"role": "user", "content": "token?"}]}
    seen = []
    for _ in range(2):
        told = gateway.daemon.call("POST", "/api/chat/completions", body, session_of(gateway, person))[1]
        seen.append(json.loads(told["choices"][0]["message"]["content"]))
    first, second = seen
    assert first.keys() == {"access_token", "token_type", "id_token", "expires_at"}
    assert first["access_token"] != second["access_token"], "each was refreshed"
    asked = Request(f"{provider.issuer}/me", headers=bearer(second["access_token"]))
    with urlopen(asked, timeout=5) as reply:
        assert json.load(reply)["sub"] == "dee"
    signed = {"email": ADMINISTRATOR["email"], "password": ADMINISTRATOR["password"]}
    administrator = gateway.daemon.call("POST", "/api/v1/auths/signin", signed)[1]["token"]
    told = gateway.daemon.call("POST", "/api/chat/completions", body, bearer(administrator))[1]
    assert told["choices"][0]["message"]["content"] == "null", account
    assert second["access_token"] not in "".join(gateway.daemon.log)


def test_a_sign_out_ends_at_both_sides_and_tokens_are_not_readable(gateway: Gateway) -> None:
    here, account = sign_in(gateway, "cy")
    status, answer = gateway.daemon.call("POST", "/api/v1/auths/signout", headers=session_of(gateway, here))
    assert (status, answer["status"]) == (200, True)
    assert here.visit(answer["redirect_url"], gateway.url) == "/auth"
    # Of two browsers, one signs out at the provider, which tells the gateway by a logout token.
    there, other = sign_in(gateway, "cy")[0], sign_in(gateway, "cy")[0]
    address = answer["redirect_url"].partition("?")[0]
    address += f"?client_id=gateway&post_logout_redirect_uri={gateway.url}/auth"
    assert there.visit(address, gateway.url) == "/auth"
    gateway.daemon.wait_for("sign-out by a provider")
    for who, expected in ((there, 401), (other, 200)):
        found = gateway.daemon.call("GET", "/api/v1/auths/", headers=session_of(gateway, who))
        assert found[0] == expected
    listed = gateway.daemon.run_ctl("user", "identities", str(account["email"]), "-o", "json").stdout
    assert '"provisioning_id": "oid-cy"' in listed
    kept = b"".join(path.read_bytes() for path in gateway.daemon.state.rglob("*.db*"))
    assert JSON_WEB_TOKEN.search(kept) is None
    assert SECRET.encode() not in kept
    logged = "".join(gateway.daemon.log)
    assert "eyJ" not in logged
    assert SECRET not in logged
