"""A plugin of pytest: with `--moved backup` each daemon of a test serves a state that was restored.

python -m pytest -p tests.fakes.moves.plugin --moved postgresql tests/blackbox/test_credentials.py

`backup` is a backup that was made, verified and restored; `postgresql` is a copy to PostgreSQL and back.
"""

import pytest

from tests.fakes.daemons.daemon import Starting
from tests.fakes.moves.moved_daemon import MOVES, MovedDaemons


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addoption("--moved", choices=sorted(MOVES), help="What the state of daemons goes through.")


def pytest_configure(config: pytest.Config) -> None:
    """Put daemons with a moved state in the place of each daemon."""
    if config.option.moved:
        daemons = MovedDaemons(MOVES[config.option.moved])
        Starting.run = daemons.run
        config.pluginmanager.register(MovesOfTests(daemons))


class MovesOfTests:
    """Moves what the fixtures of a test have filled, once, before the test."""

    def __init__(self, daemons: MovedDaemons) -> None:
        self._daemons = daemons

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        """Move the state of the daemons that started since the last test."""
        self._daemons.move_filled()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many states were moved: a run without any has shown nothing."""
        terminalreporter.line(f"{self._daemons.count} states were moved")
