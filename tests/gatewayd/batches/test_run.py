"""Tests for gatewayd.batches.run: lines over a runner that is told what to do."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.batches import run as run_module
from gatewayd.batches.interfaces import AnswerStore
from gatewayd.batches.progress import BatchProgress, move_to_files, take_over_files
from gatewayd.batches.progress_file import ProgressFile
from gatewayd.batches.records import Batch, BatchDialect, BatchStatus
from gatewayd.batches.run import BatchRun, LineServices
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.providers.memory_answers import MemoryAnswers
from tests.fakes.providers.models import make_actor

BATCH = Batch(
    "batch_1", "u1", BatchDialect.OPENAI, "/v1/embeddings", "file-1", BatchStatus.IN_PROGRESS, 1, 9, total=6
)


@dataclass
class Runner:
    """Answers with the number of the line, after what `act` does."""

    act: Callable[[int], None] = lambda _: None
    seen: list[int] = field(default_factory=list)
    running: int = 0
    most: int = 0

    async def run(self, batch: Batch, body: Body, actor: Actor, request_id: str) -> Any:
        self.seen.append(body["n"])
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0.005)
            self.act(body["n"])
        finally:
            self.running -= 1
        return {"n": body["n"]}


class Actors:
    async def of(self, batch: Batch) -> Actor:
        return make_actor(batch.user_id)


class Limiter:
    """Refuses the first `refusals` runs."""

    refusals = 0

    def begin_run(self, account: str) -> Callable[[], None]:
        if self.refusals:
            self.refusals -= 1
            raise GatewayError(ErrorKind.RATE_LIMITED, "cannot begin: too many", retry_after=0)
        return lambda: None


def failure(error: GatewayError, dialect: BatchDialect) -> tuple[int, Body]:
    return 500, {"error": {"message": error.message}}


@dataclass
class Trial:
    """One batch of six lines."""

    folder: Path
    runner: Runner = field(default_factory=Runner)
    limiter: Limiter = field(default_factory=Limiter)
    now: int = 5
    parallel: int = 2

    answers: AnswerStore | None = None

    def progress(self) -> BatchProgress:
        return BatchProgress(BATCH.id, ProgressFile(self.folder / "progress"), self.answers)

    def make(self, batch: Batch = BATCH) -> BatchRun:
        source = self.folder / "input"
        lines = [
            {"custom_id": f"c{n}", "method": "POST", "url": "/v1/embeddings", "body": {"n": n}}
            for n in range(1, 7)
        ]
        source.write_text("\n".join(map(json.dumps, lines)))
        turns = asyncio.Semaphore(self.parallel)
        services = LineServices(
            self.runner, Actors(), self.limiter, failure, turns, self.parallel, lambda: self.now
        )
        return BatchRun(batch, source, self.progress(), services)


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setattr(run_module, "MAX_PAUSE_SECONDS", 0.001)
    return Trial(tmp_path)


def outcomes(run: BatchRun) -> dict[int, bool]:
    return {record.number: record.is_success for record in run.progress.records()}


async def test_each_line_runs_once_and_few_at_once(trial: Trial) -> None:
    run = trial.make()
    await run.run()
    assert sorted(trial.runner.seen) == [1, 2, 3, 4, 5, 6]
    assert trial.runner.most == 2
    assert outcomes(run) == dict.fromkeys(range(1, 7), True)
    await run.progress.close()
    again = trial.make()
    await again.run()
    assert len(trial.runner.seen) == 6
    assert (again.progress.completed, again.progress.failed) == (6, 0)


async def test_a_stopped_batch_goes_on_where_it_was(trial: Trial) -> None:
    runs: list[BatchRun] = []

    def stop(number: int) -> None:
        if number == 3:
            runs[0].stop()

    trial.runner.act = stop
    runs.append(trial.make())
    await runs[0].run()
    finished = outcomes(runs[0])
    assert 0 < len(finished) < 6
    await runs[0].progress.close()
    await trial.make().run()
    assert sorted(trial.runner.seen) == [1, 2, 3, 4, 5, 6]


async def test_a_late_batch_begins_no_line(trial: Trial) -> None:
    trial.now = 9
    run = trial.make()
    await run.run()
    assert trial.runner.seen == []
    assert outcomes(run) == {}


async def test_a_busy_source_is_asked_again_but_not_for_ever(trial: Trial) -> None:
    def fail(number: int) -> None:
        if number == 2 or (number == 4 and trial.runner.seen.count(4) < 3):
            raise GatewayError(ErrorKind.RATE_LIMITED, "cannot answer: busy", retry_after=0)
        if number == 5:
            raise GatewayError(ErrorKind.RATE_LIMITED, "no credit", provider_code="insufficient_quota")
        if number == 6:
            raise GatewayError(ErrorKind.INVALID_REQUEST, "bad")

    trial.runner.act = fail
    run = trial.make()
    await run.run()
    assert outcomes(run) == {1: True, 2: False, 3: True, 4: True, 5: False, 6: False}
    counts = {number: trial.runner.seen.count(number) for number in range(1, 7)}
    assert counts == {1: 1, 2: run_module.MAX_ATTEMPTS, 3: 1, 4: 3, 5: 1, 6: 1}


async def test_lines_wait_while_the_gateway_is_full(trial: Trial) -> None:
    trial.limiter.refusals = 20
    run = trial.make(replace(BATCH, total=1))
    await run.run()
    assert (outcomes(run), trial.limiter.refusals) == ({1: True}, 0)


async def test_the_answers_of_a_batch_have_a_bound(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MAX_RESULT_BYTES", 1)
    trial.parallel = 1
    run = trial.make()
    await run.run()
    assert trial.runner.seen == [1]
    assert outcomes(run) == {1: True, **dict.fromkeys(range(2, 7), False)}


@pytest.mark.parametrize("answer", ["\ud800", 2**70, object()])
async def test_an_answer_that_is_no_json_fails_its_line_alone(trial: Trial, answer: object) -> None:
    async def run_line(batch: Batch, body: Body, actor: Actor, request_id: str) -> Any:
        return {"n": answer if body["n"] == 2 else 0}

    trial.runner.run = run_line  # type: ignore[method-assign]
    run = trial.make()
    await run.run()
    assert outcomes(run) == {number: number != 2 for number in range(1, 7)}


async def test_a_fault_of_the_gateway_is_raised(trial: Trial) -> None:
    def fail(number: int) -> None:
        raise ZeroDivisionError

    trial.runner.act = fail
    with pytest.raises(ZeroDivisionError):
        await trial.make().run()


async def test_rows_are_the_truth_and_any_node_goes_on_from_them(trial: Trial) -> None:
    trial.answers = rows = MemoryAnswers()
    runs: list[BatchRun] = []
    trial.runner.act = lambda number: runs[0].stop() if number == 3 else None
    runs.append(trial.make())
    await runs[0].run()
    finished = outcomes(runs[0])
    assert 0 < len(finished) < 6
    await runs[0].progress.close()
    # Another node, whose file is an old one.
    (trial.folder / "progress").write_bytes(b"6 1 {}\n")
    again = trial.make()
    await again.run()
    assert sorted(trial.runner.seen) == [1, 2, 3, 4, 5, 6]
    # A write whose commit was not heard of is repeated: the line counts once.
    rows.pieces += rows.pieces
    await again.progress.close()
    last = trial.make()
    await last.run()
    numbers = [record.number for record in last.progress.records()]
    assert (sorted(numbers), last.progress.completed) == ([1, 2, 3, 4, 5, 6], 6)
    assert len(trial.runner.seen) == 6
    await last.progress.remove()
    assert (rows.pieces, (trial.folder / "progress").exists()) == ([], False)


async def test_answers_wait_for_the_database(trial: Trial, caplog: pytest.LogCaptureFixture) -> None:
    trial.answers = rows = MemoryAnswers(
        [GatewayError(ErrorKind.UNAVAILABLE, "cannot write: no database")] * 3
    )
    trial.parallel = 6
    run = trial.make()

    async def others() -> None:
        """Keep the first answer from being stored until the others wait."""
        async with asyncio.timeout(20):
            while len(run._waiting) < 5 and not rows.pieces:
                await asyncio.sleep(0.001)

    rows.before_add = others
    await run.run()
    assert sorted(trial.runner.seen) == [1, 2, 3, 4, 5, 6]
    assert outcomes(run) == dict.fromkeys(range(1, 7), True)
    assert len(caplog.messages) == 3
    # Answers that come while others are stored go together.
    assert [piece.count(b"\n") for piece in rows.pieces] == [1, 5]


async def test_answers_that_wait_are_stored_in_pieces(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of the database has a maximum length, and the answers of many requests at once have not."""
    monkeypatch.setattr(run_module, "MAX_BYTES_AT_ONCE", 1)
    trial.answers = rows = MemoryAnswers()
    trial.parallel = 6
    run = trial.make()

    async def others() -> None:
        async with asyncio.timeout(20):
            while len(run._waiting) < 5 and not rows.pieces:
                await asyncio.sleep(0.001)

    rows.before_add = others
    await run.run()
    assert outcomes(run) == dict.fromkeys(range(1, 7), True)
    assert [piece.count(b"\n") for piece in rows.pieces] == [1] * 6


async def test_a_copy_goes_with_its_run(trial: Trial) -> None:
    """The node may never run the batch again, and its user may be erased."""
    trial.answers = MemoryAnswers()
    run = trial.make()
    await run.run()
    assert (trial.folder / "progress").exists()
    await run.progress.close()
    assert not (trial.folder / "progress").exists()


async def test_rows_of_another_database_are_moved_to_files(tmp_path: Path) -> None:
    rows = MemoryAnswers()
    await move_to_files(tmp_path / "none", rows)
    rows.pieces = [b"1 1 {}\n", b"2 0 {}\n"]
    # What an interrupted start left.
    (tmp_path / "b").write_bytes(b"3 1 {}\n")
    await move_to_files(tmp_path, rows)
    assert ((tmp_path / "b").read_bytes(), rows.pieces) == (b"1 1 {}\n2 0 {}\n", [])
    await move_to_files(tmp_path, rows)
    assert (tmp_path / "b").exists()


@pytest.mark.parametrize("kind", [ErrorKind.CONFLICT, ErrorKind.NOT_FOUND])
async def test_a_batch_of_another_node_or_of_nobody_ends_the_run(trial: Trial, kind: ErrorKind) -> None:
    trial.answers = rows = MemoryAnswers([GatewayError(kind, "cannot write: taken over")])
    with pytest.raises(GatewayError, match="taken over"):
        await trial.make().run()
    assert rows.pieces == []
    assert len(trial.runner.seen) < 6


async def no_batch(batch_id: str, pieces: Iterator[bytes]) -> bool:
    return False


async def test_files_are_taken_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = MemoryAnswers()
    await take_over_files(tmp_path / "none", rows)
    whole = b"1 1 {}\n2 0 {}\n"
    (tmp_path / "b").write_bytes(whole + b"3 1 {")
    (tmp_path / "c").write_bytes(b"")
    await take_over_files(tmp_path, rows)
    assert (rows.pieces, list(tmp_path.iterdir())) == ([whole], [])
    # What a power failure left of a record ends the file: what comes behind it would not be found.
    (tmp_path / "b").write_bytes(b"1 1 {}\n\0\0\0\n2 1 {}\n")
    rows.pieces = []
    await take_over_files(tmp_path, rows)
    assert rows.pieces == [b"1 1 {}\n"]
    # What cannot be read stays where it is.
    (tmp_path / "a-folder").mkdir()
    (tmp_path / "d").write_bytes(whole)
    await take_over_files(tmp_path, rows)
    assert [path.name for path in tmp_path.iterdir()] == ["a-folder"]
    assert "cannot take over the answers of the batch a-folder" in caplog.text
    # Neither is the start refused for what cannot be deleted.
    monkeypatch.setattr(rows, "take_over", no_batch)
    await take_over_files(tmp_path, rows)
    assert "cannot delete former answers of batches" in caplog.text
    monkeypatch.undo()
    rows.failures = [GatewayError(ErrorKind.UNAVAILABLE, "no database")]
    (tmp_path / "d").write_bytes(whole)
    with pytest.raises(GatewayError, match="no database"):
        await take_over_files(tmp_path, rows)
    assert (tmp_path / "d").exists()
