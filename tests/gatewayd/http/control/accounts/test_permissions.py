"""`/v1/permissions`."""

import asyncio

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.permissions import PermissionChange, PermissionReset
from gatewayd.accounts.permissions import BUILTIN_PERMISSIONS
from tests.fakes.daemons.control_socket import Control


async def test_every_leaf_is_listed_in_order(control: Control) -> None:
    listed = await control.call(control.client.call, routes.LIST_PERMISSIONS)
    assert [row.name for row in listed.permissions] == [
        f"{section}.{leaf}" for section, leaves in BUILTIN_PERMISSIONS.items() for leaf in leaves
    ]


async def test_changes_at_the_same_time_are_all_kept(control: Control) -> None:
    names = [f"workspace.{leaf}" for leaf in BUILTIN_PERMISSIONS["workspace"]]
    changes = [PermissionChange(values={name: True}) for name in names]
    await asyncio.gather(
        *(control.call(control.client.call, routes.SET_PERMISSIONS, body=change) for change in changes)
    )
    assert all(control.accounts.permissions.defaults()["workspace"].values())


async def test_reset_returns_to_the_initial_value(control: Control) -> None:
    client = control.client
    for value in (True, False):
        change = PermissionChange(values={"features.api_keys": value, "chat.delete": value})
        await control.call(client.call, routes.SET_PERMISSIONS, body=change)
        done = await control.call(
            client.call, routes.RESET_PERMISSIONS, body=PermissionReset(names=["features.api_keys"])
        )
        assert [(row.name, row.allowed, row.initial) for row in done.permissions] == [
            ("features.api_keys", False, False)
        ]
        assert control.accounts.permissions.defaults()["chat"]["delete"] is value


@pytest.mark.parametrize("name", ["features", "features.none", "none.api_keys"])
async def test_unknown_names(control: Control, name: str) -> None:
    for endpoint, body in (
        (routes.SET_PERMISSIONS, PermissionChange(values={name: True})),
        (routes.RESET_PERMISSIONS, PermissionReset(names=[name])),
    ):
        with pytest.raises(CommandError) as caught:
            await control.call(control.client.call, endpoint, body=body)
        assert caught.value.kind == "invalid_request"


async def test_a_dry_run_shows_the_result_and_keeps_nothing(control: Control) -> None:
    done = await control.call(
        control.client.call,
        routes.SET_PERMISSIONS,
        body=PermissionChange(values={"features.api_keys": True}),
        dry_run=True,
    )
    assert [(row.name, row.allowed) for row in done.permissions] == [("features.api_keys", True)]
    assert control.accounts.permissions.defaults()["features"]["api_keys"] is False
