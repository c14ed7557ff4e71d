"""`/v1/plugins/tool/{id}/grant` and `revoke`."""

import asyncio

import pytest

from gatewayctl.wire import routes
from gatewayctl.wire.models import Holders
from gatewayctl.wire.plugins import NewPlugin
from tests.fakes.daemons.control_documents import boss, refused
from tests.fakes.daemons.control_plugins import FILTER, TOOL
from tests.fakes.daemons.control_socket import Control


@pytest.fixture(autouse=True)
async def weather(control: Control) -> None:
    await boss(control)
    await control.call(
        control.client.call, routes.INSTALL_PLUGIN, "tool", "weather", body=NewPlugin(content=TOOL)
    )


async def test_rights_are_given_and_taken(control: Control) -> None:
    client, call = control.client, control.call
    ann = await control.accounts.add_user("ann")
    given = await call(
        client.call,
        routes.GRANT_PLUGIN,
        "tool",
        "weather",
        body=Holders(users=[ann.email], permission="write"),
    )
    assert [(one.principal, one.permission) for one in given.grants] == [(ann.email, "write")]
    same = await call(
        client.call, routes.GRANT_PLUGIN, "tool", "weather", body=Holders(users=[ann.id], permission="write")
    )
    assert same.outcome == "unchanged"
    dry = await call(
        client.call, routes.GRANT_PLUGIN, "tool", "weather", body=Holders(everyone=True), dry_run=True
    )
    assert (dry.outcome, [one.principal for one in dry.grants]) == ("changed", [ann.email, "*"])
    gone = await call(
        client.call,
        routes.REVOKE_PLUGIN,
        "tool",
        "weather",
        body=Holders(users=[ann.email], permission="write"),
    )
    assert (gone.outcome, gone.grants) == ("changed", [])


async def test_grants_at_the_same_time_are_all_kept(control: Control) -> None:
    users = [await control.accounts.add_user(f"u{number}") for number in range(5)]
    wanted = [Holders(users=[user.id]) for user in users]
    await asyncio.gather(
        *(
            control.call(control.client.call, routes.GRANT_PLUGIN, "tool", "weather", body=each)
            for each in wanted
        )
    )
    shown = await control.call(control.client.call, routes.GET_PLUGIN, "tool", "weather")
    assert {grant.principal for grant in shown.grants} == {user.email for user in users}


async def test_functions_and_nobody(control: Control) -> None:
    client = control.client
    await control.call(client.call, routes.INSTALL_PLUGIN, "function", "loud", body=NewPlugin(content=FILTER))
    for family, plugin_id, holders, kind in (
        ("function", "loud", Holders(everyone=True), "invalid_request"),
        ("tool", "weather", Holders(), "invalid_request"),
        ("tool", "weather", Holders(users=["zoe@example.org"]), "not_found"),
        ("tool", "none", Holders(everyone=True), "not_found"),
    ):
        assert (
            await refused(control, client.call, routes.GRANT_PLUGIN, family, plugin_id, body=holders)
        ).kind == kind
