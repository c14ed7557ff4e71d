"""`/v1/invitations` and `/v1/users/{ref}/sign-in-link`."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.invitations import NewInvitation, NewSignInLink
from gatewayd.accounts.links.records import AcceptedInvitation
from gatewayd.accounts.records import NewGroup
from gatewayd.errors import GatewayError
from tests.fakes.daemons.control_socket import Control

ADDRESS = "https://ai.example.org/auth#"


async def test_invitations_are_created_listed_and_revoked(control: Control) -> None:
    call = control.client.call
    await control.accounts.groups.ensure(NewGroup("research"))
    wanted = NewInvitation(email="ada@example.org", role="admin", groups=["research"], expires_in=60)
    dry = await control.call(call, routes.CREATE_INVITATION, body=wanted, dry_run=True)
    assert (dry.address, (await control.call(call, routes.LIST_INVITATIONS)).invitations) == (None, [])
    made = await control.call(call, routes.CREATE_INVITATION, body=wanted)
    (listed,) = (await control.call(call, routes.LIST_INVITATIONS)).invitations
    assert (listed.id, listed.email, listed.role, listed.groups) == (
        made.id,
        "ada@example.org",
        "admin",
        ["research"],
    )
    assert listed.created_by.startswith("control:")
    token = made.address.removeprefix(f"{ADDRESS}invitation=")
    removed = await control.call(call, routes.REVOKE_INVITATION, made.id)
    assert (removed.outcome, removed.address) == ("removed", None)
    with pytest.raises(GatewayError):
        await control.accounts.invitations.accept(AcceptedInvitation(token, "Ada", "a long password"))
    with pytest.raises(CommandError) as caught:
        await control.call(call, routes.REVOKE_INVITATION, made.id)
    assert caught.value.kind == "not_found"


async def test_a_sign_in_link_is_given(control: Control) -> None:
    call, ann = control.client.call, await control.accounts.add_user("ann")
    made = await control.call(call, routes.CREATE_SIGN_IN_LINK, ann.email, body=NewSignInLink(expires_in=60))
    assert made.user == ann.email
    token = made.address.removeprefix(f"{ADDRESS}link=")
    assert await control.accounts.sign_in_links.use(token) == ann
    with pytest.raises(CommandError) as caught:
        await control.call(call, routes.CREATE_SIGN_IN_LINK, ann.id, body=NewSignInLink(expires_in=0))
    assert caught.value.param == "expires_in"
