"""Tests for gatewayd.http.scim_auth: the door of the SCIM rows, and what is noted about each request."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import orjson
import pytest
from multidict import CIMultiDict

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.audit import MAX_VALUE_CHARACTERS
from gatewayd.http.middleware import EdgeOptions
from gatewayd.http.scim_auth import changed_attributes, token_of
from gatewayd.observe.logs import JsonFormatter, TextFormatter
from gatewayd.scim.records import SearchParameters
from gatewayd.scim.request_log import LoggedRequest
from tests.fakes.accounts.scim_site import ROOT, TOKEN, ScimSite, serving_scim
from tests.fakes.http.public_app import bearer, raw_get

ADA = {"userName": "ada@example.org", "externalId": "7", "displayName": "Ada", "password": "hunter2"}
AUDIT = "gatewayd.audit"


@pytest.fixture
async def site() -> AsyncIterator[ScimSite]:
    async with serving_scim() as made:
        yield made


@pytest.fixture
def audit(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, logger=AUDIT)

    def lines() -> list[tuple[str, dict[str, Any]]]:
        return [(record.getMessage(), vars(record)) for record in caplog.records if record.name == AUDIT]

    return lines


def patch(*operations: Any) -> Any:
    return {"Operations": list(operations)}


EVERY_ROW = [
    ("POST", "/Users"),
    ("GET", "/Users"),
    ("HEAD", "/Users"),
    ("POST", "/Users/.search"),
    *((method, "/Users/x") for method in ("GET", "PUT", "PATCH", "DELETE")),
    ("POST", "/Groups"),
    ("GET", "/Groups"),
    ("POST", "/Groups/.search"),
    *((method, "/Groups/x") for method in ("GET", "PUT", "PATCH", "DELETE")),
    ("GET", "/ServiceProviderConfig"),
    ("GET", "/ResourceTypes"),
    ("GET", "/ResourceTypes/User"),
    ("GET", "/Schemas"),
    ("GET", "/Schemas/x"),
    ("GET", ""),
    ("POST", "/.search"),
    ("POST", "/Bulk"),
    ("GET", "/Me"),
]


@pytest.mark.parametrize(("method", "path"), EVERY_ROW)
async def test_nothing_but_the_scim_token_opens_a_row(site: ScimSite, method: str, path: str) -> None:
    accounts = site.scim.accounts
    admin = await accounts.add_user("root")
    session = await accounts.session(admin)
    wrong: Sequence[dict[str, str]] = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {session}"},
        {"x-api-key": TOKEN},
        {"x-api-key": session},
        {"Cookie": f"token={TOKEN}"},
        {"Cookie": f"token={session}"},
    ]
    for headers in wrong:
        # The body is no JSON: it is not looked at.
        body = b"{" if method in {"POST", "PUT", "PATCH"} else None
        reply = await site.call(method, path, body, {"Authorization": None, **headers})  # type: ignore[dict-item]
        assert reply.status == 401, headers
        assert reply.headers["WWW-Authenticate"] == "Bearer"
        if method != "HEAD":
            assert reply.error == (401, None)
    assert (await site.call(method, path, b"{}" if method != "GET" else None)).status != 401


@pytest.mark.parametrize("sent", ["Bearer abc", "bearer abc", "BEARER   abc "])
def test_a_bearer_token(sent: str) -> None:
    assert token_of(sent) == "abc"


class Silence:
    """The freshness of a node that may not trust its memory; `change` happens when it asks the database."""

    def __init__(self, change: Callable[[], None]) -> None:
        self.change = change

    def is_fresh(self) -> bool:
        return False

    async def renew(self) -> None:
        self.change()


async def test_a_node_that_heard_nothing_asks_the_database_first(site: ScimSite) -> None:
    def outage() -> None:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read the change log", retry_after=2)

    def retire() -> None:
        site.tokens.replace(True, ())

    site.door.freshness = Silence(outage)
    assert (await site.call("GET", "/Users")).status == 503
    site.door.freshness = Silence(retire)
    assert (await site.call("GET", "/Users")).error == (401, None)
    # Nothing is asked while SCIM is off.
    site.door.freshness = Silence(outage)
    site.tokens.replace(False, ())
    assert (await site.call("GET", "/Users")).error == (401, None)


@pytest.mark.parametrize("token", ["ü" * 64, "\u202e" + TOKEN, TOKEN.upper(), "t" * 4000, TOKEN + "\ufeff"])
async def test_unknown_tokens_of_any_kind_are_refused(site: ScimSite, token: str) -> None:
    assert (await site.call("GET", "/Users", headers=bearer(token))).status == 401


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ("", "is required"),
        ("Bearer", "expected Bearer <token>"),
        ("Bearer ", "expected Bearer <token>"),
        ("abc", "expected Bearer <token>"),
        ("Bearer abc def", "expected Bearer <token>"),
        ("Bearer abc, Bearer abc", "expected Bearer <token>"),
        ("Bearer\tabc", "expected Bearer <token>"),
        ("Basic abc", "scheme is not Bearer"),
        ("Token abc", "scheme is not Bearer"),
    ],
)
def test_another_header_is_refused_with_the_reason(sent: str, why: str) -> None:
    with pytest.raises(GatewayError, match=why) as caught:
        token_of(sent)
    assert caught.value.kind is ErrorKind.UNAUTHENTICATED
    assert "abc" not in caught.value.message


async def test_two_headers_are_not_one(site: ScimSite) -> None:
    headers = CIMultiDict([("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer x")])
    reply = await site.client.get(f"{ROOT}/Users", headers=headers)
    assert reply.status in {400, 401}


async def test_nothing_is_open_while_scim_is_off() -> None:
    async with serving_scim(enabled=False) as site:
        for method, path in EVERY_ROW:
            assert (await site.call(method, path)).status == 401, path


async def test_a_token_that_is_replaced_works_no_more(site: ScimSite) -> None:
    site.tokens.replace(True, (ids.digest("new"),))
    assert (await site.call("GET", "/Users")).error == (401, None)
    assert (await site.call("GET", "/Users", headers=bearer("new"))).status == 200


@pytest.mark.parametrize("path", ["/nothing", "/Users/x/y", "/users", "/.searches", "/Me/x"])
async def test_what_no_row_takes_is_refused_as_scim_does(site: ScimSite, path: str) -> None:
    for headers in ({}, {"anthropic-version": "2023-06-01"}):
        assert (await site.call("GET", path, headers=headers)).error == (404, None)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/Users", {"GET", "HEAD", "POST"}),
        ("PUT", "/Groups", {"GET", "HEAD", "POST"}),
        ("POST", "/Users/x", {"GET", "HEAD", "PUT", "PATCH", "DELETE"}),
        ("GET", "/Bulk", {"POST"}),
        ("GET", "/.search", {"POST"}),
        ("OPTIONS", "/Users", {"GET", "HEAD", "POST"}),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(
    site: ScimSite, method: str, path: str, allowed: set[str]
) -> None:
    reply = await site.call(method, path)
    assert reply.error == (405, None)
    assert set(reply.headers["Allow"].split(",")) == allowed


@pytest.mark.parametrize(
    "path",
    [
        f"{ROOT}//..//Users",
        f"{ROOT}//%2e%2e/Users",
        f"{ROOT}//nothing",
        f"{ROOT}/%2fUsers",
        "/api//v1/scim/v2/Users",
        "//api/v1/scim/v2/Users",
        f"{ROOT}/Users/..",
        f"{ROOT}/./Users",
        f"{ROOT}/Users/a%2fb",
        f"{ROOT}%2fUsers",
        f"{ROOT}/Users%00",
        f"{ROOT}/%2e%2e/Users",
    ],
)
async def test_paths_that_could_mean_two_things_are_not_served(site: ScimSite, path: str) -> None:
    answer = await raw_get(site.client, path)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404 ")
    assert orjson.loads(body)["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]


async def test_an_encoded_letter_needs_the_token_too(site: ScimSite) -> None:
    answer = await raw_get(site.client, "/api/v1/%73cim/v2/Users")
    assert answer.startswith(b"HTTP/1.1 401 ")


async def test_a_write_is_audited_with_what_it_changed(site: ScimSite, audit: Any) -> None:
    headers = {"X-Request-Id": "r1"}
    user_id = (await site.call("POST", "/Users", ADA, headers)).body["id"]
    body = patch({"op": "replace", "path": "displayName", "value": "Countess"})
    await site.call("PATCH", f"/Users/{user_id}", body)
    await site.call("PATCH", f"/Users/{user_id}", body)
    await site.call("DELETE", f"/Users/{user_id}")
    made, renamed, again, ended = audit()
    common = {"by": "scim:okta", "address": "127.0.0.1", "target": user_id}
    assert made[0] == "scim: create a user"
    assert made[1].items() >= {**common, "request_id": "r1", "status": 201}.items()
    assert made[1]["after"].items() >= {"userName": "ada@example.org", "externalId": "7"}.items()
    assert "before" not in made[1]
    assert renamed[0] == "scim: change a user"
    assert renamed[1]["before"] == {"displayName": "Ada"}
    assert renamed[1]["after"] == {"displayName": "Countess"}
    assert not {"before", "after"} & again[1].keys()
    assert ended[1].items() >= {**common, "before": {"active": True}, "after": {"active": False}}.items()


class Watch(logging.Handler):
    """Notes what a probe says at the moment of each line."""

    def __init__(self, probe: Callable[[], Any]) -> None:
        super().__init__()
        self.probe = probe
        self.seen: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(self.probe())


async def test_a_write_is_audited_once_it_is_committed(site: ScimSite, audit: Any) -> None:
    # Changes are told when the transaction around them has ended.
    watch = Watch(lambda: len(site.scim.accounts.heard))
    logging.getLogger(AUDIT).addHandler(watch)
    try:
        user_id = (await site.ok("POST", "/Users", ADA, 201))["id"]
        await site.ok("PATCH", f"/Users/{user_id}", patch({"op": "add", "path": "displayName", "value": "B"}))
        await site.ok("PUT", f"/Users/{user_id}", {**ADA, "displayName": "C"})
        await site.call("DELETE", f"/Users/{user_id}")
    finally:
        logging.getLogger(AUDIT).removeHandler(watch)
    assert watch.seen == [1, 2, 3, 4]


async def test_a_write_that_cannot_be_committed_is_audited_as_refused(
    site: ScimSite, audit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = site.scim.accounts.memory
    user_id = (await site.ok("POST", "/Users", ADA, 201))["id"]

    @asynccontextmanager
    async def failing(name: str) -> AsyncIterator[None]:
        async with memory.transaction():
            yield
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the database", retry_after=1)

    monkeypatch.setattr(memory, "exclusive", failing)
    reply = await site.call("DELETE", f"/Users/{user_id}")
    assert (reply.error, reply.headers["Retry-After"]) == ((503, None), "1")
    _, (line, told) = audit()
    assert (line, told["status"], told["refused"]) == (
        "scim: deactivate a user",
        503,
        "cannot reach the database",
    )
    assert not {"before", "after"} & told.keys()
    assert len(site.scim.accounts.heard) == 1


async def test_members_are_counted_in_the_audit(site: ScimSite, audit: Any) -> None:
    ada, bob = await site.scim.add_user("ada"), await site.scim.add_user("bob")
    group_id = (await site.ok("POST", "/Groups", {"displayName": "Staff"}, 201))["id"]
    members = [{"value": ada}, {"value": bob}]
    await site.call("PATCH", f"/Groups/{group_id}", patch({"op": "add", "path": "members", "value": members}))
    await site.call("DELETE", f"/Groups/{group_id}")
    _, added, removed = audit()
    assert (added[1]["target"], added[1]["status"]) == (group_id, 204)
    assert "+2" in added[1]["members"]
    assert removed[0] == "scim: remove a group"
    assert removed[1]["before"]["displayName"] == "Staff"


async def test_reads_are_audited_with_what_they_ask_for(site: ScimSite, audit: Any) -> None:
    await site.ok("GET", '/Users?filter=userName eq "ada@example.org"')
    await site.ok("POST", "/Groups/.search", {"filter": 'displayName sw "S"'})
    await site.ok("GET", "/Users")
    await site.call("GET", "/Users/x")
    await site.ok("GET", "/Schemas")
    assert [(line, told["target"], told["status"]) for line, told in audit()] == [
        ("scim: list users", 'userName eq "ada@example.org"', 200),
        ("scim: search groups", 'displayName sw "S"', 200),
        ("scim: list users", "/Users", 200),
        ("scim: show a user", "/Users/x", 404),
        ("scim: list schemas", "/Schemas", 200),
    ]


async def test_what_is_refused_is_audited_with_the_reason(site: ScimSite, audit: Any) -> None:
    await site.ok("POST", "/Users", ADA, 201)
    await site.call("POST", "/Users", ADA)
    await site.call("PUT", "/Users/x", b"{")
    await site.call("DELETE", "/Users/x", headers={"Authorization": "Bearer s3cret-guess"})
    _, taken, malformed, stranger = audit()
    assert (taken[1]["status"], malformed[1]["status"], stranger[1]["status"]) == (409, 400, 401)
    assert "JSON" in malformed[1]["refused"]
    assert (stranger[0], stranger[1]["target"]) == ("scim: deactivate a user", "/Users/x")
    assert [told["by"] for _, told in audit()] == ["scim:okta"] * 3 + ["unknown"]
    assert "s3cret-guess" not in repr(stranger)


async def test_secrets_are_in_no_line(site: ScimSite, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    user_id = (await site.ok("POST", "/Users", ADA, 201))["id"]
    await site.call("PUT", f"/Users/{user_id}", {**ADA, "password": "hunter3", "displayName": "B"})
    await site.call(
        "PATCH", f"/Users/{user_id}", patch({"op": "add", "path": "password", "value": "hunter4"})
    )
    shown = "\n".join(repr(vars(record)) for record in caplog.records)
    assert "hunter" not in shown
    assert TOKEN not in shown


async def test_a_long_filter_is_told_in_part(site: ScimSite, audit: Any) -> None:
    await site.ok("POST", "/Users/.search", {"filter": f'userName eq "{"a" * 5000}"'})
    [(_, told)] = audit()
    assert len(told["target"]) == MAX_VALUE_CHARACTERS + 3
    assert told["target"].startswith('userName eq "aaa')


async def test_a_secret_in_a_query_is_not_remembered(site: ScimSite) -> None:
    await site.call("GET", "/Users?access_token=s3cret&COUNT=1&filter=userName%20pr&=s3cret")
    await site.call("GET", "/Users?s3cret")
    paths = [seen.path.removeprefix(ROOT) for seen in site.activity.list()]
    assert paths == ["/Users", "/Users?COUNT=1&filter=userName pr"]


async def test_a_failure_of_the_gateway_is_audited_too(
    site: ScimSite, audit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("boom")

    monkeypatch.setattr(site.scim.users, "search", fail)
    assert (await site.call("GET", "/Users")).error == (500, None)
    [(line, told)] = audit()
    assert (line, told["status"]) == ("scim: list users", 500)
    assert "boom" not in told["refused"]


async def test_control_characters_stay_on_one_line(site: ScimSite, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=AUDIT)
    await site.call("GET", "/Users?filter=%0A2026 forged%1B[31m")
    [record] = [record for record in caplog.records if record.name == AUDIT]
    text = TextFormatter().format(record)
    assert "\n" not in text
    assert "\x1b" not in text
    line = JsonFormatter().format(record)
    assert len(line.splitlines()) == 1
    assert orjson.loads(line)["target"] == "\n2026 forged\x1b[31m"


async def test_a_change_is_readable_in_both_forms_of_the_log(
    site: ScimSite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=AUDIT)
    await site.ok("POST", "/Users", {**ADA, "displayName": "Ada\u202eB"}, 201)
    [record] = [record for record in caplog.records if record.name == AUDIT]
    entry = orjson.loads(JsonFormatter().format(record))
    assert entry["after"]["userName"] == "ada@example.org"
    assert entry["by"] == "scim:okta"
    text = TextFormatter().format(record)
    assert "ada@example.org" in text
    assert "\u202e" not in text


async def test_the_last_requests_are_remembered(site: ScimSite) -> None:
    await site.call("GET", "/Users?count=0", headers={"X-Request-Id": "r1"})
    await site.call("GET", "/nothing", headers={"X-Request-Id": "r2"})
    await site.call("POST", "/Users", headers={"X-Request-Id": "r3", "Authorization": "Bearer x"})
    assert [
        (seen.method, seen.path.removeprefix(ROOT), seen.status, seen.request_id)
        for seen in site.activity.list()
    ] == [("POST", "/Users", 401, "r3"), ("GET", "/nothing", 404, "r2"), ("GET", "/Users?count=0", 200, "r1")]
    newest, _, oldest = site.activity.list()
    assert "not valid" in newest.detail
    assert oldest == LoggedRequest(1_000, "GET", f"{ROOT}/Users?count=0", 200, "127.0.0.1", "r1")


async def test_requests_elsewhere_are_not_noted(site: ScimSite, audit: Any) -> None:
    await site.client.get("/api/v1/scim/v20/Users")
    await site.client.get("/nothing")
    assert list(site.activity.list()) == []
    assert audit() == []


async def test_the_address_is_that_of_the_provider_behind_a_proxy(audit: Any) -> None:
    options = EdgeOptions(trusted_proxies=(ip_network("127.0.0.0/8"),))
    async with serving_scim("", options=options) as site:
        await site.call("GET", "/Users", headers={"X-Forwarded-For": "203.0.113.9"})
        assert site.activity.list()[0].address == "203.0.113.9"
    [(_, told)] = audit()
    assert (told["address"], told["by"]) == ("203.0.113.9", "scim:-")


@pytest.mark.parametrize(("method", "status"), [("GET", 499), ("POST", 201)])
async def test_a_client_that_leaves_is_noted(
    site: ScimSite, audit: Any, monkeypatch: pytest.MonkeyPatch, method: str, status: int
) -> None:
    entered, release = asyncio.Event(), asyncio.Event()
    users = site.scim.users
    plain_search, plain_create = users.search, users.create

    async def search(asked: SearchParameters, *, with_groups: bool) -> Any:
        entered.set()
        await release.wait()
        return await plain_search(asked, with_groups=with_groups)

    async def create(body: Any) -> Any:
        entered.set()
        await release.wait()
        return await plain_create(body)

    monkeypatch.setattr(users, "search", search)
    monkeypatch.setattr(users, "create", create)
    call = asyncio.ensure_future(site.call(method, "/Users", ADA if method == "POST" else None))
    await asyncio.wait_for(entered.wait(), 5)
    call.cancel()
    await asyncio.wait([call])
    if method == "POST":
        release.set()
    async with asyncio.timeout(5):
        while not audit():
            await asyncio.sleep(0)
    [(_, told)] = audit()
    assert told["status"] == status


def test_only_what_differs_is_told() -> None:
    before = {"id": "1", "displayName": "A", "emails": [1]}
    after = {"id": "1", "displayName": "B", "externalId": "7", "emails": [1]}
    assert changed_attributes(before, after) == {"displayName": "A"}
    assert changed_attributes(after, before) == {"displayName": "B", "externalId": "7"}
    assert changed_attributes(None, after) == {}
    assert changed_attributes(after, None) == after


def test_what_is_long_is_told_in_part() -> None:
    told = changed_attributes({"emails": [{"value": "x" * 100}] * 100}, None)
    assert len(told["emails"]) == MAX_VALUE_CHARACTERS + 3
