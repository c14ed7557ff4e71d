"""`/v1/models`."""

import asyncio

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.models import AccessChange
from gatewayd.catalog.records import Grant
from tests.fakes.daemons.control_socket import Control


async def test_grants_at_the_same_time_are_all_kept(control: Control) -> None:
    users = [await control.accounts.add_user(f"u{number}") for number in range(5)]
    changes = [AccessChange(model="alpha", users=[user.id]) for user in users]
    await asyncio.gather(
        *(control.call(control.client.call, routes.GRANT_MODEL, body=change) for change in changes)
    )
    shown = await control.call(control.client.call, routes.GET_MODEL, id="alpha")
    assert {grant.principal for grant in shown.grants} == {user.email for user in users}


async def test_a_dry_run_gives_nothing(control: Control) -> None:
    done = await control.call(
        control.client.call, routes.GRANT_MODEL, body=AccessChange(model="alpha", everyone=True), dry_run=True
    )
    assert (done.outcome, done.dry_run, [grant.principal for grant in done.grants]) == (
        "changed",
        True,
        ["*"],
    )
    assert control.catalog.find_record("alpha") is None


async def test_a_grantee_who_is_gone_is_shown_by_id_and_can_be_taken_away(control: Control) -> None:
    grant = Grant("user", "u-gone", "read")
    await control.catalog.grant("alpha", [grant, Grant("group", "g-gone", "read")], by="")
    shown = await control.call(control.client.call, routes.GET_MODEL, id="alpha")
    assert [item.principal for item in shown.grants] == ["u-gone", "g-gone"]


async def test_a_model_that_no_source_lists_any_more_is_still_shown(control: Control) -> None:
    await control.call(
        control.client.call, routes.GRANT_MODEL, body=AccessChange(model="alpha", everyone=True)
    )
    control.source.models = control.source.models[1:]
    listed = await control.call(control.client.call, routes.LIST_MODELS, refresh=True)
    assert [(model.id, model.available) for model in listed.models] == [("beta/b:1", True), ("alpha", False)]


async def test_nobody_and_nothing(control: Control) -> None:
    for change, kind in (
        (AccessChange(model="alpha"), "invalid_request"),
        (AccessChange(model="gamma", everyone=True), "not_found"),
        (AccessChange(model="alpha", groups=["none"]), "not_found"),
    ):
        with pytest.raises(CommandError) as caught:
            await control.call(control.client.call, routes.GRANT_MODEL, body=change)
        assert caught.value.kind == kind
