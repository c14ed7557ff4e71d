"""Tests for gatewayd.http.public.accounts.groups."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.accounts import users
from gatewayd.accounts.records import GroupChange, MembershipSource, UserChange
from gatewayd.http.public.accounts.groups import GroupRoutes
from tests.fakes.accounts.services import Accounts, Site, check_access, serving_accounts

BASE = "/api/v1/groups"
KEYS = {"features": {"api_keys": True}}
GROUP_KEYS = {
    "id",
    "user_id",
    "name",
    "description",
    "data",
    "meta",
    "permissions",
    "created_at",
    "updated_at",
    "member_count",
}


def nouns(accounts: Accounts) -> GroupRoutes:
    return GroupRoutes(accounts.groups, accounts.users, accounts.clock)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    accounts = Accounts()
    async with serving_accounts(accounts, nouns(accounts).routes()) as made:
        yield made


async def create(site: Site, **fields: Any) -> Any:
    form = {"name": "staff", "description": "all", **fields}
    return await site.post_ok(f"{BASE}/create", site.admin, form)


async def test_access(site: Site) -> None:
    assert await check_access(site, nouns(site.accounts).routes()) == 11


async def test_a_new_group(site: Site) -> None:
    group = await create(site, permissions={**KEYS, "colours": {"red": True}}, data={"config": {}})
    assert set(group) == GROUP_KEYS
    assert (group["user_id"], group["permissions"], group["member_count"]) == (site.admin.id, KEYS, 0)
    assert await site.get_ok(f"{BASE}/id/{group['id']}", site.admin) == group
    assert (await site.call("POST", f"{BASE}/create", site.admin, {"name": "STAFF"}))[0] == 409
    assert (await site.call("POST", f"{BASE}/create", site.admin, {}))[0] == 422
    assert (await site.call("POST", f"{BASE}/create", site.admin, {"name": " "}))[0] == 400


@pytest.mark.parametrize("path", [BASE, f"{BASE}/", f"{BASE}/?share=true"])
async def test_people_see_their_own_groups(site: Site, path: str) -> None:
    one, _ = await create(site), await create(site, name="other")
    await site.accounts.groups.add_members(one["id"], [site.user.id])
    assert [group["name"] for group in await site.get_ok(path, site.admin)] == ["other", "staff"]
    assert [group["name"] for group in await site.get_ok(path, site.user)] == ["staff"]


async def test_the_short_form_shows_no_rights(site: Site) -> None:
    group = await create(site, permissions=KEYS)
    shown = await site.get_ok(f"{BASE}/id/{group['id']}/info", site.user)
    assert set(shown) == GROUP_KEYS - {"permissions", "data", "meta"}


async def test_members(site: Site) -> None:
    path = f"{BASE}/id/{(await create(site))['id']}"
    form = {"user_ids": [site.user.id, "unknown", site.pending.id]}
    assert (await site.post_ok(f"{path}/users/add", site.admin, form))["member_count"] == 2
    members = await site.post_ok(f"{path}/users", site.admin)
    assert [member["name"] for member in members] == ["pending", "user"]
    exported = await site.get_ok(f"{path}/export", site.admin)
    assert set(exported) == GROUP_KEYS | {"user_ids"}
    assert sorted(exported["user_ids"]) == sorted([site.user.id, site.pending.id])
    form = {"user_ids": [site.user.id]}
    assert (await site.post_ok(f"{path}/users/remove", site.admin, form))["member_count"] == 1
    assert (await site.call("POST", f"{path}/users/add", site.admin, {"user_ids": "x"}))[0] == 422


async def test_members_are_read_in_pages(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "USERS_PER_PAGE", 2)
    group_id = (await create(site))["id"]
    people = [site.user, site.pending, site.admin]
    await site.accounts.groups.add_members(group_id, [each.id for each in people])
    site.accounts.users_store.read.clear()
    members = await site.post_ok(f"{BASE}/id/{group_id}/users", site.admin)
    assert [member["name"] for member in members] == ["admin", "pending", "user"]
    exported = await site.get_ok(f"{BASE}/id/{group_id}/export", site.admin)
    assert exported["user_ids"] == [member["id"] for member in members]
    assert site.accounts.users_store.read == [2, 1]


async def test_members_with_their_sources(site: Site) -> None:
    groups = site.accounts.groups
    group_id = (await create(site))["id"]
    await groups.change(group_id, GroupChange(scim={"entra": {"external_id": "g-1"}}))
    await groups.add_members(group_id, [site.user.id])
    await groups.add_members(group_id, [site.user.id, site.pending.id], MembershipSource.SCIM)
    await site.accounts.users.change(site.pending.id, UserChange(active=False), None)
    body = await site.get_ok(f"{BASE}/id/{group_id}/members", site.admin)
    assert (body["total"], body["external_ids"]) == (2, {"entra": "g-1"})
    assert body["sources"] == {"manual": 1, "scim": 2}
    shown = {each["name"]: (each["active"], each["sources"]) for each in body["members"]}
    assert shown == {"pending": (False, ["scim"]), "user": (True, ["manual", "scim"])}


async def test_changes(site: Site) -> None:
    path = f"{BASE}/id/{(await create(site, permissions=KEYS))['id']}"
    changed = await site.post_ok(f"{path}/update", site.admin, {"name": "crew", "description": "few"})
    assert (changed["name"], changed["description"], changed["permissions"]) == ("crew", "few", KEYS)
    changed = await site.post_ok(f"{path}/update", site.admin, {"name": "crew", "permissions": {}})
    assert changed["permissions"] == {}
    assert await site.call("DELETE", f"{path}/delete", site.admin) == (200, True)
    assert (await site.call("DELETE", f"{path}/delete", site.admin))[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/info", None),
        ("GET", "/export", None),
        ("GET", "/members", None),
        ("POST", "/users", None),
        ("POST", "/update", {"name": "x"}),
        ("POST", "/users/add", {"user_ids": []}),
        ("POST", "/users/remove", {"user_ids": []}),
        ("DELETE", "/delete", None),
    ],
)
async def test_unknown_groups(site: Site, method: str, path: str, body: Any) -> None:
    assert (await site.call(method, f"{BASE}/id/nothing{path}", site.admin, body))[0] == 404


async def test_a_grant_counts_on_the_next_request(site: Site) -> None:
    token = await site.accounts.session(site.user)
    actor = await site.accounts.authenticator.authenticate(token, "GET", "/x")
    assert not actor.may("features", "api_keys")
    group = await create(site, permissions=KEYS)
    await site.post_ok(f"{BASE}/id/{group['id']}/users/add", site.admin, {"user_ids": [site.user.id]})
    actor = await site.accounts.authenticator.authenticate(token, "GET", "/x")
    assert actor.may("features", "api_keys")
