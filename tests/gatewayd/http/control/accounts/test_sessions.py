"""`/v1/users/{ref}/sessions`."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayd.errors import GatewayError
from tests.fakes.daemons.control_socket import Control


async def test_sessions_are_listed_and_ended(control: Control) -> None:
    client = control.client
    ann = await control.accounts.add_user("ann")
    token = await control.accounts.session(ann)
    for ref in (ann.id, ann.email):
        (shown,) = (await control.call(client.call, routes.LIST_SESSIONS, ref)).sessions
        assert (shown.method, shown.address, shown.provider) == ("password", "", "")
        assert shown.expires_at > shown.created_at == shown.last_seen_at
    dry = await control.call(client.call, routes.END_SESSIONS, ann.id, dry_run=True)
    assert (dry.outcome, dry.email) == ("changed", ann.email)
    await control.accounts.authenticator.authenticate(token, "GET", "/api/models")
    await control.call(client.call, routes.END_SESSIONS, ann.id)
    with pytest.raises(GatewayError, match="ended"):
        await control.accounts.authenticator.authenticate(token, "GET", "/api/models")
    assert (await control.call(client.call, routes.LIST_SESSIONS, ann.id)).sessions == []
    with pytest.raises(CommandError) as caught:
        await control.call(client.call, routes.END_SESSIONS, "nobody")
    assert caught.value.kind == "not_found"
