"""The rule of the whole suite that tests execute the public functions, as a plugin of pytest."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.suite.executed import Recorder, all_public
from tests.suite.source_tree import SOURCES

# Percent of the public functions that run in the processes of the tests, at least. The rest runs in daemons,
# workers and the processes of plugins, which the tests start.
MIN_PERCENT = 97.0

# With these a run is not of the whole suite.
PARTS = (
    "-m",
    "-k",
    "-x",
    "--co",
    "--deselect",
    "--exitfirst",
    "--ff",
    "--ignore",
    "--last",
    "--lf",
    "--maxfail",
    "--sw",
)


class ExecutedFunctions:
    """Gathers what ran from all workers, and fails a whole run that leaves too much out."""

    def __init__(self, config: pytest.Config, sources: Iterable[Path] = SOURCES) -> None:
        self._config = config
        self._sources = sources
        self._recorder = Recorder()
        self._names: set[str] = set()
        self._missed: list[str] = []
        self._percent = 100.0

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker noted; one that crashed noted nothing."""
        self._names.update(getattr(node, "workeroutput", {}).get("executed", ()))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand over what ran, in a worker; else compare it with the sources; nothing in a partial run."""
        if not is_whole(self._config):
            return
        self._names |= self._recorder.names()
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["executed"] = sorted(self._names)
            return
        public = all_public(self._sources)
        self._missed = sorted(public - self._names)
        self._percent = 100 * (1 - len(self._missed) / len(public))
        if session.exitstatus == pytest.ExitCode.OK and self._percent < MIN_PERCENT:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how much ran after a whole run, and what did not when that is too little."""
        if not is_whole(self._config):
            return
        terminalreporter.section("public functions")
        terminalreporter.line(f"{self._percent:.1f} % were executed by tests, {MIN_PERCENT} % at least")
        if self._percent < MIN_PERCENT:
            for name in self._missed:
                terminalreporter.line(f"not executed: {name}")


def is_whole(config: pytest.Config) -> bool:
    """Whether a run is of the whole suite, as `python -m pytest` is without a choice of tests."""
    chosen = any(str(argument).startswith(PARTS) for argument in config.invocation_params.args)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen
