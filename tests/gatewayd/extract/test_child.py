import resource
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extract.messages import AnswerLimits, unpack_answer
from gatewayd.extract.records import OVER_MEMORY
from gatewayd.tasks import TaskRegistry
from gatewayd.workers import WorkerOptions, WorkerProcess

LIMITS = AnswerLimits(1000, 100)
OPTIONS = {"text": 1000, "size": 100, "overlap": 0, "tokens": 50, "seconds": 7.5, "sandbox": "require"}


@pytest.fixture
async def child(tmp_path: Path) -> AsyncIterator[WorkerProcess]:
    arguments = (orjson.dumps(OPTIONS).decode(), str(tmp_path))
    worker = await WorkerProcess.start(
        WorkerOptions("gatewayd.extract.child", arguments, memory=400 << 20), TaskRegistry()
    )
    yield worker
    await worker.close()


def asked(path: Path, data: bytes, name: str = "x") -> dict[str, str | None]:
    path.write_bytes(data)
    return {"path": str(path), "name": name, "content_type": None}


async def test_the_answer_is_the_text_and_where_its_chunks_are(child: WorkerProcess, tmp_path: Path) -> None:
    found = unpack_answer(
        *await child.call(asked(tmp_path / "a", "# Vögel\n\nwords\n".encode(), "a.md")), LIMITS
    )
    assert found.text == "# Vögel\n\nwords\n\n"
    assert (found.pages, found.title) == (None, "Vögel")
    chunk = found.chunks[0]
    assert (chunk.number, chunk.start, chunk.page, chunk.heading) == (0, 0, None, "Vögel")
    assert found.text[chunk.start : chunk.end].startswith("# Vögel")


async def test_each_document_has_its_own_processor_time(child: WorkerProcess, tmp_path: Path) -> None:
    limits = []
    for _ in range(2):
        await child.call(asked(tmp_path / "a", b"words"))
        limits.append(resource.prlimit(child.pid, resource.RLIMIT_CPU))
    assert all(8 <= soft <= 12 and hard == resource.RLIM_INFINITY for soft, hard in limits)


async def test_failures_have_a_kind_and_a_sentence(child: WorkerProcess, tmp_path: Path) -> None:
    cases = (
        (b"", ErrorKind.INVALID_REQUEST, None, "it is empty"),
        (b"x" * 2000, ErrorKind.INVALID_REQUEST, None, "more than 1000 characters"),
        (
            b"[" + b"[]," * 15_000_000 + b"1]",
            ErrorKind.INVALID_REQUEST,
            OVER_MEMORY,
            "more than 419 MB of memory",
        ),
    )
    for data, kind, code, words in cases:
        with pytest.raises(GatewayError) as caught:
            await child.call(asked(tmp_path / "a", data))
        assert (caught.value.kind, caught.value.code) == (kind, code)
        assert words in caught.value.message
    with pytest.raises(GatewayError) as caught:
        await child.call({"path": str(tmp_path), "name": "x", "content_type": None})
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    assert caught.value.message == "cannot read the file: Is a directory"
