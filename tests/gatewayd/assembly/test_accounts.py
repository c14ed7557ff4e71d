"""Tests for gatewayd.assembly.accounts."""

import stat
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd.accounts.records import Role
from gatewayd.accounts.sign_in import SignInClient
from gatewayd.assembly.accounts import configured_permissions, configured_values, signing_secrets
from gatewayd.assembly.gateway import assemble
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings import load


def test_signing_secret_is_made_once_and_kept_private(tmp_path: Path) -> None:
    settings = load(None, {"DATA_DIR": str(tmp_path)})
    first = signing_secrets(settings).current
    assert len(first) >= 32
    assert signing_secrets(settings).current == first
    (kept,) = tmp_path.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_configured_secret_is_taken_and_not_written(tmp_path: Path) -> None:
    settings = load(None, {"DATA_DIR": str(tmp_path), "WEBUI_SECRET_KEY": "s" * 40})
    assert signing_secrets(settings).current == "s" * 40
    assert list(tmp_path.iterdir()) == []


def test_only_permissions_that_are_named_are_configured() -> None:
    assert configured_permissions(load(None, {})) == {}
    settings = load(None, {"USER_PERMISSIONS_FEATURES_API_KEYS": "true"})
    assert configured_permissions(settings) == {"features": {"api_keys": True}}


def test_configured_values_know_where_they_come_from() -> None:
    value = configured_values(load(None, {"ENABLE_API_KEYS": "true"}))["ENABLE_API_KEYS"]
    assert (value.value, value.explicit) == (True, True)
    assert "ENABLE_API_KEYS" in value.origin


async def test_the_environment_makes_the_first_administrator(state: Path) -> None:
    given = {"WEBUI_ADMIN_EMAIL": "Root@example.org", "WEBUI_ADMIN_PASSWORD": "correct horse"}
    base = {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false"}
    for name in ("Root", "Other"):
        async with AsyncExitStack() as stack:
            settings = load(None, {**base, **given, "WEBUI_ADMIN_NAME": name})
            accounts = (await assemble(settings, stack)).services.accounts
            (only,), count = await accounts.users.list()
            assert (count, only.email, only.name, only.role) == (1, "root@example.org", "Root", Role.ADMIN)
            assert accounts.runtime.flag("ENABLE_SIGNUP") is False
            assert await accounts.sign_in.sign_in(only.email, "correct horse", SignInClient("")) == only


async def test_a_weak_password_of_the_environment_stops_the_start(state: Path) -> None:
    given = {"WEBUI_ADMIN_EMAIL": "root@example.org", "WEBUI_ADMIN_PASSWORD": "password1"}
    settings = load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false", **given})
    async with AsyncExitStack() as stack:
        with pytest.raises(GatewayError, match="webui_admin_email: cannot accept password") as caught:
            await assemble(settings, stack)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
