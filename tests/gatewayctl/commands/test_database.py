"""gatewayctl database."""

import json

from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.daemons.control_socket import Control, Ctl


async def test_a_sound_database(ctl: Ctl, control: Control) -> None:
    assert (await ctl("database", "check", "-o", "name")).out == "sound\n"
    shown = json.loads((await ctl("database", "check", "--timeout", "3600", "-o", "json")).out)
    assert shown == {"status": "sound", "problems": []}
    assert control.check.asked == [60.0, 3600.0]


async def test_a_damaged_database_is_a_failure(ctl: Ctl, control: Control) -> None:
    control.check.problems = ["the database's file is damaged: Tree 5"]
    failed = await ctl("database", "check")
    assert failed.code == 1
    assert "damaged: Tree 5" in failed.out
    control.health.problem = GatewayError(ErrorKind.INTERNAL, "the database's file is damaged: Tree 5")
    assert "damaged: Tree 5" in (await ctl("health")).out


async def test_a_check_that_cannot_be_made_is_a_failure(ctl: Ctl, control: Control) -> None:
    control.check.failure = GatewayError(ErrorKind.CONFLICT, "cannot check the database: another check runs")
    failed = await ctl("database", "check")
    assert (failed.code, failed.out) == (6, "")
    assert "another check runs" in failed.err
    assert (await ctl("database", "check", "--timeout", "0")).code == 2
