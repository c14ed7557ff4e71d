"""Tests for gatewayd.http.trusted_headers, and for its place in the middleware."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gatewayd.accounts.records import NewGroup, Role, User, UserChange
from gatewayd.http.body import json_reply
from gatewayd.http.context import facts_of
from gatewayd.http.public.accounts.auths import AuthRoutes
from gatewayd.http.public.accounts.header_sign_in import HeaderSignIn
from gatewayd.http.public.accounts.session_replies import CookieOptions, SessionReplies
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.trusted_headers import HeaderEncoding, HeaderNames, TrustedHeaders
from tests.fakes.accounts.services import Accounts
from tests.fakes.http.public_app import Client, bearer, serving

NAMES = HeaderNames("x-email", "x-name", "x-groups", "x-role")
HERE, ELSEWHERE = (ip_network("127.0.0.0/8"),), (ip_network("192.0.2.0/24"),)
SIGN_IN = "/api/v1/auths/signin"
Headers = Sequence[tuple[str, str]]


class Site:
    """A gateway behind a proxy at 127.0.0.1."""

    def __init__(self, accounts: Accounts, client: Client, headers: TrustedHeaders) -> None:
        self.accounts, self.client, self.headers = accounts, client, headers
        self.seen: list[dict[str, str]] = []

    async def sign_in(self, *headers: tuple[str, str], **body: str) -> tuple[int, Any]:
        async with self.client.post(SIGN_IN, json=body, headers=list(headers)) as reply:
            return reply.status, await reply.json()

    async def get(self, path: str, token: str, *headers: tuple[str, str]) -> int:
        async with self.client.get(path, headers=[*bearer(token).items(), *headers]) as reply:
            return reply.status

    async def facts(self, request: web.Request) -> web.StreamResponse:
        self.seen.append({name.lower(): value for name, value in facts_of(request).headers})
        return json_reply({})


@asynccontextmanager
async def site_of(
    networks: Any = HERE, encoding: HeaderEncoding = HeaderEncoding.PERCENT
) -> AsyncIterator[Site]:
    accounts = Accounts()
    await accounts.runtime.set({"DEFAULT_USER_ROLE": "user"}, by="test")
    await accounts.add_user("admin", Role.ADMIN, password="secret")
    headers = TrustedHeaders(NAMES, networks, encoding, accounts.clock)
    replies = SessionReplies(accounts.sessions, accounts.rules, accounts.runtime, CookieOptions())
    by_header = HeaderSignIn(headers, accounts.external.resolve)

    async def nowhere(session_id: str, site: str) -> str:
        return ""

    routes = AuthRoutes(accounts.users, accounts.sign_in, accounts.sign_up, replies, nowhere, by_header)
    site = Site(accounts, None, headers)  # type: ignore[arg-type]
    rows = [*routes.routes(), Route("GET", "/facts", site.facts, RouteAccess.PUBLIC, "Show the facts")]
    async with serving(rows, authenticator=accounts.authenticator, trusted_headers=headers) as client:
        site.client = client
        yield site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with site_of() as made:
        yield made


async def find(site: Site, email: str = "ada@example.org") -> User:
    found = await site.accounts.users.find_by_email(email)
    assert found is not None
    return found


async def test_the_person_of_the_proxy_gets_an_account_once(site: Site) -> None:
    headers = (("X-Email", "Ada@Example.org"), ("X-Name", "Ada%20L%C3%B6ve"))
    answers = await asyncio.gather(*(site.sign_in(*headers) for _ in range(4)))
    assert {(status, body["email"], body["name"]) for status, body in answers} == {
        (200, "ada@example.org", "Ada Löve")
    }
    assert await site.accounts.users.count() == 2
    (session, *_) = await site.accounts.sessions.list(answers[0][1]["id"])
    assert session.origin.method == "header"


async def test_closed_sign_up_does_not_stop_the_proxy(site: Site) -> None:
    await site.accounts.runtime.set({"ENABLE_SIGNUP": False}, by="test")
    assert (await site.sign_in(("X-Email", "ada@example.org")))[0] == 200


async def test_the_address_names_the_account_that_there_is_also_an_administrator(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        status, body = await site.sign_in(("x-email", "ADMIN@example.org"))
    assert (status, body["role"]) == (200, "admin")
    line = caplog.records[-1].__dict__
    assert (line["msg"] % line["args"], line["method"], line["outcome"]) == ("sign-in", "header", "linked")


async def test_without_the_header_a_password_is_asked_for(site: Site) -> None:
    assert (await site.sign_in(email="admin@example.org", password="secret"))[0] == 200
    assert (await site.sign_in(("X-Email", " "), email="admin@example.org", password="no"))[0] == 400


async def test_headers_from_elsewhere_are_ignored_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async with site_of(ELSEWHERE) as site:
        for _ in range(3):
            assert (await site.sign_in(("X-Email", "admin@example.org")))[0] == 422
        assert (await site.sign_in(("X_Email", "a@x"), ("X-Email", "b@x")))[0] == 422
        token = await site.accounts.session(await find(site, "admin@example.org"))
        assert await site.get("/api/v1/auths/", token, ("X-Email", "eve@example.org")) == 200
        assert await site.accounts.users.count() == 1
        ignored = [record for record in caplog.records if "ignored" in record.getMessage()]
        assert [record.__dict__["count"] for record in ignored] == [1]
        site.accounts.time += 60
        await site.sign_in(("X-Role", "admin"))
        ignored = [record for record in caplog.records if "ignored" in record.getMessage()]
        assert [record.__dict__["count"] for record in ignored] == [1, 5]


async def test_plugins_see_no_forged_header() -> None:
    for networks, expected in ((HERE, {"x-email", "x-other"}), (ELSEWHERE, {"x-other"})):
        async with site_of(networks) as site:
            headers = [("X-Email", "a@x"), ("X-Other", "b")]
            async with site.client.get("/facts", headers=headers) as reply:
                assert reply.status == 200
            assert {name for name in site.seen[0] if name.startswith("x-")} == expected


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Email", "ada@example.org"), ("X-Email", "eve@example.org")],
        [("x-email", "ada@example.org"), ("x-email", "ada@example.org")],
        [("X-Email", "ada@example.org"), ("X_Email", "eve@example.org")],
        [("X_Email", "eve@example.org")],
        [("X-Email", "ada@example.org"), ("X-Role", "user"), ("X_Role", "admin")],
        [("X-Email", "no address")],
        [("X-Email", "a@x, b@y" + "," * 8000)],
        [("X-Email", "ada@example.org"), ("X-Name", "%FF")],
        [("X-Email", "ada@example.org"), ("X-Name", "%00")],
        [("X-Email", "ada@example.org"), ("X-Groups", "%ED%A0%80")],
    ],
)
async def test_doubled_and_bad_headers_are_refused(site: Site, headers: list[tuple[str, str]]) -> None:
    status, body = await site.sign_in(*headers)
    assert (status, body["error"]["param"][:2]) == (400, "x-"), body
    assert await site.accounts.users.count() == 1


async def test_a_session_of_somebody_else_is_refused(site: Site) -> None:
    _, ada = await site.sign_in(("X-Email", "ada@example.org"))
    path = "/api/v1/auths/"
    assert await site.get(path, ada["token"]) == 200
    assert await site.get(path, ada["token"], ("X-Email", "ADA@example.org")) == 200
    assert await site.get(path, ada["token"], ("X-Email", "eve@example.org")) == 401
    assert await site.get(path, ada["token"], ("X-Email", "a@x"), ("X-Email", "b@x")) == 400
    cookie = {"Cookie": f"token={ada['token']}", "Sec-Fetch-Site": "same-origin"}
    status, eve = await site.sign_in(("X-Email", "eve@example.org"), *cookie.items())
    assert (status, eve["email"]) == (200, "eve@example.org")
    assert await site.get(path, ada["token"]) == 401, "the session of the other person ended"


async def test_an_account_whose_address_changed_stays_that_of_the_header(site: Site) -> None:
    _, ada = await site.sign_in(("X-Email", "ada@example.org"))
    await site.accounts.users.change(ada["id"], UserChange(email="new@example.org"), None)
    again = await site.sign_in(("X-Email", "ada@example.org"))
    assert again[1]["id"] == ada["id"]
    assert await site.get("/api/v1/auths/", ada["token"], ("X-Email", "ada@example.org")) == 200


async def test_a_key_has_no_session_that_could_disagree(site: Site) -> None:
    await site.sign_in(("X-Email", "ada@example.org"))
    user = await find(site)
    await site.accounts.grant_keys(user)
    _, key = await site.accounts.keys.issue(user)
    assert await site.get("/api/v1/auths/", key, ("X-Email", "eve@example.org")) == 200


async def test_roles_follow_their_header_and_stay_without_it(site: Site) -> None:
    ada = ("X-Email", "ada@example.org")
    for role, expected in (("admin", Role.ADMIN), (None, Role.ADMIN), ("", Role.ADMIN), ("User", Role.USER)):
        assert (await site.sign_in(ada, *([("X-Role", role)] if role is not None else [])))[0] == 200
        assert (await find(site)).role is expected
    status, body = await site.sign_in(ada, ("X-Role", "root"))
    assert (status, body["error"]["code"]) == (403, "role_missing")
    assert (await find(site)).role is Role.USER
    assert (await site.sign_in(("X-Email", "admin@example.org"), ("X-Role", "user")))[1]["role"] == "admin"


async def test_groups_follow_their_header_and_stay_without_it(site: Site) -> None:
    for name in ("research", "staff"):
        await site.accounts.groups.ensure(NewGroup(name))

    async def groups(*headers: tuple[str, str]) -> list[str]:
        await site.sign_in(("X-Email", "ada@example.org"), *headers)
        return [group.name for group in await site.accounts.groups.list((await find(site)).id)]

    assert await groups(("X-Groups", "staff, unknown,,research")) == ["research", "staff"]
    assert await groups() == await groups(("X-Groups", " , ")) == ["research", "staff"]
    assert await groups(("X-Groups", "staff")) == ["staff"]


async def test_who_may_not_sign_in_is_refused(site: Site) -> None:
    await site.sign_in(("X-Email", "ada@example.org"))
    ada = await find(site)
    await site.accounts.users.change(ada.id, UserChange(active=False), None)
    status, body = await site.sign_in(("X-Email", "ada@example.org"))
    assert (status, body["error"]["code"]) == (403, "deactivated")
    await site.accounts.runtime.set({"DEFAULT_USER_ROLE": "pending"}, by="test")
    status, body = await site.sign_in(("X-Email", "bob@example.org"))
    assert (status, body["error"]["code"]) == (403, "pending")


@pytest.mark.parametrize(
    ("encoding", "sent", "name"),
    [
        (HeaderEncoding.RFC2047, "=?UTF-8?Q?L=C3=B6ve?=", "Löve"),
        (HeaderEncoding.RFC2047, "=?iso-8859-1?q?L=F6ve?= =?utf-8?b?w6Q=?=", "Löveä"),
        (HeaderEncoding.RFC2047, "Ada", "Ada"),
        (HeaderEncoding.PLAIN, "50%20", "50%20"),
        (HeaderEncoding.PLAIN, "Löve", "Löve"),
    ],
)
async def test_encodings_of_names(encoding: HeaderEncoding, sent: str, name: str) -> None:
    async with site_of(encoding=encoding) as site:
        status, body = await site.sign_in(("X-Email", "ada@example.org"), ("X-Name", sent))
        assert (status, body["name"]) == (200, name)


@pytest.mark.parametrize("sent", ["=?utf-8?b?!?=", "=?unknown?q?a?=", "=?utf-8?q?=FF?="])
async def test_bad_encoded_words_are_refused_or_read_as_they_are(sent: str) -> None:
    async with site_of(encoding=HeaderEncoding.RFC2047) as site:
        status, body = await site.sign_in(("X-Email", "ada@example.org"), ("X-Name", sent))
        assert status == 400 or body["name"] in {sent, "ada"}, body


async def test_a_page_of_another_origin_cannot_use_the_proxy(site: Site) -> None:
    status, body = await site.sign_in(("X-Email", "ada@example.org"), ("Origin", "https://evil.example"))
    assert (status, body["error"]["code"]) == (403, "foreign_origin")


@pytest.mark.parametrize("peer", ["", "@", None, ("192.0.2.1", 1), ("::1%lo", 1)])
def test_a_peer_without_a_known_address_is_not_trusted(peer: Any) -> None:
    headers = TrustedHeaders(NAMES, HERE)
    request = make_mocked_request("POST", "/", headers={"X-Email": "ada@example.org"}, transport=at(peer))
    assert headers.find_identity(request) is None
    assert headers.find_forged(request) == {"x-email"}


def test_ipv4_in_ipv6_and_loopback_are_the_addresses_that_they_mean() -> None:
    headers = TrustedHeaders(NAMES, (*HERE, ip_network("::1/128")))
    for peer in ("127.0.0.1", "::ffff:127.0.0.1", "::1"):
        request = make_mocked_request(
            "POST", "/", headers={"X-Email": "ada@example.org"}, transport=at((peer, 1))
        )
        assert headers.find_identity(request) is not None


def at(peer: Any) -> Any:
    """Return a transport whose other end has this address."""
    transport = Mock()
    transport.get_extra_info = lambda name, default=None: peer if name == "peername" else default
    return transport
