import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.vectors.process import ModelProcess
from tests.fakes.providers.embedding_models import TEXTS, rows_of

PASSAGES = {"purpose": "passage", "priority": "passage"}


class Opening:
    """Says how the model is opened, and counts how often it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    async def __call__(self) -> Mapping[str, Any]:
        self.count += 1
        model = {"engine": "wordpiece", "path": str(self.folder), "pooling": "none"}
        return {**model, "task": "embed", "name": "m", "cache": "", "threads": 1, "sandbox": "auto"}


@pytest.fixture
def opening(minilm: Path) -> Opening:
    return Opening(minilm)


@pytest.fixture
async def process(opening: Opening, tasks: TaskRegistry) -> AsyncIterator[ModelProcess]:
    process = ModelProcess("m", opening, {}, tasks)
    yield process
    await process.close()


async def ended(process: ModelProcess) -> None:
    while process.pid is not None:
        await asyncio.sleep(0.01)


async def stopped_in_a_call(process: ModelProcess) -> asyncio.Task[bytes]:
    """Return a call whose process stands still."""
    await process.start()
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    call = asyncio.get_running_loop().create_task(process.rows(TEXTS, PASSAGES))
    for _ in range(20):
        await asyncio.sleep(0)
    return call


async def test_calls_at_the_same_time_start_one_process(process: ModelProcess, opening: Opening) -> None:
    answers = await asyncio.gather(*(process.rows(TEXTS, PASSAGES) for _ in range(3)))
    assert opening.count == 1
    assert len({rows_of(answer).shape for answer in answers}) == 1
    assert await process.width() == 384


async def test_a_call_whose_process_is_killed_is_made_again(process: ModelProcess, opening: Opening) -> None:
    call = await stopped_in_a_call(process)
    first = process.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert rows_of(await call).shape == (len(TEXTS), 384)
    assert opening.count == 2
    assert process.pid not in {None, first}


async def test_a_process_that_hangs_is_replaced_and_its_caller_told(
    process: ModelProcess, opening: Opening
) -> None:
    waiting = await stopped_in_a_call(process)
    first = process.pid
    with pytest.raises(
        GatewayError, match=r"cannot use the model 'm': its process did not answer within 0\.01 s"
    ) as failure:
        await process.rows(TEXTS, PASSAGES, 0.01)
    assert failure.value.kind is ErrorKind.TIMEOUT
    assert rows_of(await waiting).shape == (len(TEXTS), 384)
    assert process.pid not in {None, first}
    assert opening.count == 2


async def test_who_waits_for_a_model_to_be_opened_is_told_and_it_is_opened(
    process: ModelProcess, opening: Opening
) -> None:
    for _ in range(2):
        with pytest.raises(GatewayError, match=r"did not answer within 0\.001 s") as failure:
            await process.rows(TEXTS, PASSAGES, 0.001)
        assert failure.value.kind is ErrorKind.TIMEOUT
    assert rows_of(await process.rows(TEXTS, PASSAGES)).shape == (len(TEXTS), 384)
    assert opening.count == 1


async def test_a_process_that_hangs_while_it_opens_the_model_is_killed(
    opening: Opening, tasks: TaskRegistry
) -> None:
    process = ModelProcess("m", opening, {}, tasks, open_seconds=0.001)
    with pytest.raises(GatewayError, match=r"did not answer within 0\.001 s") as failure:
        await process.start()
    assert failure.value.kind is ErrorKind.UNAVAILABLE
    assert process.pid is None
    await process.close()


async def test_a_call_that_ends_the_process_twice_fails(process: ModelProcess, opening: Opening) -> None:
    with pytest.raises(
        GatewayError, match="cannot use the model 'm': its process ended with status 1: "
    ) as failure:
        await process.rows(["x"], {"purpose": "passage"})
    assert failure.value.kind is ErrorKind.UNAVAILABLE
    assert opening.count == 2
    assert rows_of(await process.rows(["x"], PASSAGES)).shape == (1, 384)


async def test_a_model_that_cannot_be_loaded_is_told(tmp_path: Path, tasks: TaskRegistry) -> None:
    process = ModelProcess("m", Opening(tmp_path), {}, tasks)
    with pytest.raises(GatewayError, match="status 1: ") as failure:
        await process.start()
    assert failure.value.kind is ErrorKind.UNAVAILABLE
    assert process.pid is None
    await process.close()


async def test_an_idle_process_is_ended_and_started_again(opening: Opening, tasks: TaskRegistry) -> None:
    process = ModelProcess("m", opening, {}, tasks, idle_seconds=0.05)
    await process.rows(TEXTS, PASSAGES)
    async with asyncio.timeout(30):
        await ended(process)
    await process.rows(TEXTS, PASSAGES)
    assert opening.count == 2
    await process.close()


async def test_a_process_at_work_is_not_idle(opening: Opening, tasks: TaskRegistry) -> None:
    process = ModelProcess("m", opening, {}, tasks, idle_seconds=0.01)
    answer = await process.rows(["word " * 400] * 40, PASSAGES)
    assert rows_of(answer).shape == (40, 384)
    assert opening.count == 1
    await process.close()


async def test_a_closed_process_fails_its_calls_and_is_not_started_again(
    process: ModelProcess, opening: Opening, tasks: TaskRegistry
) -> None:
    call = await stopped_in_a_call(process)
    pid = process.pid
    await process.close()
    with pytest.raises(GatewayError, match="while the gateway stops"):
        await call
    with pytest.raises(GatewayError) as failure:
        await process.start()
    assert failure.value.kind is ErrorKind.UNAVAILABLE
    assert opening.count == 1
    assert not Path(f"/proc/{pid}").exists()
    assert not any("idle" in name for name in tasks.list().values())


async def test_texts_that_are_not_quite_unicode_are_embedded(process: ModelProcess) -> None:
    assert rows_of(await process.rows(["half a pair: \ud83d", "", "\0"], PASSAGES)).shape == (3, 384)
