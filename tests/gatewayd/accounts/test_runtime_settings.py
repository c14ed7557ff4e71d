import logging
from typing import Any

import pytest

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.runtime_settings import (
    DEFINITIONS,
    MAX_SESSION_SECONDS,
    ConfiguredValue,
    parse_lifetime,
)
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4w", 2_419_200),
        ("90s", 90),
        ("1.5h", 5400),
        ("2000ms", 2),
        ("1d", 86_400),
        ("-1", MAX_SESSION_SECONDS),
        ("0", MAX_SESSION_SECONDS),
        ("999999999w", MAX_SESSION_SECONDS),
    ],
)
def test_lifetimes(text: str, seconds: int) -> None:
    assert parse_lifetime(text) == seconds


def test_built_in_values_are_valid() -> None:
    for definition in DEFINITIONS:
        assert definition.check(definition.default) == definition.default


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENABLE_API_KEYS", "maybe"),
        ("ENABLE_API_KEYS", 1),
        ("DEFAULT_USER_ROLE", "root"),
        ("DEFAULT_USER_ROLE", ["user"]),
        ("JWT_EXPIRES_IN", "soon"),
        ("JWT_EXPIRES_IN", "100ms"),
        ("JWT_EXPIRES_IN", "-5s"),
        ("JWT_EXPIRES_IN", True),
        ("JWT_EXPIRES_IN", "٣s٣"),
        ("WEBUI_URL", "ftp://x"),
        ("ADMIN_EMAIL", 5),
        ("API_KEYS_ALLOWED_ENDPOINTS", "a\0"),
    ],
)
async def test_wrong_values_are_refused_by_name(accounts: Accounts, name: str, value: Any) -> None:
    with pytest.raises(GatewayError, match=f"cannot set {name}: expected") as caught:
        await accounts.runtime.set({"ENABLE_SIGNUP": False, name: value}, by="test")
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, name)
    assert accounts.runtime.flag("ENABLE_SIGNUP") is True


async def test_stored_wins_over_configured() -> None:
    configured = {"ENABLE_API_KEYS": ConfiguredValue("true", "environment", explicit=True)}
    accounts = Accounts(configured=configured)
    assert accounts.runtime.describe("ENABLE_API_KEYS").origin == "environment"
    await accounts.runtime.set({"ENABLE_API_KEYS": False, "JWT_EXPIRES_IN": "1h"}, by="test")
    assert accounts.heard == [AccountChange(None)]
    again = Accounts(memory=accounts.memory, configured=configured)
    await again.runtime.load()
    for runtime in (accounts.runtime, again.runtime):
        shown = runtime.describe("ENABLE_API_KEYS")
        assert (shown.value, shown.origin, shown.configured, shown.stored) == (False, "stored", True, True)
        assert runtime.session_seconds() == 3600
    assert await again.runtime.reset(["ENABLE_API_KEYS"]) == 1
    assert again.runtime.flag("ENABLE_API_KEYS") is True


async def test_explicit_values_are_fixed_when_nothing_persists() -> None:
    configured = {
        "ENABLE_SIGNUP": ConfiguredValue(False, "/etc/gatewayd.toml line 3", explicit=True),
        "ENABLE_API_KEYS": ConfiguredValue(False, "default", explicit=False),
    }
    accounts = Accounts(configured=configured, persistent=False)
    with pytest.raises(GatewayError, match=r"ENABLE_SIGNUP: /etc/gatewayd\.toml line 3 sets it") as caught:
        await accounts.runtime.set({"ENABLE_SIGNUP": True}, by="test")
    assert caught.value.kind is ErrorKind.CONFLICT
    assert not accounts.runtime.may_set("ENABLE_SIGNUP")
    await accounts.runtime.set({"ENABLE_SIGNUP": False, "ENABLE_API_KEYS": True}, by="test")
    assert accounts.runtime.flag("ENABLE_API_KEYS") is True


async def test_unknown_names(accounts: Accounts) -> None:
    with pytest.raises(GatewayError, match="did you mean ENABLE_API_KEYS") as caught:
        accounts.runtime.get("enable_api_key")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    with pytest.raises(GatewayError):
        await accounts.runtime.set({"NOTHING": 1}, by="test")


async def test_stored_values_that_are_no_longer_valid_are_named(
    accounts: Accounts, caplog: pytest.LogCaptureFixture
) -> None:
    await accounts.values_store.put({"DEFAULT_USER_ROLE": "root", "OTHER": 1}, at=0, by="test")
    with caplog.at_level(logging.WARNING):
        await accounts.runtime.load()
    assert accounts.runtime.text("DEFAULT_USER_ROLE") == "pending"
    assert [record.__dict__["setting"] for record in caplog.records] == ["DEFAULT_USER_ROLE"]


async def test_a_rehearsal_changes_nothing(accounts: Accounts) -> None:
    async with accounts.commits.rehearsal():
        await accounts.runtime.set({"ENABLE_API_KEYS": True}, by="test")
    assert accounts.runtime.flag("ENABLE_API_KEYS") is False
    assert await accounts.values_store.load() == {}


def test_the_list_has_every_setting_in_order(accounts: Accounts) -> None:
    assert [value.name for value in accounts.runtime.list()] == [row.name for row in DEFINITIONS]
    assert all(value.origin == "default" and value.summary for value in accounts.runtime.list())


async def test_a_wrong_configured_value_is_refused() -> None:
    accounts = Accounts(configured={"JWT_EXPIRES_IN": ConfiguredValue("x", "environment", explicit=True)})
    with pytest.raises(GatewayError, match="JWT_EXPIRES_IN"):
        accounts.runtime.list()


async def test_an_empty_address_is_none(accounts: Accounts) -> None:
    await accounts.runtime.set({"ADMIN_EMAIL": None, "WEBUI_URL": "https://x.org/"}, by="test")
    assert accounts.runtime.text("ADMIN_EMAIL") == ""
    assert accounts.runtime.text("WEBUI_URL") == "https://x.org"


async def test_a_reloaded_configuration_shows_where_nothing_is_stored(accounts: Accounts) -> None:
    await accounts.runtime.set({"ENABLE_SIGNUP": False}, by="test")
    accounts.heard.clear()
    fresh = {
        name: ConfiguredValue(True, "environment", explicit=True)
        for name in ("ENABLE_API_KEYS", "ENABLE_SIGNUP")
    }
    accounts.runtime.configure(fresh)
    assert accounts.heard == [AccountChange(None)]
    assert accounts.runtime.flag("ENABLE_API_KEYS") is True
    assert accounts.runtime.flag("ENABLE_SIGNUP") is False
    assert accounts.runtime.configured_origin("ENABLE_SIGNUP") == "environment"
    assert accounts.runtime.describe("ENABLE_SIGNUP").origin == "stored"
    with pytest.raises(GatewayError):
        accounts.runtime.configure({"JWT_EXPIRES_IN": ConfiguredValue("x", "environment", explicit=True)})
    assert accounts.runtime.flag("ENABLE_API_KEYS") is True


def test_values_are_checked_and_known_before_they_are_stored(accounts: Accounts) -> None:
    assert accounts.runtime.checked({"ENABLE_SIGNUP": "FALSE"}) == {"ENABLE_SIGNUP": False}
    assert accounts.runtime.known({"ENABLE_SIGNUP": 1, "ENABLE_FOLDERS": 2}) == {"ENABLE_SIGNUP": 1}
