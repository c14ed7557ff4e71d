"""Tests for gatewayd.assembly.scim."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd.assembly.gateway import assemble, reload
from gatewayd.assembly.scim import token_source
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings import Settings, load

FIRST, SECOND = "f" * 40, "s" * 40


def settings_for(state: Path, **values: str) -> Settings:
    return load(None, {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false", **values})


def is_accepted(check: Callable[[str], None], token: str) -> bool:
    try:
        check(token)
    except GatewayError:
        return False
    return True


def test_tokens_of_the_environment_are_not_ours_to_change(state: Path) -> None:
    source = token_source(settings_for(state, SCIM_ENABLED="true", SCIM_TOKEN=FIRST))
    assert (source.enabled, source.values, source.is_external) == (True, (FIRST,), True)
    assert "SCIM_TOKEN" in source.origin
    assert source.path == state / "scim-token"
    assert FIRST not in repr(source)


def test_tokens_of_the_file_are_no_setting(state: Path) -> None:
    file = state / "scim-token"
    file.write_text(f"{FIRST}\n{SECOND}\n")
    file.chmod(0o600)
    source = token_source(settings_for(state, SCIM_ENABLED="true"))
    assert (source.values, source.path, source.is_external) == ((), file, False)


async def test_the_database_takes_over_those_of_the_file(state: Path) -> None:
    file = state / "scim-token"
    file.write_text(f"{FIRST}\n{SECOND}\n")
    file.chmod(0o600)
    settings = settings_for(state, SCIM_ENABLED="true")
    async with AsyncExitStack() as stack:
        services = (await assemble(settings, stack)).services.provisioning
        await services.keeper.retire()
    async with AsyncExitStack() as stack:
        check = (await assemble(settings, stack)).services.provisioning.tokens.check
        assert (is_accepted(check, FIRST), is_accepted(check, SECOND)) == (True, False)


async def test_a_reload_puts_other_tokens_in_force(state: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        check = gateway.services.provisioning.tokens.check
        assert not is_accepted(check, FIRST)
        for tokens, accepted in (
            ({"SCIM_ENABLED": "true", "SCIM_TOKEN": FIRST}, (True, False)),
            ({"SCIM_ENABLED": "true", "SCIM_TOKEN": f"{SECOND} {FIRST}"}, (True, True)),
            ({"SCIM_ENABLED": "true", "SCIM_TOKEN": SECOND}, (False, True)),
            ({"SCIM_TOKEN": SECOND}, (False, False)),
        ):
            await reload(gateway, settings_for(state, **tokens))
            assert (is_accepted(check, FIRST), is_accepted(check, SECOND)) == accepted


async def test_a_reload_changes_the_address_of_resources(state: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state, WEBUI_URL="https://one.example.org/"), stack)
        assert gateway.services.provisioning.site.address == "https://one.example.org"
        await reload(gateway, settings_for(state, WEBUI_URL="https://two.example.org"))
        assert gateway.services.provisioning.site.address == "https://two.example.org"
        await reload(gateway, settings_for(state))
        assert gateway.services.provisioning.site.address == ""


async def test_the_provider_is_that_of_the_settings(state: Path) -> None:
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state, SCIM_AUTH_PROVIDER="okta"), stack)
        services = gateway.services.provisioning
        written = await services.users.create({"userName": "ada@example.org", "externalId": "x1"})
        assert services.provider == "okta"
        assert written.entry.user.scim == {"okta": {"external_id": "x1"}}
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state), stack)
        with pytest.raises(GatewayError) as caught:
            await gateway.services.provisioning.groups.create({"displayName": "Staff", "externalId": "x2"})
        assert caught.value.kind is ErrorKind.NOT_CONFIGURED
