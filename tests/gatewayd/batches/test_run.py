"""Tests for gatewayd.batches.run: lines over a runner that is told what to do."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.batches import run as run_module
from gatewayd.batches.progress_file import ProgressFile
from gatewayd.batches.records import Batch, BatchDialect, BatchStatus
from gatewayd.batches.run import BatchRun, LineServices
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError
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
        return BatchRun(batch, source, ProgressFile(self.folder / "progress"), services)


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
    run.progress.close()
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
    runs[0].progress.close()
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
