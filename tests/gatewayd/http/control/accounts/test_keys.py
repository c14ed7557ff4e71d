"""`/v1/keys`."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.keys import NewKey
from tests.fakes.daemons.control_socket import Control


async def test_keys_are_issued_listed_and_revoked(control: Control) -> None:
    client = control.client
    ann = await control.accounts.add_user("ann")
    await control.accounts.grant_keys(ann)
    made = await control.call(
        client.call, routes.CREATE_KEY, body=NewKey(user=ann.email, name="k", expires_in=60)
    )
    assert made.value.startswith(made.prefix)
    for user in (None, ann.id):
        listed = (await control.call(client.call, routes.LIST_KEYS, user=user)).keys
        assert [(key.id, key.user, key.name) for key in listed] == [(made.id, ann.email, "k")]
    dry = await control.call(client.call, routes.REVOKE_KEY, made.id, dry_run=True)
    assert (dry.outcome, dry.value) == ("removed", None)
    await control.accounts.authenticator.authenticate(made.value, "GET", "/api/models")
    await control.call(client.call, routes.REVOKE_KEY, made.id)
    with pytest.raises(Exception, match="cannot"):
        await control.accounts.authenticator.authenticate(made.value, "GET", "/api/models")


@pytest.mark.parametrize("seconds", [0, -5])
async def test_expiry_lies_ahead(control: Control, seconds: int) -> None:
    with pytest.raises(CommandError) as caught:
        await control.call(
            control.client.call, routes.CREATE_KEY, body=NewKey(user="x", name="k", expires_in=seconds)
        )
    assert caught.value.param == "expires_in"


async def test_what_is_missing_is_said(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    with pytest.raises(CommandError) as caught:
        await control.call(control.client.call, routes.CREATE_KEY, body=NewKey(user=ann.email, name="k"))
    assert caught.value.kind == "forbidden"
    why = await control.call(control.client.call, routes.EXPLAIN_KEYS, ann.id)
    assert (why.allowed, why.user, len(why.missing)) == (False, ann.email, 2)
