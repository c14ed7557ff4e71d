"""Tests for gatewayd.http.public.accounts.sessions."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from gatewayd.accounts.records import User
from gatewayd.http.access_revocation import AccessRevocation
from gatewayd.http.body import json_reply
from gatewayd.http.public.accounts import sessions as session_routes
from gatewayd.http.public.accounts.sessions import SessionRoutes
from gatewayd.http.routes import Route, RouteAccess
from tests.fakes.accounts.services import Accounts, Site, check_access, serving_accounts
from tests.fakes.http.public_app import bearer, serving

OWN = "/api/v1/auths/sessions"


def nouns(accounts: Accounts) -> SessionRoutes:
    return SessionRoutes(accounts.sessions, accounts.users)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    accounts = Accounts()
    async with serving_accounts(accounts, nouns(accounts).routes()) as made:
        yield made


async def ids_of(site: Site, who: User) -> list[str]:
    return [each.id for each in await site.accounts.sessions.list(who.id)]


async def test_access(site: Site) -> None:
    assert await check_access(site, nouns(site.accounts).routes()) == 5


async def test_everyone_lists_their_own(site: Site) -> None:
    await site.accounts.session(site.admin)
    token = await site.accounts.session(site.user)
    await site.accounts.session(site.user)
    listed = await site.get_ok(OWN, token)
    assert [each["current"] for each in listed].count(True) == 1
    assert len(listed) == 2
    assert listed[0] | {"id": "", "current": False} == {
        "id": "",
        "created_at": site.accounts.time,
        "last_seen_at": site.accounts.time,
        "expires_at": site.accounts.time + 3600,
        "user_agent": "",
        "address": "",
        "method": "password",
        "provider": "",
        "current": False,
    }


async def test_pages(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_routes, "PAGE_SIZE", 2)
    token = [await site.accounts.session(site.user) for _ in range(3)][-1]
    everything = [each["id"] for each in await site.get_ok(OWN, token)]
    pages = [await site.get_ok(f"{OWN}?page={number}", token) for number in (1, 2, 3)]
    assert [[each["id"] for each in page] for page in pages] == [everything[:2], everything[2:], []]
    theirs = await site.get_ok(f"/api/v1/users/{site.user.id}/sessions?page=2", site.admin)
    assert [each["id"] for each in theirs] == everything[2:]
    assert (await site.call("GET", f"{OWN}?page=0", token))[0] == 422


async def test_one_ends_at_once_and_only_ones_own(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    mine, other = await site.accounts.session(site.user), await site.accounts.session(site.user)
    theirs = await site.accounts.session(site.admin)
    jti, foreign = (site.accounts.sessions.read(token).jti for token in (other, theirs))
    assert await site.get_ok(OWN, other)
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        assert (await site.call("DELETE", f"{OWN}/{jti}", mine)) == (200, True)
    assert any(record.__dict__.get("values", {}).get("session") == jti for record in caplog.records)
    assert (await site.call("GET", OWN, other))[0] == 401
    assert (await site.call("DELETE", f"{OWN}/{jti}", mine))[0] == 404
    assert (await site.call("DELETE", f"{OWN}/{foreign}", mine))[0] == 404
    assert (await site.call("GET", OWN, theirs))[0] == 200
    assert (await site.call("DELETE", f"{OWN}/{foreign}", site.pending))[0] == 404


async def test_the_others_end_and_the_own_stays(site: Site) -> None:
    mine, other, theirs = [await site.accounts.session(who) for who in (site.user, site.user, site.admin)]
    assert await site.post_ok(f"{OWN}/end_others", mine) == {"ended": 1}
    assert [(await site.call("GET", OWN, token))[0] for token in (mine, other, theirs)] == [200, 401, 200]


async def test_a_key_lists_and_ends_nothing(site: Site) -> None:
    await site.accounts.grant_keys(site.user)
    _, key = await site.accounts.keys.issue(site.user)
    token = await site.accounts.session(site.user)
    assert [each["current"] for each in await site.get_ok(OWN, key)] == [False]
    jti = site.accounts.sessions.read(token).jti
    assert (await site.call("DELETE", f"{OWN}/{jti}", key))[0] == 403
    assert (await site.call("POST", f"{OWN}/end_others", key))[0] == 403
    assert await ids_of(site, site.user) == [jti]


async def test_administrators_list_and_end_those_of_others(site: Site) -> None:
    token = await site.accounts.session(site.user)
    await site.accounts.grant_keys(site.user)
    _, key = await site.accounts.keys.issue(site.user)
    path = f"/api/v1/users/{site.user.id}/sessions"
    assert [each["id"] for each in await site.get_ok(path, site.admin)] == await ids_of(site, site.user)
    site.accounts.memory.tables.sessions.clear()
    assert (await site.call("DELETE", path, site.admin)) == (200, True)
    assert (await site.call("GET", OWN, token))[0] == 401, "also without a row"
    assert (await site.call("GET", OWN, key))[0] == 200
    for method in ("GET", "DELETE"):
        assert (await site.call(method, "/api/v1/users/gone/sessions", site.admin))[0] == 404


async def test_the_running_requests_of_an_ended_session_are_cut() -> None:
    accounts, started, hold = Accounts(), asyncio.Semaphore(0), asyncio.Event()
    user = await accounts.add_user("user")
    shut_out = AccessRevocation()
    accounts.changes.subscribe(shut_out.on_change)

    async def wait(request: web.Request) -> web.StreamResponse:
        started.release()
        await hold.wait()
        return json_reply({})

    rows = [*nouns(accounts).routes(), Route("GET", "/wait", wait, RouteAccess.VERIFIED, "Wait")]
    mine, stolen = await accounts.session(user), await accounts.session(user)
    async with serving(rows, authenticator=accounts.authenticator, shut_out=shut_out) as client:

        async def get(token: str) -> int:
            async with client.get("/wait", headers=bearer(token)) as reply:
                return reply.status

        kept, cut = asyncio.ensure_future(get(mine)), asyncio.ensure_future(get(stolen))
        async with asyncio.timeout(5):
            await started.acquire()
            await started.acquire()
            jti = accounts.sessions.read(stolen).jti
            async with client.delete(f"{OWN}/{jti}", headers=bearer(mine)) as reply:
                assert reply.status == 200
            assert await cut == 401
            assert not kept.done()
            hold.set()
            assert await kept == 200
