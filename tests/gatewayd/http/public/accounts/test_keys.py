"""Tests for gatewayd.http.public.accounts.keys."""

import base64
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.accounts.records import Role, User
from gatewayd.http.idempotency import IdempotentWrites
from gatewayd.http.public.accounts.keys import KeyRoutes
from gatewayd.resumption.idempotency import IdempotentReplies
from gatewayd.tasks import TaskRegistry
from tests.fakes.accounts.services import Accounts, Site, check_access, serving_accounts
from tests.fakes.http.public_app import bearer
from tests.fakes.storage.streams import MemoryReplies

ONE, MANY = "/api/v1/auths/api_key", "/api/v1/auths/api_keys"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    accounts = Accounts()
    async with serving_accounts(accounts, KeyRoutes(accounts.keys, accounts.users).routes()) as made:
        yield made


async def test_access(site: Site) -> None:
    assert await check_access(site, KeyRoutes(site.accounts.keys, site.accounts.users).routes()) == 8


@pytest.mark.parametrize("role", [Role.ADMIN, Role.USER])
async def test_both_levels_are_needed_for_every_verb(site: Site, role: Role) -> None:
    who = site.admin if role is Role.ADMIN else site.user
    for method in ("POST", "GET", "DELETE"):
        status, body = await site.call(method, ONE, who)
        assert status == 403
        assert "API key" in body["detail"]
        assert "ENABLE_API_KEYS" in body["detail"]
    await site.accounts.runtime.set({"ENABLE_API_KEYS": True}, by="test")
    status, body = await site.call("POST", ONE, who)
    assert (status, "features.api_keys" in body["detail"]) == (403, True)
    await site.accounts.grant_keys(who)
    body = await site.post_ok(ONE, who)
    assert body["api_key"].startswith("sk-")
    assert (await site.call("GET", ONE, who))[0] == 404
    assert await site.call("DELETE", ONE, who) == (200, True)
    assert await site.call("DELETE", ONE, who) == (200, True)


@pytest.mark.parametrize("path", [ONE, MANY])
async def test_named_keys(site: Site, path: str) -> None:
    await site.accounts.grant_keys(site.user)
    ends = site.accounts.time + 60
    body = await site.post_ok(path, site.user, {"name": "backup", "expires_at": ends})
    assert set(body) == {"api_key", "id", "name", "prefix", "expires_at", "last_used_at", "created_at"}
    assert (body["name"], body["expires_at"]) == ("backup", ends)
    assert (await site.call("POST", path, site.user, {"name": "Backup"}))[0] == 409
    assert (await site.call("POST", path, site.user, {"name": ""}))[0] == 400
    assert (await site.call("POST", path, site.user, {"expires_at": 1}))[0] == 400
    assert (await site.call("POST", path, site.user, {"expires_at": "soon"}))[0] == 422


@pytest.mark.parametrize("path", [ONE, MANY])
async def test_a_key_that_a_key_makes_ends_with_it(site: Site, path: str) -> None:
    await site.accounts.grant_keys(site.user)
    ends = site.accounts.time + 60
    key = (await site.post_ok(path, site.user, {"expires_at": ends}))["api_key"]
    for form in ({}, {"expires_at": None}):
        made = await site.post_ok(path, key, form)
        assert made["expires_at"] == ends
        # And so on.
        assert (await site.post_ok(path, made["api_key"]))["expires_at"] == ends
    assert (await site.call("POST", path, key, {"expires_at": ends + 1}))[0] == 400


async def test_lists_never_show_values(site: Site) -> None:
    listed = await site.get_ok(MANY, site.user)
    assert (listed["keys"], listed["total"], len(listed["missing"])) == ([], 0, 2)
    await site.accounts.grant_keys(site.user, site.admin)
    value = (await site.post_ok(MANY, site.user, {"name": "one"}))["api_key"]
    await site.post_ok(MANY, site.admin)
    listed = await site.get_ok(MANY, value)
    assert ([key["name"] for key in listed["keys"]], listed["missing"]) == (["one"], [])
    assert value not in str(listed)
    assert set(listed["keys"][0]) == {"id", "name", "prefix", "expires_at", "last_used_at", "created_at"}


async def test_one_key_can_be_ended_by_its_owner_only(site: Site) -> None:
    await site.accounts.grant_keys(site.user, site.admin)
    first = await site.post_ok(MANY, site.user)
    second = await site.post_ok(MANY, site.user)
    assert (await site.call("DELETE", f"{MANY}/{first['id']}", site.admin))[0] == 404
    assert (await site.call("DELETE", f"{ONE}?id={first['id']}", site.admin))[0] == 404
    assert await site.call("DELETE", f"{ONE}?id={first['id']}", site.user) == (200, True)
    assert (await site.call("GET", MANY, first["api_key"]))[0] == 401
    await site.accounts.runtime.set({"ENABLE_API_KEYS": False}, by="test")
    assert await site.call("DELETE", f"{MANY}/{second['id']}", site.user) == (200, True)
    assert (await site.call("DELETE", f"{MANY}/{second['id']}", site.user))[0] == 404


@pytest.mark.parametrize("way", ["bearer", "header", "basic and header", "cookie"])
async def test_every_way_of_sending_a_key_is_treated_alike(site: Site, way: str) -> None:
    await site.accounts.grant_keys(site.admin)
    value = (await site.post_ok(ONE, site.admin))["api_key"]
    basic = base64.b64encode(b"a:b").decode()
    headers = {
        "bearer": {"Authorization": f"bearer {value}"},
        "header": {"X-API-Key": value},
        "basic and header": {"Authorization": f"Basic {basic}", "x-api-key": value},
        "cookie": {"Cookie": f"token={value}"},
    }[way]

    async def status() -> int:
        async with site.client.get(MANY, headers=headers) as reply:
            return reply.status

    runtime = site.accounts.runtime
    assert await status() == 200
    await runtime.set({"ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS": True}, by="test")
    assert await status() == 403
    await runtime.set({"API_KEYS_ALLOWED_ENDPOINTS": MANY}, by="test")
    assert await status() == 200
    await runtime.set({"ENABLE_API_KEYS": False}, by="test")
    assert await status() == 403
    await runtime.set({"ENABLE_API_KEYS": True}, by="test")
    await site.accounts.keys.revoke_all(site.admin.id)
    assert await status() == 401


async def test_administrators_list_and_revoke_those_of_others(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    await site.accounts.grant_keys(site.user)
    await site.accounts.grant_keys(site.admin)
    key, value = await site.accounts.keys.issue(site.user, "laptop")
    own, _ = await site.accounts.keys.issue(site.admin, "mine")
    path = f"/api/v1/users/{site.user.id}/api_keys"
    assert await site.get_ok(path, site.admin) == await site.get_ok(MANY, site.user)
    assert value not in str(await site.get_ok(path, site.admin))
    for wanted in (own.id, "gone"):
        assert (await site.call("DELETE", f"{path}/{wanted}", site.admin))[0] == 404
    assert (await site.call("GET", "/api/v1/users/gone/api_keys", site.admin))[0] == 404
    caplog.set_level(logging.INFO, "gatewayd.audit")
    assert await site.call("DELETE", f"{path}/{key.id}", site.admin) == (200, True)
    assert (await site.call("GET", MANY, value))[0] == 401
    assert [each.id for each in await site.accounts.keys.list()] == [own.id]


async def test_repeated_idempotency_key_makes_one_key_for_its_user() -> None:
    accounts, tasks = Accounts(), TaskRegistry()
    writes = IdempotentWrites(IdempotentReplies(MemoryReplies(), tasks))
    async with serving_accounts(accounts, KeyRoutes(accounts.keys, accounts.users, writes).routes()) as site:

        async def create(who: User, body: dict[str, Any], path: str = ONE) -> tuple[int, Any, Any]:
            headers = {**bearer(await accounts.session(who)), "Idempotency-Key": "k"}
            async with site.client.post(path, json=body, headers=headers) as reply:
                return reply.status, await reply.json(), reply.headers

        for who in (site.user, site.admin):
            await accounts.grant_keys(who)
        status, made, headers = await create(site.user, {"name": "n"})
        assert (status, headers["Cache-Control"], "Idempotent-Replayed" in headers) == (
            200,
            "no-store",
            False,
        )
        status, again, headers = await create(site.user, {"name": "n"}, MANY)
        assert (status, again, headers["Cache-Control"]) == (200, made, "no-store")
        assert headers["Idempotent-Replayed"] == "true"
        status, refused, _ = await create(site.user, {"name": "m"})
        assert (status, refused["error"]["param"]) == (422, "Idempotency-Key")
        assert len(await accounts.keys.list(site.user.id)) == 1
        # Of another user it is another key, and a refusal is not kept.
        assert (await create(site.admin, {"expires_at": 1}))[0] == 400
        assert (await create(site.admin, {"name": "n"}))[1]["id"] != made["id"]
    await tasks.close()
