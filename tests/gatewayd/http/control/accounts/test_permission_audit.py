"""`/v1/permissions/audit`."""

from gatewayctl.wire import routes
from gatewayctl.wire.models import Holders
from gatewayctl.wire.plugins import NewPlugin
from tests.fakes.daemons.control_documents import boss
from tests.fakes.daemons.control_plugins import TOOL
from tests.fakes.daemons.control_socket import Control


async def test_holders_have_names(control: Control) -> None:
    await boss(control)
    ann, client = await control.accounts.add_user("ann"), control.client
    await control.call(
        client.call, routes.INSTALL_PLUGIN, "tool", "weather", body=NewPlugin(content=TOOL, user=ann.id)
    )
    assert (await control.call(client.call, routes.GET_PLUGIN, "tool", "weather")).user == ann.email
    holders = Holders(users=[ann.id], everyone=True, permission="write")
    await control.call(client.call, routes.GRANT_PLUGIN, "tool", "weather", body=holders)
    found = (await control.call(client.call, routes.AUDIT_PERMISSIONS)).findings
    assert [(one.finding, one.tool, one.holder, one.accounts) for one in found] == [
        ("owner", "weather", ann.email, 1),
        ("write_grant", "weather", ann.email, 1),
        ("write_grant", "weather", "*", None),
    ]
