"""Runs that repeat."""

from collections.abc import Callable

import pytest

from gatewayctl.failures import TABLE, TRY_LATER, CommandError
from gatewayctl.ingest.records import IngestProblem, Report, What
from gatewayctl.ingest.scan import Scan
from gatewayctl.ingest.stop import Stop
from gatewayctl.ingest.watch import PASSING, Watch, later, stopped

EMPTY = Scan({}, (), 0)


def report(**outcomes: What) -> Report:
    made = Report()
    for path, what in outcomes.items():
        made.add(path, what, error="broken" if what is What.FAILED else None)
    return made


class Script:
    """Scans and reports in turn; the stop is asked for after the last."""

    def __init__(self, *steps: Callable[[], tuple[Scan, Report]]) -> None:
        self.stop = Stop()
        self.told: list[Report] = []
        self.complaints: list[str] = []
        self.runs = 0
        self._steps = list(steps)
        self._report = Report()

    def scan(self) -> Scan:
        step = self._steps.pop(0)
        if not self._steps:
            self.stop.set()
        scan, self._report = step()
        return scan

    def run(self, scan: Scan) -> Report:
        self.runs += 1
        return self._report

    def play(self) -> None:
        complain = lambda error: self.complaints.append(error.message)  # noqa: E731
        Watch(self.scan, self.run, self.told.append, complain).go_on(self.stop, 0)


def good(**outcomes: What) -> Callable[[], tuple[Scan, Report]]:
    return lambda: (EMPTY, report(**outcomes))


def bad(kind: str, message: str = "cannot reach the daemon") -> Callable[[], tuple[Scan, Report]]:
    def step() -> tuple[Scan, Report]:
        raise later(CommandError(kind, message), Report())

    return step


def test_a_directory_that_stays_is_looked_at_only() -> None:
    script = Script(good(a=What.ADDED), good(), good())
    script.play()
    assert (script.runs, len(script.told)) == (1, 1)


def test_what_happens_is_told_and_what_stays_is_not() -> None:
    problem = Scan({}, (IngestProblem("x", "no"),), 0)
    failed = report(a=What.FAILED)
    script = Script(
        lambda: (EMPTY, failed),
        lambda: (EMPTY, report(a=What.FAILED)),
        lambda: (problem, report(a=What.FAILED, b=What.CHANGED)),
        lambda: (problem, report(a=What.UNCHANGED)),
    )
    script.play()
    assert script.runs == 4
    assert [each.count(What.FAILED) for each in script.told] == [1, 1, 0]


def test_pending_files_are_looked_after() -> None:
    script = Script(good(a=What.PENDING), good(a=What.ADDED), good())
    script.play()
    assert script.runs == 2


def test_a_daemon_that_is_away_is_waited_for_and_told_once() -> None:
    script = Script(
        good(), bad("unreachable"), bad("unreachable"), good(a=What.ADDED), bad("timeout", "slow")
    )
    script.play()
    assert script.complaints == ["cannot reach the daemon", "slow"]
    assert script.runs == 2


def test_any_other_failure_ends_it() -> None:
    script = Script(bad("forbidden"), good())
    with pytest.raises(CommandError) as caught:
        script.play()
    assert caught.value.kind == "forbidden"


def test_what_passes_is_to_be_tried_later() -> None:
    assert set(TABLE) >= PASSING
    done = report()
    done.uploaded = 3
    error = later(CommandError("rate_limited", "too many", hint="try again in 5 seconds"), done)
    assert (error.exit_code, error.kind) == (TRY_LATER, "rate_limited")
    assert error.sentence() == (
        "gatewayctl: too many; 3 files were uploaded and stay\n  hint: try again in 5 seconds"
    )
    assert later(CommandError("unreachable", "gone"), Report()).message == "gone"
    other = CommandError("forbidden", "no")
    assert later(other, done) is other
    assert stopped(done).exit_code == 130
