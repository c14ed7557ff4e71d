import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gatewayd import workers
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from gatewayd.workers import (
    FRAME_LENGTHS,
    MAX_ANSWER_BYTES,
    MAX_HEADER_BYTES,
    ROOT,
    WorkerDiedError,
    WorkerLateError,
    WorkerOptions,
    WorkerProcess,
    encode_frame,
)
from tests.fakes.http.byte_server import on_both_loops

CHILD = "tests.fakes.daemons.scripted_worker"
TOLD = {"kind": ErrorKind.CONFLICT, "message": "cannot do it", "param": None, "code": None}
Start = Callable[..., Awaitable[WorkerProcess]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    tasks = TaskRegistry()
    workers: list[WorkerProcess] = []

    async def started(module: str = CHILD, **options: object) -> WorkerProcess:
        workers.append(await WorkerProcess.start(WorkerOptions(module, **options), tasks))  # type: ignore[arg-type]
        return workers[-1]

    yield started
    for worker in workers:
        await worker.close()
    while tasks.list():
        await asyncio.sleep(0)


async def ended(worker: WorkerProcess, tasks: TaskRegistry) -> None:
    await worker.close()
    while tasks.list():
        await asyncio.sleep(0)


async def died(call: Awaitable[object]) -> WorkerDiedError:
    with pytest.raises(WorkerDiedError) as caught:
        await call
    return caught.value


async def test_a_message_is_answered_with_its_blob(start: Start) -> None:
    worker = await start()
    blob = bytes(range(256)) * 4096
    assert await worker.call({"do": "echo", "say": "å"}, blob) == ({"said": "å"}, blob)
    assert worker.calls == 1
    assert worker.resident > 1_000_000


@on_both_loops
async def test_a_worker_is_out_of_reach_of_the_terminal_in_the_same_session() -> None:
    tasks = TaskRegistry()
    worker = await WorkerProcess.start(WorkerOptions(CHILD), tasks)
    try:
        await worker.call({"do": "echo", "say": ""})
        assert os.getpgid(worker.pid) == worker.pid
        assert os.getsid(worker.pid) == os.getsid(0)
    finally:
        await worker.close()
        await tasks.close()


async def test_answers_may_come_in_any_order(start: Start) -> None:
    worker = await start()
    first, second = await asyncio.gather(worker.call({"do": "later"}), worker.call({"do": "both"}))
    assert (first[0]["said"], second[0]["said"]) == ("first", "second")


async def test_a_failure_of_the_child_is_raised_as_it_is(start: Start) -> None:
    worker = await start()
    with pytest.raises(GatewayError) as caught:
        await worker.call({"do": "refuse"})
    error = caught.value
    assert (error.kind, error.message, error.param, error.code) == (
        ErrorKind.CONFLICT,
        "cannot do it",
        "do",
        "no",
    )
    assert (await worker.call({"do": "echo", "say": "still here"}))[0] == {"said": "still here"}


async def test_what_a_child_says_is_one_line_that_a_database_keeps(start: Start) -> None:
    worker = await start()
    answer = encode_frame({"number": 0, "error": {**TOLD, "message": "cannot read\n it\0"}})
    with pytest.raises(GatewayError) as caught:
        await worker.call({"do": "nonsense", "bytes": answer.decode("latin-1")})
    assert caught.value.message == "cannot read it\ufffd"
    death = await died(worker.call({"do": "say and die", "bytes": "first\nlast\0\tone\n\n"}))
    assert death.reason == "ended with status 1: last\ufffd one"


async def test_65_million_lines_of_a_child_are_read_in_a_second(start: Start) -> None:
    worker = await start()
    # Each by itself, they would take minutes of the event loop.
    assert (await worker.call({"do": "talk"}))[0] == {"said": "enough"}


async def test_what_libraries_print_is_no_answer(start: Start) -> None:
    worker = await start()
    assert (await worker.call({"do": "print"}))[0] == {"said": "printed"}


async def test_a_child_is_bounded_and_sees_nothing_of_the_environment(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAYD_SECRET", "s")
    worker = await start(memory=1 << 30, cpu_seconds=50, nice=3, environment={"MORE": "1"})
    found = (await worker.call({"do": "limits"}))[0]
    assert found["limits"] == [1 << 30, 50]
    assert found["nice"] == min(os.nice(0) + 3, 19)
    assert found["environment"]["MORE"] == "1"
    assert "GATEWAYD_SECRET" not in found["environment"]


async def test_the_reason_of_an_end_is_what_the_child_said_last(start: Start) -> None:
    worker = await start()
    death = await died(worker.call({"do": "raise"}))
    assert death.reason == "ended with status 1: ValueError: cannot go on"
    assert death.ended_by is None
    assert not worker.is_alive
    assert worker.resident == 0


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGXCPU"])
async def test_the_signal_that_ended_a_child_is_told(start: Start, name: str) -> None:
    worker = await start()
    death = await died(worker.call({"do": "die", "signal": name}))
    assert death.ended_by is signal.Signals[name]
    assert death.reason == f"was ended by {name}"


async def test_every_call_ends_when_the_child_does(start: Start) -> None:
    worker = await start()
    calls = [died(worker.call({"do": "later"})) for _ in range(3)]
    waiting = asyncio.gather(*calls, died(worker.call({"do": "hang"})))
    while worker.calls < 4:
        await asyncio.sleep(0)
    worker.kill()
    assert {death.ended_by for death in await waiting} == {signal.SIGKILL}
    assert (await died(worker.call({"do": "echo", "say": ""}))).ended_by is signal.SIGKILL


@pytest.mark.parametrize(
    "answer",
    [
        FRAME_LENGTHS.pack(2, MAX_ANSWER_BYTES - 1),
        FRAME_LENGTHS.pack(MAX_HEADER_BYTES + 1, 0),
        FRAME_LENGTHS.pack(3, 0) + b"{,}",
        FRAME_LENGTHS.pack(2, 0) + b"[]",
        encode_frame({"number": 0, "error": {"kind": "nonsense"}}),
        encode_frame({"number": 0, "error": "text"}),
        encode_frame({"number": 0, "error": {**TOLD, "message": ["cannot"]}}),
        encode_frame({"number": 0, "error": {**TOLD, "code": 1}}),
        encode_frame({"number": 0, "error": {**TOLD, "message": "x" * 4097}}),
    ],
    ids=[
        *("too long", "too long a header", "no JSON", "no object", "unknown kind", "no error"),
        *("no sentence", "no code", "too long a sentence"),
    ],
)
async def test_a_child_that_answers_with_nonsense_is_ended(start: Start, answer: bytes) -> None:
    worker = await start()
    death = await died(worker.call({"do": "nonsense", "bytes": answer.decode("latin-1")}))
    assert death.ended_by is signal.SIGKILL


async def test_the_longest_answer_is_that_of_the_options() -> None:
    tasks = TaskRegistry()
    worker = await WorkerProcess.start(WorkerOptions(CHILD, answer_bytes=100), tasks)
    assert (await worker.call({"do": "echo", "say": "x"}))[0] == {"said": "x"}
    assert (await died(worker.call({"do": "echo", "say": "x" * 100}))).ended_by is signal.SIGKILL
    await tasks.close()


async def test_an_answer_that_nobody_waits_for_is_dropped(start: Start) -> None:
    worker = await start()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await worker.call({"do": "echo", "say": "late"})
    assert (await worker.call({"do": "echo", "say": "next"}))[0] == {"said": "next"}


async def test_a_child_that_hangs_is_killed_and_every_call_ends(start: Start) -> None:
    worker = await start()
    os.kill(worker.pid, signal.SIGSTOP)
    patient = asyncio.ensure_future(worker.call({"do": "echo", "say": ""}))
    with pytest.raises(WorkerLateError, match=r"did not answer within 0\.01 s"):
        await worker.call({"do": "echo", "say": ""}, bytes(1 << 20), seconds=0.01)
    assert (await died(patient)).ended_by is signal.SIGKILL
    assert not worker.is_alive


@on_both_loops
async def test_a_call_after_the_death_of_a_child_tells_of_it_before_that_is_known() -> None:
    tasks = TaskRegistry()
    worker = await WorkerProcess.start(WorkerOptions(CHILD), tasks)
    await worker.call({"do": "echo", "say": ""})
    worker.kill()
    calls = []
    while worker.is_alive:
        calls.append(asyncio.ensure_future(died(worker.call({"do": "echo", "say": ""}))))
        await worker.tell({"do": "hear", "say": "nobody"})
        await asyncio.sleep(0)
    assert {death.reason for death in await asyncio.gather(*calls)} == {"was ended by SIGKILL"}
    await ended(worker, tasks)


async def test_a_child_that_cannot_read_any_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "EXIT_SECONDS", 0.1)
    tasks = TaskRegistry()
    worker = await WorkerProcess.start(WorkerOptions(CHILD), tasks)
    await worker.call({"do": "close input"})
    while worker._pipe() is not None:
        await worker.tell({"do": "hear", "say": "nobody"})
        await asyncio.sleep(0.01)
    assert (await died(worker.call({"do": "echo", "say": ""}, seconds=None))).ended_by is signal.SIGKILL
    await ended(worker, tasks)


async def test_a_child_that_does_not_read_what_it_is_told_is_killed(start: Start) -> None:
    worker = await start()
    os.kill(worker.pid, signal.SIGSTOP)
    with pytest.raises(WorkerLateError, match=r"did not read a message within 0\.01 s"):
        await worker.tell({"do": "hear", "say": ""}, bytes(1 << 20), seconds=0.01)
    assert (await died(worker.call({"do": "echo", "say": ""}))).ended_by is signal.SIGKILL


async def test_a_child_that_does_not_end_is_ended(start: Start) -> None:
    worker = await start()
    waiting = asyncio.gather(died(worker.call({"do": "hang"})))
    await asyncio.sleep(0)
    await worker.close(0.01)
    assert (await waiting)[0].ended_by is signal.SIGKILL


async def test_a_child_ends_by_itself_when_it_is_closed(start: Start) -> None:
    worker = await start()
    await worker.call({"do": "echo", "say": ""})
    await worker.close(60)
    assert (await died(worker.call({"do": "echo", "say": ""}))).reason == "ended with status 0"


async def test_the_end_of_all_tasks_ends_the_child() -> None:
    tasks = TaskRegistry()
    worker = await WorkerProcess.start(WorkerOptions(CHILD), tasks)
    await worker.call({"do": "echo", "say": ""})
    await tasks.close()
    assert not worker.is_alive
    await worker.close()


async def test_a_module_that_is_not_there_is_told(start: Start) -> None:
    worker = await start("tests.fakes.nowhere")
    death = await died(worker.call({"do": "echo"}))
    assert "No module named tests.fakes.nowhere" in death.reason


async def test_no_module_comes_from_the_folder_of_the_daemon(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strange.py").write_text("print('taken')")
    monkeypatch.chdir(tmp_path)
    worker = await start("strange")
    assert "No module named strange" in (await died(worker.call({"do": "echo"}))).reason


async def test_a_program_that_cannot_be_started_is_unavailable(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    with pytest.raises(GatewayError) as caught:
        await start()
    assert caught.value.kind is ErrorKind.UNAVAILABLE


def test_a_child_dies_with_its_parent() -> None:
    parent = (
        "import asyncio, os, signal\n"
        "from gatewayd.tasks import TaskRegistry\n"
        "from gatewayd.workers import WorkerProcess, WorkerOptions\n"
        "async def main():\n"
        f"    worker = await WorkerProcess.start(WorkerOptions({CHILD!r}), TaskRegistry())\n"
        "    await worker.call({'do': 'echo', 'say': ''})\n"
        "    print(worker.pid, flush=True)\n"
        "    call = asyncio.gather(worker.call({'do': 'hang'}))\n"
        "    await asyncio.sleep(0)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", parent], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    assert run.returncode == -signal.SIGKILL
    pid = int(run.stdout)
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    waited = subprocess.run(
        ["tail", f"--pid={pid}", "-s", "0.05", "-f", "/dev/null"], timeout=20, check=False
    )
    os.close(handle)
    assert waited.returncode == 0


async def test_a_child_is_heard_without_being_asked() -> None:
    tasks, heard = TaskRegistry(), []

    async def hear(header: dict[str, object], blob: bytes) -> None:
        heard.append((header, blob))

    worker = await WorkerProcess.start(WorkerOptions(CHILD), tasks, hear)
    await worker.tell({"do": "hear", "say": "told"})
    await worker.call({"do": "speak", "times": 3}, b"x")
    spoken = [({"said": number}, b"x") for number in range(3)]
    assert heard == [({"heard": "told"}, b""), *spoken, ({"said": "enough"}, b"")]
    await ended(worker, tasks)
    await worker.tell({"do": "hear", "say": "nobody"})


async def test_a_child_that_says_what_cannot_be_heard_is_ended() -> None:
    tasks = TaskRegistry()

    async def hear(header: dict[str, object], blob: bytes) -> None:
        raise ValueError("no")

    worker = await WorkerProcess.start(WorkerOptions(CHILD), tasks, hear)
    assert (await died(worker.call({"do": "speak", "times": 1}))).ended_by is signal.SIGKILL
    await ended(worker, tasks)


async def test_the_header_of_an_answer_is_bounded(start: Start) -> None:
    worker = await start(header_bytes=1000)
    assert (await worker.call({"do": "echo", "say": "x" * 900}))[0]
    assert (await died(worker.call({"do": "echo", "say": "x" * 1000}))).ended_by is signal.SIGKILL


async def test_the_memory_that_is_written_to_is_bounded(start: Start) -> None:
    worker = await start(data_memory=256 << 20)
    assert (await worker.call({"do": "take memory", "bytes": 100 << 20}))[0]["said"] == str(100 << 20)
    assert (await worker.call({"do": "take memory", "bytes": 300 << 20}))[0]["said"] == "no memory"


@on_both_loops
async def test_what_a_child_has_started_ends_with_it() -> None:
    tasks = TaskRegistry()
    worker = await WorkerProcess.start(WorkerOptions(CHILD, has_children=True), tasks)
    other = (await worker.call({"do": "start another", "leaves": False}))[0]["pid"]
    assert Path(f"/proc/{other}").exists()
    worker.kill()
    await died(worker.call({"do": "echo", "say": ""}))
    while _runs(other):
        await asyncio.sleep(0.01)
    await ended(worker, tasks)


@on_both_loops
async def test_the_end_of_a_child_is_seen_although_another_process_has_its_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "EXIT_SECONDS", 0.1)
    tasks = TaskRegistry()
    worker = await WorkerProcess.start(WorkerOptions(CHILD, has_children=True), tasks)
    other = (await worker.call({"do": "start another", "leaves": True}))[0]["pid"]
    try:
        death = await died(worker.call({"do": "echo", "say": ""}, seconds=None))
        assert death.reason == "ended with status 0"
    finally:
        os.kill(other, signal.SIGKILL)
        while _runs(other):
            await asyncio.sleep(0.01)
        await ended(worker, tasks)
        # The library sees the end of the pipe that nobody reads any more.
        await asyncio.sleep(0.1)


def _runs(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
