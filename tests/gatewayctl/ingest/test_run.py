"""One run against a scripted daemon."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.ingest import run as module
from gatewayctl.ingest.folder import Folder
from gatewayctl.ingest.readers import Reader
from gatewayctl.ingest.records import FileOutcome, IngestProblem, Report, What
from gatewayctl.ingest.rules import Rules
from gatewayctl.ingest.run import EMPTY, FAILED_BEFORE, UNREAD, Plan, Run
from gatewayctl.ingest.scan import Scan, Scanner
from gatewayctl.ingest.stop import Stop, StoppedError
from gatewayctl.ingest.walk import Choice
from gatewayctl.wire.files import File
from tests.fakes.http.ingest_client import Shelf, failing
from tests.fakes.http.progress import Gauge

PLAN = Plan(collection="c", origin="here", jobs=1)


class Bench:
    """A directory, a scripted daemon, and runs between them."""

    def __init__(self, top: Path, folder: Folder) -> None:
        self.top = top
        self.shelf = Shelf()
        self.stop = Stop()
        self.gauge = Gauge()
        self._reader = Reader(folder, self.stop)
        self._scanner = Scanner(folder, Choice(Rules.of()), self._reader, self.stop)

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.top / name).write_text(text)

    def scan(self) -> Scan:
        return self._scanner.scan(Gauge())

    def bring(self, plan: Plan = PLAN, scan: Scan | None = None, report: Report | None = None) -> Report:
        report = report or Report()
        Run(self.shelf, self._reader, plan, self.stop, self.gauge).bring(scan or self.scan(), report)
        return report


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Folder(tmp_path) as folder:
        yield Bench(tmp_path, folder)


def told(report: Report) -> dict[str, str]:
    return {path: outcome.outcome.value for path, outcome in report.outcomes.items()}


def test_what_is_new_goes_in_and_nothing_twice(bench: Bench) -> None:
    bench.write(a="one", b="two")
    heard: list[FileOutcome] = []
    report = bench.bring(report=Report(on_outcome=heard.append))
    assert told(report) == {"a": "added", "b": "added"}
    assert (report.uploaded, report.is_partial) == (2, False)
    assert heard == list(report.outcomes.values())
    assert bench.shelf.contents == {"a": b"one", "b": b"two"}
    assert bench.gauge.stages == [("uploading", 6, 6), ("processing", 2, 2)]
    bench.shelf.calls.clear()
    assert told(bench.bring()) == {"a": "unchanged", "b": "unchanged"}
    assert bench.shelf.calls == ["get_collection", "compare_collection"]


def test_changes(bench: Bench) -> None:
    bench.write(a="one", b="two")
    bench.bring()
    bench.write(b="three")
    assert told(bench.bring()) == {"a": "unchanged", "b": "changed"}
    assert bench.shelf.contents["b"] == b"three"


def test_pending_files_of_an_earlier_run_are_waited_for(bench: Bench) -> None:
    bench.write(a="one", b="two")
    report = bench.bring(replace(PLAN, wait=False))
    assert told(report) == {"a": "pending", "b": "pending"}
    assert not report.is_partial
    again = bench.bring()
    assert told(again) == {"a": "added", "b": "added"}
    assert again.uploaded == 0
    assert bench.shelf.calls.count("upload") == 2


def test_files_that_fail_in_the_daemon(bench: Bench) -> None:
    bench.write(a="one", b="two")
    bench.shelf.process = lambda file: "failed" if file.name == "b" else "completed"
    report = bench.bring()
    assert told(report) == {"a": "added", "b": "failed"}
    assert report.outcomes["b"].error == "it is locked"
    assert report.is_partial
    again = bench.bring()
    assert again.outcomes["b"].error == f"it is locked ({FAILED_BEFORE})"
    assert (again.is_partial, again.uploaded) == (True, 0)
    bench.shelf.process = lambda file: "completed"
    retried = bench.bring(replace(PLAN, retry=True))
    assert told(retried) == {"a": "unchanged", "b": "added"}
    assert not retried.is_partial
    assert bench.shelf.calls.count("upload") == 2


def test_a_retry_that_is_refused_fails_that_file(bench: Bench) -> None:
    bench.write(a="one")
    bench.shelf.process = lambda file: "failed"
    bench.bring()
    [file_id] = bench.shelf.files
    bench.shelf.fail = failing("retry_file", file_id, "conflict")
    report = bench.bring(replace(PLAN, retry=True))
    assert report.outcomes["a"].error == f"cannot retry_file {file_id}"
    bench.shelf.fail = failing("retry_file", file_id, "unavailable")
    with pytest.raises(CommandError):
        bench.bring(replace(PLAN, retry=True))


@pytest.mark.parametrize("kind", ["invalid_request", "too_large", "empty_content", "internal"])
def test_a_file_that_is_refused_does_not_keep_the_others(bench: Bench, kind: str) -> None:
    bench.write(a="one", b="two", c="three")
    bench.shelf.fail = failing("upload", "b", kind)
    report = bench.bring()
    assert told(report) == {"a": "added", "b": "failed", "c": "added"}
    assert report.outcomes["b"].error == "cannot upload b"


@pytest.mark.parametrize("kind", ["unreachable", "unavailable", "rate_limited", "forbidden", "not_found"])
def test_a_daemon_that_cannot_go_on_ends_the_run(bench: Bench, kind: str) -> None:
    bench.write(**dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "x"))
    bench.shelf.fail = failing("upload", "b", kind)
    report = Report()
    with pytest.raises(CommandError) as caught:
        bench.bring(report=report)
    assert caught.value.kind == kind
    assert report.uploaded == 1
    assert bench.shelf.calls.count("upload") < 26
    bench.shelf.fail = lambda method, detail: None
    again = bench.bring()
    assert bench.shelf.calls.count("upload") <= 27
    assert set(told(again).values()) == {"added"}


def test_a_file_that_changed_since_it_was_read_is_left_to_the_next_run(bench: Bench) -> None:
    bench.write(a="one", b="two")
    scan = bench.scan()
    bench.write(a="six")
    report = bench.bring(scan=scan)
    assert told(report) == {"a": "failed", "b": "added"}
    assert "the next run takes it" in (report.outcomes["a"].error or "")
    assert told(bench.bring()) == {"a": "added", "b": "unchanged"}


def test_a_file_that_is_deleted_meanwhile(bench: Bench) -> None:
    bench.write(a="one")

    def process(file: File) -> str:
        bench.shelf.files.clear()
        return "pending"

    bench.shelf.process = process
    report = bench.bring()
    assert report.outcomes["a"].error == "it was deleted before it was processed"


def test_what_is_gone_is_removed_last_and_only_when_told(bench: Bench) -> None:
    bench.write(a="one", b="two")
    bench.bring()
    (bench.top / "a").rename(bench.top / "c")
    assert told(bench.bring()) == {"b": "unchanged", "c": "added"}
    bench.shelf.calls.clear()
    assert told(bench.bring(replace(PLAN, delete=True))) == {
        "b": "unchanged",
        "c": "unchanged",
        "a": "removed",
    }
    assert bench.shelf.calls[-2:] == ["remove_from_collection", "remove"]
    assert sorted(bench.shelf.paths()) == ["b", "c"]


def test_many_are_removed_in_turn(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMOVED_AT_ONCE", 2)
    bench.write(here="x")
    bench.bring()
    ids = [bench.shelf.hold(f"gone{number}", "s") for number in range(5)]
    bench.shelf.fail = failing("remove", ids[4], "forbidden")
    report = bench.bring(replace(PLAN, delete=True))
    assert bench.shelf.calls.count("remove_from_collection") == 3
    assert report.count(What.REMOVED) == 4
    assert report.outcomes["gone4"].error == f"cannot remove {ids[4]}"


def test_nothing_is_removed_when_something_was_not_seen(bench: Bench) -> None:
    bench.write(a="one")
    bench.bring()
    for path in ("gone", "closed/x", "unreadable"):
        bench.shelf.hold(path, "s")
    problems = (
        IngestProblem("closed", "no"),
        IngestProblem("unreadable", "no"),
        IngestProblem("b\n", "no", is_walk=False),
    )
    scan = replace(bench.scan(), problems=problems)
    report = bench.bring(replace(PLAN, delete=True), scan)
    assert report.notes == [UNREAD]
    assert report.is_partial
    assert len(bench.shelf.files) == 4
    forced = bench.bring(replace(PLAN, delete=True, force=True), scan)
    assert told(forced)["gone"] == "removed"
    # What is there, or may be there, stays.
    assert sorted(bench.shelf.paths()) == ["a", "closed/x", "unreadable"]


def test_a_bad_name_does_not_keep_what_is_gone(bench: Bench) -> None:
    bench.write(a="one")
    bench.shelf.hold("gone", "s")
    scan = replace(bench.scan(), problems=(IngestProblem("b\n", "no", is_walk=False),))
    assert told(bench.bring(replace(PLAN, delete=True), scan))["gone"] == "removed"


def test_an_empty_directory_removes_nothing(bench: Bench) -> None:
    bench.shelf.hold("gone", "s")
    report = bench.bring(replace(PLAN, delete=True))
    assert (report.notes, report.is_partial) == ([EMPTY], True)
    assert told(bench.bring(replace(PLAN, delete=True, force=True))) == {"gone": "removed"}
    assert not bench.bring(replace(PLAN, delete=True)).is_partial


def test_a_dry_run_asks_only(bench: Bench) -> None:
    bench.write(a="one")
    dry = replace(PLAN, dry_run=True, delete=True)
    assert told(bench.bring(dry)) == {"a": "added"}
    assert bench.shelf.collection is None
    bench.bring()
    bench.write(b="two", a="other", c="three", d="four")
    scan = bench.scan()
    bench.shelf.hold("gone", "s")
    bench.shelf.hold("c", scan.versions["c"].checksum, "pending")
    bench.shelf.hold("d", scan.versions["d"].checksum, "failed", "it is locked")
    before = bench.shelf.paths()
    bench.shelf.calls.clear()
    assert told(bench.bring(dry, scan)) == {
        "b": "added",
        "a": "changed",
        "c": "pending",
        "d": "failed",
        "gone": "removed",
    }
    assert told(bench.bring(replace(dry, retry=True), scan))["d"] == "pending"
    assert set(bench.shelf.calls) == {"get_collection", "compare_collection"}
    assert bench.shelf.paths() == before


def test_a_stop_ends_it_between_two_steps(bench: Bench) -> None:
    bench.write(a="one")
    scan = bench.scan()
    bench.stop.set()
    report = Report()
    with pytest.raises(StoppedError):
        bench.bring(scan=scan, report=report)
    assert report.uploaded == 0


def test_who_owns_what_is_made(bench: Bench) -> None:
    bench.write(a="one")
    bench.bring(replace(PLAN, user="ada@example.org"))
    assert bench.shelf.owners == ["ada@example.org", "ada@example.org"]


def test_a_failure_other_than_absence_is_passed_on(bench: Bench) -> None:
    bench.shelf.fail = failing("get_collection", "c", "conflict")
    with pytest.raises(CommandError) as caught:
        bench.bring()
    assert caught.value.kind == "conflict"
