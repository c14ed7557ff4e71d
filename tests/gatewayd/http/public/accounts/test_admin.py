"""Tests for gatewayd.http.public.accounts.admin."""

from collections.abc import AsyncIterator

import pytest

from gatewayd.accounts.admin_contact import AdminContact
from gatewayd.accounts.runtime_settings import DEFINITIONS, ConfiguredValue
from gatewayd.http.public.accounts.admin import AdminRoutes
from tests.fakes.accounts.services import Accounts, Site, check_access, serving_accounts
from tests.fakes.http.public_app import bearer

CONFIG = "/api/v1/auths/admin/config"


def nouns(accounts: Accounts) -> AdminRoutes:
    return AdminRoutes(accounts.runtime, AdminContact(accounts.users, accounts.runtime))


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    accounts = Accounts()
    async with serving_accounts(accounts, nouns(accounts).routes()) as made:
        yield made


async def test_access(site: Site) -> None:
    assert await check_access(site, nouns(site.accounts).routes()) == 5


async def test_all_settings_are_shown(site: Site) -> None:
    body = await site.get_ok(CONFIG, site.admin)
    assert list(body) == [row.name for row in DEFINITIONS]
    assert (body["ENABLE_API_KEYS"], body["JWT_EXPIRES_IN"], body["ADMIN_EMAIL"]) == (False, "4w", None)


async def test_a_whole_body_comes_back_changed(site: Site) -> None:
    body = await site.get_ok(CONFIG, site.admin)
    wanted = {**body, "ENABLE_API_KEYS": True, "ENABLE_COMMUNITY_SHARING": True}
    changed = await site.post_ok(CONFIG, site.admin, wanted)
    assert changed == {**body, "ENABLE_API_KEYS": True} == await site.get_ok(CONFIG, site.admin)
    assert site.accounts.runtime.flag("ENABLE_API_KEYS") is True


@pytest.mark.parametrize(
    ("form", "key"), [({"JWT_EXPIRES_IN": "x"}, "JWT_EXPIRES_IN"), ({"ENABLE_SIGNUP": None}, "ENABLE_SIGNUP")]
)
async def test_a_wrong_value_names_its_key_and_changes_nothing(
    site: Site, form: dict[str, object], key: str
) -> None:
    before = await site.get_ok(CONFIG, site.admin)
    status, body = await site.call("POST", CONFIG, site.admin, {"ENABLE_API_KEYS": True, **form})
    assert (status, body["error"]["param"]) == (400, key)
    assert key in body["detail"]
    assert await site.get_ok(CONFIG, site.admin) == before
    assert (await site.call("POST", CONFIG, site.admin, []))[0] == 400


async def test_a_value_that_the_configuration_holds_fast() -> None:
    configured = {"ENABLE_API_KEYS": ConfiguredValue(False, "environment", explicit=True)}
    accounts = Accounts(configured=configured, persistent=False)
    async with serving_accounts(accounts, nouns(accounts).routes()) as site:
        status, body = await site.call("POST", CONFIG, site.admin, {"ENABLE_API_KEYS": True})
        assert (status, "environment" in body["detail"]) == (409, True)


async def test_origins_and_the_way_back_to_configured_values() -> None:
    configured = {
        "ENABLE_SIGNUP": ConfiguredValue(False, "/etc/gatewayd/gatewayd.toml", explicit=True),
        "WEBUI_URL": ConfiguredValue("https://chat.example.org", "environment", explicit=True),
    }
    accounts = Accounts(configured=configured)
    async with serving_accounts(accounts, nouns(accounts).routes()) as site:
        await site.post_ok(CONFIG, site.admin, {"WEBUI_URL": "https://other.example.org"})
        shown = {row["name"]: row for row in await site.get_ok(f"{CONFIG}/origins", site.admin)}
        assert list(shown) == [row.name for row in DEFINITIONS]
        assert shown["ENABLE_SIGNUP"]["origin"] == "/etc/gatewayd/gatewayd.toml"
        address = shown["WEBUI_URL"]
        assert (address["origin"], address["value"]) == ("stored", "https://other.example.org")
        assert (address["configured"], address["fixed"]) == ("https://chat.example.org", False)
        body = await site.post_ok(f"{CONFIG}/reset", site.admin, {"names": ["WEBUI_URL", "WEBUI_URL"]})
        assert body["WEBUI_URL"] == "https://chat.example.org"
        for form, status in (({"names": ["COLOUR"]}, 404), ({"names": "x"}, 422), ({}, 422)):
            assert (await site.call("POST", f"{CONFIG}/reset", site.admin, form))[0] == status


async def test_a_fixed_value_says_so() -> None:
    configured = {"ENABLE_SIGNUP": ConfiguredValue(False, "environment", explicit=True)}
    accounts = Accounts(configured=configured, persistent=False)
    async with serving_accounts(accounts, nouns(accounts).routes()) as site:
        shown = {row["name"]: row for row in await site.get_ok(f"{CONFIG}/origins", site.admin)}
        assert [name for name, row in shown.items() if row["fixed"]] == ["ENABLE_SIGNUP"]


async def test_entries_that_match_nothing_are_told(site: Site) -> None:
    headers = bearer(await site.accounts.session(site.admin))
    form = {"API_KEYS_ALLOWED_ENDPOINTS": "/api/models, größe"}
    async with site.client.post(CONFIG, json=form, headers=headers) as reply:
        assert reply.status == 200
        assert "matches nothing" in reply.headers["X-Gateway-Warning"]
    async with site.client.post(CONFIG, json={"API_KEYS_ALLOWED_ENDPOINTS": "/a"}, headers=headers) as reply:
        assert "X-Gateway-Warning" not in reply.headers


async def test_whom_to_ask(site: Site) -> None:
    path = "/api/v1/auths/admin/details"
    assert await site.get_ok(path, site.pending) == {"name": "admin", "email": "admin@example.org"}
    await site.accounts.runtime.set({"ADMIN_EMAIL": "help@example.org"}, by="test")
    assert (await site.get_ok(path, site.pending))["email"] == "help@example.org"
    await site.accounts.runtime.set({"SHOW_ADMIN_DETAILS": False}, by="test")
    assert (await site.call("GET", path, site.pending))[0] == 400
