"""Who may come in to provisioning: whoever has the SCIM token, and nobody else, on every row of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.daemons.role_site import AUTHS, SCIM_TOKEN, Site, opened_roles
from tests.fakes.http.raw_http import Reply, exchange
from tests.fakes.http.samples import Row
from tests.fakes.http.samples_scim import ROOT, SCIM_SAMPLES

SCIM_JSON = "application/scim+json"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
PAGE = "https://page.example"
ROWS = [pytest.param(row, id=" ".join(row)) for row in SCIM_SAMPLES]
READS = [pytest.param(row, id=" ".join(row)) for row in SCIM_SAMPLES if row[0] == "GET"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_roles(tmp_path_factory.mktemp("s"), CORS_ALLOW_ORIGIN=PAGE) as opened:
        yield opened
        log = "".join(opened.daemon.log)
        assert "Traceback" not in log
        assert SCIM_TOKEN not in log


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a gateway with a token on which SCIM is off."""
    with opened_roles(tmp_path_factory.mktemp("s"), SCIM_ENABLED="false") as opened:
        yield opened


@pytest.fixture(scope="module")
def key(site: Site) -> str:
    """Return an administrator's API key."""
    site.configure(ENABLE_API_KEYS=True)
    me = site.call("GET", f"{AUTHS}/", None, site.admin)[1]["id"]
    site.add_group(me, features={"api_keys": True})
    made: str = site.call("POST", f"{AUTHS}/api_key", {}, site.admin)[1]["api_key"]
    return made


def encoded(body: Any) -> bytes | None:
    return None if body is None else json.dumps(body).encode()


def assert_error(reply: Reply, status: int, *, is_head: bool = False) -> None:
    """Check that a refusal is a whole SCIM error."""
    assert reply.status == status, reply
    assert reply.headers["content-type"] == SCIM_JSON
    assert "x-request-id" in reply.headers
    if status == 401:
        assert reply.headers["www-authenticate"] == "Bearer"
    if is_head:
        assert reply.body == b""
        return
    assert reply.json["schemas"] == [ERROR]
    assert reply.json["status"] == str(status)
    assert reply.json["detail"]


def refused_ways(site: Site, key: str) -> dict[str, dict[str, str]]:
    """Return headers that open nothing here."""
    bearers = {
        "an administrator's session": site.admin,
        "an API key": key,
        "a wrong token": "0" * len(SCIM_TOKEN),
        "the beginning of the token": SCIM_TOKEN[:-1],
        "more than the token": f"{SCIM_TOKEN}0",
        "the token in another case": SCIM_TOKEN.upper(),
        "an empty token": "",
        "two words": f"{SCIM_TOKEN} {SCIM_TOKEN}",
        "two tokens": f"{SCIM_TOKEN}, Bearer {SCIM_TOKEN}",
        "a long token": "x" * 15_000,
        "no ASCII": "\xe9\xff",
        "no UTF-8": "tok\xffen",
    }
    return {
        "nothing": {},
        **{name: {"Authorization": f"Bearer {value}"} for name, value in bearers.items()},
        "no scheme": {"Authorization": SCIM_TOKEN},
        "another scheme": {"Authorization": f"Basic {SCIM_TOKEN}"},
        "x-api-key": {"x-api-key": SCIM_TOKEN},
        "a cookie": {"Cookie": f"token={SCIM_TOKEN}"},
        "a session in a cookie": {"Cookie": f"token={site.admin}"},
        "a proxy's header": {"Proxy-Authorization": f"Bearer {SCIM_TOKEN}"},
    }


@pytest.mark.parametrize("row", ROWS)
def test_nothing_but_the_token_opens_a_row(site: Site, key: str, row: Row) -> None:
    path, body, _ = SCIM_SAMPLES[row](site)
    for way, headers in refused_ways(site, key).items():
        reply = site.send(row[0], path, encoded(body), headers=headers)
        assert_error(reply, 401)
        assert SCIM_TOKEN not in str(reply), way
    assert_error(site.send(row[0], f"{path}?access_token={SCIM_TOKEN}", encoded(body)), 401)


@pytest.mark.parametrize("row", ROWS)
def test_the_token_opens_every_row(site: Site, row: Row) -> None:
    for scheme, slash in (("Bearer", ""), ("bearer", ""), ("BEARER", ""), ("Bearer", "/")):
        path, body, status = SCIM_SAMPLES[row](site)
        headers = {"Authorization": f"{scheme} {SCIM_TOKEN}"}
        reply = site.send(row[0], path + slash, encoded(body), headers=headers)
        assert reply.status == status, reply
        if status == 204:
            assert reply.body == b""
            assert "content-type" not in reply.headers
        else:
            assert reply.headers["content-type"] == SCIM_JSON


@pytest.mark.parametrize("row", ROWS)
def test_nothing_opens_a_row_while_scim_is_off(locked: Site, row: Row) -> None:
    path, body, _ = SCIM_SAMPLES[row](locked)
    for token in (None, SCIM_TOKEN, locked.admin):
        reply = locked.send(row[0], path, encoded(body), token)
        assert_error(reply, 401)
    assert "not enabled" in locked.send(row[0], path, encoded(body), SCIM_TOKEN).json["detail"]


@pytest.mark.parametrize("row", READS)
def test_head_is_get_without_a_body(site: Site, row: Row) -> None:
    path, _, status = SCIM_SAMPLES[row](site)
    got = site.send("GET", path, None, SCIM_TOKEN)
    headed = site.send("HEAD", path, None, SCIM_TOKEN)
    assert (headed.status, headed.body) == (status, b"")
    assert headed.headers["content-type"] == SCIM_JSON
    assert headed.headers["content-length"] == str(len(got.body))
    assert_error(site.send("HEAD", path), 401, is_head=True)


def test_a_body_is_not_read_before_the_token_is(site: Site) -> None:
    for body in (b"{", b"[" * 100_000, b'{"userName": 5}'):
        assert_error(site.send("POST", f"{ROOT}/Users", body), 401)
        assert_error(site.send("POST", f"{ROOT}/Users", body, "wrong", {"Content-Type": "text/plain"}), 401)


def test_a_refused_write_changes_nothing(site: Site) -> None:
    path = f"{ROOT}/Users/{site.ids['user']}"
    before = site.send("GET", path, None, SCIM_TOKEN).json
    for token in (None, site.admin, "wrong"):
        assert_error(site.send("DELETE", path, None, token), 401)
        patch = {"Operations": [{"op": "replace", "path": "active", "value": False}]}
        assert_error(site.send("PATCH", path, encoded(patch), token), 401)
    assert site.send("GET", path, None, SCIM_TOKEN).json == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/Users"),
        ("DELETE", "/Groups"),
        ("POST", "/ServiceProviderConfig"),
        ("PATCH", "/Schemas"),
        ("GET", "/Bulk"),
        ("OPTIONS", "/Users"),
        ("TRACE", "/Users"),
        ("PROPFIND", "/Users"),
    ],
)
def test_a_method_that_no_row_has_is_refused(site: Site, method: str, path: str) -> None:
    for token in (SCIM_TOKEN, None):
        reply = site.send(method, ROOT + path, None, token)
        assert_error(reply, 405)
        assert reply.headers["allow"]


@pytest.mark.parametrize(
    "path",
    ["/Nothing", "/users", "/Users/a/b", "/Schemas/a/b", "//users", "//Users/%2e", "/%2FUsers", "/Users/%2e"],
)
def test_a_path_that_no_row_has_is_not_found(site: Site, path: str) -> None:
    assert_error(site.send("GET", ROOT + path, None, SCIM_TOKEN), 404)


@pytest.mark.parametrize("path", ["//Users", "//Users//x", "///", "/%55sers"])
def test_slashes_and_escapes_lead_nowhere_without_a_token(site: Site, path: str) -> None:
    for token in ("wrong", None):
        assert_error(site.send("GET", ROOT + path, None, token), 401)


@pytest.mark.parametrize(
    "path", ["/scim/v2/Users", "/api/scim/v2/Users", "/v1/scim/v2/Users", "/api/v1/Users"]
)
def test_another_base_address_is_not_found(site: Site, path: str) -> None:
    assert site.send("GET", path, None, SCIM_TOKEN).status == 404


def test_a_page_may_read_what_its_origin_is_allowed(site: Site) -> None:
    asked = {"Origin": PAGE, "Access-Control-Request-Method": "PATCH"}
    preflight = site.send("OPTIONS", f"{ROOT}/Users", headers=asked)
    assert preflight.status == 204
    assert "PATCH" in preflight.headers["access-control-allow-methods"]
    for token, status in ((SCIM_TOKEN, 200), (None, 401)):
        reply = site.send("GET", f"{ROOT}/Users", None, token, {"Origin": PAGE})
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (status, PAGE)
        foreign = site.send("GET", f"{ROOT}/Users", None, token, {"Origin": "https://evil.example"})
        assert (foreign.status, foreign.headers.get("access-control-allow-origin")) == (status, None)


def test_two_headers_are_no_token(site: Site) -> None:
    line = f"Authorization: Bearer {SCIM_TOKEN}\r\n"
    head = f"GET {ROOT}/Users HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n{line}{line}\r\n"
    (reply,) = exchange(site.daemon.base_url, head.encode())
    assert reply.status in {400, 401}
