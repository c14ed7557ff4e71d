"""`/v1/users/{ref}/link` and its like."""

import logging

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.groups import NewGroup
from gatewayctl.wire.scim import Link, Unlink
from tests.fakes.daemons.control_socket import Control


async def test_a_user_and_a_group_are_linked(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    client = control.client
    ann = await control.accounts.add_user("ann")
    await control.call(client.call, routes.CREATE_GROUP, body=NewGroup(name="g"))
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        user = await control.call(
            client.call, routes.LINK_USER, ann.email, body=Link(external_id="1", oauth_subject="s")
        )
        group = await control.call(client.call, routes.LINK_GROUP, "g", body=Link(external_id="1"))
    assert (user.outcome, user.external_ids, user.subjects) == ("changed", {"okta": "1"}, {"okta": "s"})
    assert (group.outcome, group.external_ids) == ("changed", {"okta": "1"})
    assert [record.getMessage() for record in caplog.records] == ["user link", "group link"]
    user = await control.call(client.call, routes.UNLINK_USER, ann.id, body=Unlink(external_id=True))
    assert (user.external_ids, user.subjects) == ({}, {"okta": "s"})
    group = await control.call(
        client.call, routes.UNLINK_GROUP, "g", body=Unlink(external_id=True), dry_run=True
    )
    assert (group.outcome, group.external_ids, group.dry_run) == ("changed", {}, True)
    assert (await control.call(client.call, routes.GET_GROUP, "g")).external_ids == {"okta": "1"}


async def test_what_a_link_needs(control: Control) -> None:
    client = control.client
    ann = await control.accounts.add_user("ann")
    await control.call(client.call, routes.CREATE_GROUP, body=NewGroup(name="g"))
    for endpoint, ref, body in (
        (routes.LINK_USER, ann.id, Link(external_id="")),
        (routes.UNLINK_USER, ann.id, Unlink()),
        (routes.LINK_GROUP, "g", Link(oauth_subject="s")),
    ):
        with pytest.raises(CommandError) as caught:
            await control.call(client.call, endpoint, ref, body=body)
        assert caught.value.kind == "invalid_request"
