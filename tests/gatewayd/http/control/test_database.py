"""`/v1/database`."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.database import DatabaseCheck
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.daemons.control_socket import Control


async def test_a_check_is_asked_for_with_its_limit(control: Control) -> None:
    found = await control.call(control.client.call, routes.CHECK_DATABASE, body=DatabaseCheck(timeout=5))
    assert (found.status, found.problems) == ("sound", [])
    assert control.check.asked == [5.0]
    control.check.problems = ["the database's file is damaged"]
    found = await control.call(control.client.call, routes.CHECK_DATABASE, body=DatabaseCheck())
    assert (found.status, found.problems) == ("damaged", ["the database's file is damaged"])


async def test_a_check_that_takes_too_long_is_refused(control: Control) -> None:
    control.check.failure = GatewayError(ErrorKind.TIMEOUT, "cannot check the database within 60 s")
    with pytest.raises(CommandError, match="within 60 s") as caught:
        await control.call(control.client.call, routes.CHECK_DATABASE, body=DatabaseCheck())
    assert caught.value.kind == "timeout"
