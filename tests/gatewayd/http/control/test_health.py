"""`/v1/health`."""

from gatewayctl.wire import routes
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import NOON
from tests.fakes.daemons.control_socket import Control


async def test_the_state_of_a_daemon(control: Control) -> None:
    control.accounts.time += 5
    shown = await control.call(control.client.call, routes.GET_HEALTH)
    assert (shown.version, shown.protocol, shown.uptime_seconds) == ("1.2.3", "1", 5)
    assert shown.started_at == "2023-11-14T22:13:20Z"
    assert NOON == 1_700_000_000
    control.health.problem = GatewayError(
        ErrorKind.UNAVAILABLE, "cannot reach the database", place="db.example.org:5432/gatewayd"
    )
    failing = await control.call(control.client.call, routes.GET_HEALTH)
    assert (failing.status, failing.database) == ("fail", False)
    assert failing.database_problem == "cannot reach the database at db.example.org:5432/gatewayd"
