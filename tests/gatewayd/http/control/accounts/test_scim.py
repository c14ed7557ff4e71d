"""`/v1/scim`."""

from gatewayctl.wire import routes
from gatewayctl.wire.groups import NewGroup
from gatewayctl.wire.scim import Link
from gatewayd.accounts.records import MembershipSource, Role
from gatewayd.scim.request_log import LoggedRequest
from tests.fakes.accounts.services import NOON
from tests.fakes.daemons.control_socket import Control


def seen(number: int, status: int = 200) -> LoggedRequest:
    detail = "cannot accept the SCIM token: it is not valid" if status == 401 else ""
    return LoggedRequest(
        NOON + number, "GET", "/api/v1/scim/v2/Users", status, "192.0.2.1", f"r{number}", detail
    )


async def test_the_state_of_provisioning(control: Control) -> None:
    client, accounts = control.client, control.accounts
    empty = await control.call(client.call, routes.GET_SCIM_STATUS)
    assert (empty.users, empty.token_count, empty.last_request, empty.last_refused) == (0, 0, None, None)
    ann = await accounts.add_user("ann")
    await accounts.add_user("pat", Role.PENDING)
    await control.call(client.call, routes.LINK_USER, ann.id, body=Link(external_id="1"))
    group = await control.call(client.call, routes.CREATE_GROUP, body=NewGroup(name="g"))
    await accounts.groups.add_members(group.id, [ann.id], MembershipSource.SCIM)
    await control.call(client.call, routes.CREATE_SCIM_TOKEN)
    for number, status in ((1, 200), (2, 401), (3, 204)):
        control.activity.add(seen(number, status))
    status = await control.call(client.call, routes.GET_SCIM_STATUS)
    assert (status.enabled, status.provider, status.token_count) == (True, "okta", 1)
    assert status.token_origin == "the database"
    assert (status.users, status.active_users, status.provisioned_users) == (2, 1, 1)
    assert (status.groups, status.provisioned_groups, status.memberships) == (1, 0, 1)
    assert (status.last_request.request_id, status.last_refused.request_id) == ("r3", "r2")


async def test_the_last_requests_come_first(control: Control) -> None:
    for number in range(5):
        control.activity.add(seen(number, 401 if number == 4 else 200))
    listed = (await control.call(control.client.call, routes.LIST_SCIM_REQUESTS)).requests
    assert [each.request_id for each in listed] == ["r4", "r3", "r2", "r1", "r0"]
    assert listed[0].at == "2023-11-14T22:13:24Z"
    assert (listed[0].status, listed[0].address) == (401, "192.0.2.1")
    assert "not valid" in listed[0].detail
    limited = (await control.call(control.client.call, routes.LIST_SCIM_REQUESTS, limit=2)).requests
    assert [each.request_id for each in limited] == ["r4", "r3"]
