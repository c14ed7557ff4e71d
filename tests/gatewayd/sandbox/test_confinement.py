"""What a process can do that is confined: a hostile reader tries, in the process that reads documents."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import orjson
import pytest

from gatewayd.extract.messages import AnswerLimits, unpack_answer
from gatewayd.sandbox import confinement, landlock, seccomp
from gatewayd.sandbox.confinement import LANDLOCK, SECCOMP
from gatewayd.tasks import TaskRegistry
from gatewayd.workers import WorkerDiedError, WorkerOptions, WorkerProcess

CHILD = "tests.fakes.daemons.hostile_worker"
LIMITS = AnswerLimits(10_000, 10_000)
OPTIONS = {"text": 10_000, "size": 10_000, "overlap": 0, "tokens": 10_000, "seconds": 60}
REFUSED = {"EPERM", "EACCES", "ENOSYS"}
READING = {
    "read the accounts",
    "read another file",
    "list the folder above",
    "read the secrets of the parent",
}

Try = Callable[..., Awaitable[Mapping[str, str]]]


@pytest.fixture
async def hostile(tmp_path: Path) -> AsyncIterator[Try]:
    """Return what has a document tell how everything ended that it tried."""
    tasks = TaskRegistry()
    foreign, folder = tmp_path / "gatewayd.db", tmp_path / "reader"
    foreign.write_bytes(b"secret")
    folder.mkdir()
    document = folder / "document"
    document.write_bytes(orjson.dumps({"parent": os.getpid(), "foreign": str(foreign)}))

    async def tried(
        sandbox: str = "require", name: str = "x", without: tuple[str, ...] = ()
    ) -> Mapping[str, str]:
        options = orjson.dumps({**OPTIONS, "sandbox": sandbox, "without": without}).decode()
        worker = await WorkerProcess.start(WorkerOptions(CHILD, (options, str(folder))), tasks)
        try:
            message = {"path": str(document), "name": name, "content_type": None}
            outcomes: dict[str, str] = orjson.loads(unpack_answer(*await worker.call(message), LIMITS).text)
        finally:
            await worker.close()
        assert outcomes.pop("use a thread") == "done"
        return outcomes

    yield tried
    await tasks.close()
    assert foreign.read_bytes() == b"secret"


async def test_a_reader_gets_at_nothing_but_its_document(hostile: Try) -> None:
    outcomes = await hostile()
    assert len(outcomes) > 25
    assert {what: outcome for what, outcome in outcomes.items() if outcome not in REFUSED} == {}


async def test_without_landlock_only_reading_is_left(hostile: Try) -> None:
    outcomes = await hostile("auto", without=(LANDLOCK,))
    assert {what for what, outcome in outcomes.items() if outcome not in REFUSED} == READING


async def test_without_seccomp_files_and_the_network_are_out_of_reach(hostile: Try) -> None:
    # Nothing is tried that would not end: without a filter a reader can start processes.
    ended = "a"
    with pytest.raises(WorkerDiedError) as death:
        await hostile("require", ended, (SECCOMP,))
    assert death.value.reason == "ended with status 1: cannot confine the process: seccomp failed"


async def test_a_fault_in_a_reader_ends_it_as_before(hostile: Try) -> None:
    with pytest.raises(WorkerDiedError) as death:
        await hostile(name="abort")
    assert death.value.ended_by is signal.SIGABRT


def test_what_the_kernel_lacks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert confinement.missing_features() == []
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert confinement.missing_features() == [LANDLOCK]
    monkeypatch.setattr(seccomp, "is_available", lambda: False)
    assert confinement.missing_features() == [LANDLOCK, SECCOMP]
