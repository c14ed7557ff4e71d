"""Tests for gatewayd.http.public.accounts.users."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.accounts import users
from gatewayd.accounts.records import Role, UserChange
from gatewayd.accounts.sessions import CONFIRMATION_SECONDS
from gatewayd.http.public.accounts.users import UserRoutes
from tests.fakes.accounts.services import Accounts, Site, check_access, serving_accounts
from tests.gatewayd.http.public.accounts.test_serializers import USER_KEYS

BASE = "/api/v1/users"
INFO_KEYS = {
    "id",
    "name",
    "email",
    "role",
    "bio",
    "groups",
    "is_active",
    "status_emoji",
    "status_message",
    "status_expires_at",
}


def nouns(accounts: Accounts) -> UserRoutes:
    return UserRoutes(accounts.users, accounts.groups, accounts.sessions, accounts.clock)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    accounts = Accounts()
    async with serving_accounts(accounts, nouns(accounts).routes()) as made:
        yield made


async def test_access(site: Site) -> None:
    assert await check_access(site, nouns(site.accounts).routes()) == 15


async def test_a_page_of_accounts(site: Site) -> None:
    group_id = await site.accounts.grant_keys(site.user)
    body = await site.get_ok(f"{BASE}/?order_by=name&direction=desc", site.admin)
    assert (body["total"], [user["name"] for user in body["users"]]) == (3, ["user", "pending", "admin"])
    assert set(body["users"][0]) == USER_KEYS | {"group_ids"}
    assert [user["group_ids"] for user in body["users"]] == [[group_id], [], []]
    found = await site.get_ok(f"{BASE}?query=PEND", site.admin)
    assert [user["id"] for user in found["users"]] == [site.pending.id]
    assert (await site.get_ok(f"{BASE}/?page=2", site.admin))["users"] == []
    for bad in ("page=0", "order_by=password", "direction=up", "query=%01"):
        assert (await site.call("GET", f"{BASE}/?{bad}", site.admin))[0] == 400


async def test_short_lists(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "USERS_PER_PAGE", 2)
    group_id = await site.accounts.grant_keys(site.user)
    body = await site.get_ok(f"{BASE}/all", site.admin)
    assert body["total"] == 3
    user = next(row for row in body["users"] if row["id"] == site.user.id)
    assert set(user) == INFO_KEYS
    assert user["groups"] == [{"id": group_id, "name": "key holders"}]
    assert site.accounts.users_store.read[-2:] == [2, 1]
    found = await site.get_ok(f"{BASE}/search?query=adm", site.user)
    assert ([row["name"] for row in found["users"]], found["total"]) == (["admin"], 1)


async def test_one_account(site: Site) -> None:
    group_id = await site.accounts.grant_keys(site.user)
    path = f"{BASE}/{site.user.id}"
    body = await site.get_ok(path, site.admin)
    assert set(body) == USER_KEYS | {"groups", "is_active"}
    assert body["groups"] == [{"id": group_id, "name": "key holders"}]
    assert set(await site.get_ok(f"{path}/info", site.user)) == INFO_KEYS
    assert await site.get_ok(f"{path}/active", site.user) == {"active": True}
    assert [group["id"] for group in await site.get_ok(f"{path}/groups", site.admin)] == [group_id]
    assert [group["id"] for group in await site.get_ok(f"{BASE}/groups", site.user)] == [group_id]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/nobody", None),
        ("GET", "/nobody/info", None),
        ("GET", "/nobody/active", None),
        ("GET", "/nobody/groups", None),
        ("POST", "/nobody/update", {"name": "x"}),
        ("POST", "/update/role", {"id": "nobody", "role": "user"}),
        ("DELETE", "/nobody", None),
    ],
)
async def test_unknown_accounts(site: Site, method: str, path: str, body: Any) -> None:
    assert (await site.call(method, BASE + path, site.admin, body))[0] == 404


async def test_own_settings_are_merged(site: Site) -> None:
    assert await site.get_ok(f"{BASE}/user/settings", site.user) is None
    await site.post_ok(f"{BASE}/user/settings/update", site.user, {"ui": {"a": 1}})
    both = await site.post_ok(f"{BASE}/user/settings/update", site.user, {"x": 2})
    assert both == {"ui": {"a": 1}, "x": 2} == await site.get_ok(f"{BASE}/user/settings", site.user)
    await site.accounts.permissions.set_defaults({"settings": {"interface": False}}, by="test")
    status, body = await site.call("POST", f"{BASE}/user/settings/update", site.user, {"x": 3})
    assert (status, "settings.interface" in body["detail"]) == (403, True)
    await site.post_ok(f"{BASE}/user/settings/update", site.admin, {"x": 3})
    assert (await site.call("POST", f"{BASE}/user/settings/update", site.admin, [1]))[0] == 400


async def test_own_info_is_merged(site: Site) -> None:
    assert await site.get_ok(f"{BASE}/user/info", site.user) is None
    await site.post_ok(f"{BASE}/user/info/update", site.user, {"a": 1})
    assert await site.post_ok(f"{BASE}/user/info/update", site.user, {"b": 2}) == {"a": 1, "b": 2}
    assert await site.get_ok(f"{BASE}/user/info", site.user) == {"a": 1, "b": 2}


async def test_an_administrator_changes_an_account(site: Site) -> None:
    path = f"{BASE}/{site.user.id}/update"
    form = {"role": "admin", "name": "N", "email": "N@x", "profile_image_url": "/n.png", "password": ""}
    body = await site.post_ok(path, site.admin, form)
    assert set(body) == USER_KEYS
    assert (body["role"], body["name"], body["email"]) == ("admin", "N", "n@x")
    assert site.accounts.memory.tables.passwords[site.user.id] == "hash:secret"
    await site.post_ok(path, site.admin, {"password": "new"})
    assert site.accounts.memory.tables.passwords[site.user.id] == "hash:new"
    assert (await site.call("POST", path, site.admin, {"email": "admin@example.org"}))[0] == 409
    assert (await site.call("POST", path, site.admin, {"role": "root"}))[0] == 422
    back = await site.post_ok(f"{BASE}/update/role", site.admin, {"id": site.user.id, "role": "user"})
    assert back["role"] == "user"


async def test_the_own_address_needs_a_fresh_session(site: Site) -> None:
    path, other = f"{BASE}/{site.admin.id}/update", f"{BASE}/{site.user.id}/update"
    token = await site.accounts.session(site.admin)
    await site.accounts.grant_keys(site.admin)
    _, key = await site.accounts.keys.issue(site.admin)
    site.accounts.time += CONFIRMATION_SECONDS + 1
    same = {"email": "ADMIN@example.org ", "name": "Chief"}
    assert [(await site.call("POST", path, who, same))[0] for who in (token, key)] == [200, 200]
    for who in (token, key):
        status, body = await site.call("POST", path, who, {"email": "new@example.org"})
        assert (status, body["error"]["code"]) == (403, "confirmation_needed")
        assert (await site.call("POST", other, who, {"email": f"{len(who)}@example.org"}))[0] == 200
    assert (await site.accounts.users.get(site.admin.id)).email == "admin@example.org"
    await site.accounts.sessions.confirm(site.accounts.sessions.read(token).jti)
    assert (await site.post_ok(path, token, {"email": "new@example.org"}))["email"] == "new@example.org"


async def test_a_role_change_ends_sessions_and_counts_at_once(site: Site) -> None:
    token = await site.accounts.session(site.user)
    await site.get_ok(f"{BASE}/groups", token)
    await site.post_ok(f"{BASE}/{site.user.id}/update", site.admin, {"role": "pending"})
    assert (await site.call("GET", f"{BASE}/groups", token))[0] == 401
    fresh = await site.accounts.users.get(site.user.id)
    assert (await site.call("GET", f"{BASE}/groups", fresh))[0] == 403


async def test_a_deactivated_account_looks_pending_and_keeps_its_role(site: Site) -> None:
    second = await site.accounts.add_user("second", Role.ADMIN)
    await site.accounts.users.change(second.id, UserChange(active=False), None)
    path = f"{BASE}/{second.id}"
    shown = await site.get_ok(path, site.admin)
    assert (shown["role"], shown["active"]) == ("pending", False)
    await site.post_ok(f"{path}/update", site.admin, {"role": "pending", "name": "Second"})
    kept = await site.accounts.users.get(second.id)
    assert (kept.role, kept.active, kept.name) == (Role.ADMIN, False, "Second")
    shown = await site.post_ok(f"{path}/update", site.admin, {"role": "admin"})
    assert (shown["role"], shown["active"]) == ("admin", True)


async def test_an_administrator_deactivates_and_activates_an_account(site: Site) -> None:
    path = f"{BASE}/{site.user.id}"
    token = await site.accounts.session(site.user)
    shown = await site.post_ok(f"{path}/update", site.admin, {"active": False})
    assert (shown["role"], shown["active"]) == ("pending", False)
    assert (await site.call("GET", f"{BASE}/groups", token))[0] == 401
    shown = await site.post_ok(f"{path}/update", site.admin, {"active": True})
    assert (shown["role"], shown["active"]) == ("user", True)
    own = f"{BASE}/{site.admin.id}/update"
    assert (await site.call("POST", own, site.admin, {"active": False}))[0] == 403


async def test_who_is_protected(site: Site) -> None:
    second = await site.accounts.add_user("second", Role.ADMIN)
    first_path, second_path = f"{BASE}/{site.admin.id}", f"{BASE}/{second.id}"
    for method, path, who, body in (
        ("POST", f"{first_path}/update", second, {"name": "x"}),
        ("DELETE", first_path, second, None),
        ("DELETE", second_path, second, None),
        ("DELETE", first_path, site.admin, None),
        ("POST", f"{second_path}/update", second, {"role": "user"}),
    ):
        assert (await site.call(method, path, who, body))[0] == 403
    assert await site.call("DELETE", second_path, site.admin) == (200, True)
    assert (await site.call("DELETE", second_path, site.admin))[0] == 404
