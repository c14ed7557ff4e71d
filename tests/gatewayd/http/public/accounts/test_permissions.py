"""Tests for gatewayd.http.public.accounts.permissions."""

from collections.abc import AsyncIterator

import pytest

from gatewayd.accounts.permissions import BUILTIN_PERMISSIONS
from gatewayd.http.public.accounts.permissions import PermissionRoutes
from tests.fakes.accounts.services import Accounts, Site, check_access, serving_accounts

DEFAULT = "/api/v1/users/default/permissions"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    accounts = Accounts()
    async with serving_accounts(accounts, PermissionRoutes(accounts.permissions).routes()) as made:
        yield made


async def test_access(site: Site) -> None:
    assert await check_access(site, PermissionRoutes(site.accounts.permissions).routes()) == 4


async def test_defaults_change_what_people_may_on_the_next_request(site: Site) -> None:
    assert await site.get_ok(DEFAULT, site.admin) == BUILTIN_PERMISSIONS
    assert await site.get_ok("/api/v1/users/permissions", site.user) == BUILTIN_PERMISSIONS
    tree = {
        **BUILTIN_PERMISSIONS,
        "features": {**BUILTIN_PERMISSIONS["features"], "api_keys": True, "flying": True},
    }
    stored = await site.post_ok(DEFAULT, site.admin, tree)
    assert stored["features"]["api_keys"] is True
    assert "flying" not in stored["features"]
    assert await site.get_ok("/api/v1/users/permissions", site.user) == stored
    admin = await site.get_ok("/api/v1/users/permissions", site.admin)
    assert (admin["features"]["api_keys"], admin["workspace"]["tools"]) == (False, True)
    assert await site.get_ok(f"{DEFAULT}/defaults", site.admin) == BUILTIN_PERMISSIONS


async def test_a_wrong_leaf_is_named(site: Site) -> None:
    status, body = await site.call("POST", DEFAULT, site.admin, {"chat": {"edit": "yes"}})
    assert (status, "chat.edit" in body["detail"]) == (400, True)
