"""gatewayctl log."""

import json
import logging

from tests.fakes.daemons.control_socket import Ctl


async def test_levels_are_shown_and_set(ctl: Ctl) -> None:
    assert "gatewayd" in (await ctl("log", "level")).out
    done = await ctl("log", "level", "gatewayd.test_logs", "debug", "-o", "json")
    assert json.loads(done.out) == {"logger": "gatewayd.test_logs", "level": "debug", "changed": True}
    assert (await ctl("log", "level", "gatewayd.test_logs", "loud")).code == 1
    missing = await ctl("log", "level", "gatewayd.test_logs")
    assert (missing.code, missing.out) == (2, "")
    await ctl("log", "level", "gatewayd.test_logs", "default")
    assert logging.getLogger("gatewayd.test_logs").level == logging.NOTSET
