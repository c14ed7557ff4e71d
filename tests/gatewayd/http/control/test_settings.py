"""`/v1/settings`."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.settings import SettingChange, SettingReset
from gatewayd.accounts.runtime_settings import DEFINITIONS
from tests.fakes.daemons.control_socket import Control


async def test_every_setting_is_listed(control: Control) -> None:
    listed = await control.call(control.client.call, routes.LIST_SETTINGS)
    assert [row.name for row in listed.settings] == [definition.name for definition in DEFINITIONS]
    assert {row.origin for row in listed.settings} == {"default"}


async def test_values_are_checked_whole_and_kept_as_their_type(control: Control) -> None:
    runtime = control.accounts.runtime
    for values in ({"ENABLE_SIGNUP": "false", "NONE": 1}, {"ENABLE_SIGNUP": "false", "DEFAULT_USER_ROLE": 7}):
        with pytest.raises(CommandError):
            await control.call(control.client.call, routes.SET_SETTINGS, body=SettingChange(values=values))
        assert runtime.flag("ENABLE_SIGNUP") is True
    done = await control.call(
        control.client.call, routes.SET_SETTINGS, body=SettingChange(values={"ENABLE_SIGNUP": "false"})
    )
    assert [(row.value, row.origin) for row in done.settings] == [(False, "stored")]
    assert (done.outcome, runtime.flag("ENABLE_SIGNUP")) == ("changed", False)


async def test_reset_and_its_dry_run_tell_the_configured_value(control: Control) -> None:
    client, runtime = control.client, control.accounts.runtime
    await control.call(client.call, routes.SET_SETTINGS, body=SettingChange(values={"ENABLE_SIGNUP": False}))
    for dry_run, kept in ((True, False), (False, True)):
        done = await control.call(
            client.call, routes.RESET_SETTINGS, body=SettingReset(names=["ENABLE_SIGNUP"]), dry_run=dry_run
        )
        assert [(row.value, row.origin) for row in done.settings] == [(True, "default")]
        assert runtime.flag("ENABLE_SIGNUP") is kept
    again = await control.call(client.call, routes.RESET_SETTINGS, body=SettingReset(names=["ENABLE_SIGNUP"]))
    assert again.outcome == "unchanged"
