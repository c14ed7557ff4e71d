"""`/v1/log-levels`."""

import logging
from collections.abc import Iterator

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.health import LevelChange
from tests.fakes.daemons.control_socket import Control

NAME = "gatewayd.test_logs"


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    logging.getLogger(NAME).setLevel(logging.NOTSET)


async def test_a_level_is_set_shown_and_audited(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    change = LevelChange(logger=NAME, level="ERROR")
    found = await control.call(control.client.call, routes.SET_LOG_LEVEL, body=change)
    assert (found.logger, found.level, found.changed) == (NAME, "error", True)
    assert logging.getLogger(NAME).level == logging.ERROR
    listed = await control.call(control.client.call, routes.LIST_LOG_LEVELS)
    assert NAME in {row.logger for row in listed.levels}
    assert [record.getMessage() for record in caplog.records if record.name == "gatewayd.audit"] == [
        "log level"
    ]


async def test_a_bad_level_is_refused_by_name(control: Control) -> None:
    with pytest.raises(CommandError, match="cannot accept level"):
        await control.call(
            control.client.call, routes.SET_LOG_LEVEL, body=LevelChange(logger=NAME, level="loud")
        )
