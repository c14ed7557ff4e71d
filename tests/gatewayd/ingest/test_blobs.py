"""Bytes on disk: received whole or not at all."""

import asyncio
import hashlib
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest import blobs as module
from gatewayd.ingest.blobs import LocalBlobs, ReceivedBytes
from tests.fakes.documents.ingest_services import stream

FILE_ID = "0190-abcd-ef"


@pytest.fixture
def blobs(tmp_path: Path) -> LocalBlobs:
    return LocalBlobs(tmp_path / "files")


def left(folder: Path) -> list[str]:
    """Return the files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def test_bytes_are_kept_under_the_end_of_the_id(tmp_path: Path, blobs: LocalBlobs) -> None:
    pieces = [b"x" * 700_000, b"", b"y" * 700_000, b"z"]
    received = await blobs.receive(FILE_ID, stream(*pieces), 0)
    data = b"".join(pieces)
    assert received == ReceivedBytes(len(data), hashlib.sha256(data).hexdigest())
    assert blobs.path(FILE_ID).read_bytes() == data
    assert left(tmp_path) == [f"files/ef/{FILE_ID}"]
    assert blobs.path(FILE_ID).stat().st_mode & 0o777 == 0o600


async def test_no_bytes_are_a_file_too(blobs: LocalBlobs) -> None:
    received = await blobs.receive(FILE_ID, stream(), 10)
    assert (received.size, blobs.path(FILE_ID).read_bytes()) == (0, b"")


async def test_the_limit_is_kept_while_receiving(tmp_path: Path, blobs: LocalBlobs) -> None:
    asked: list[int] = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            asked.append(1)
            yield b"x" * 600_000

    with pytest.raises(GatewayError) as refused:
        await blobs.receive(FILE_ID, endless(), 2_000_000)
    assert (refused.value.kind, refused.value.param) == (ErrorKind.TOO_LARGE, "file")
    assert len(asked) == 4
    assert left(tmp_path) == []
    assert (await blobs.receive(FILE_ID, stream(b"x" * 10), 10)).size == 10


async def test_a_client_that_leaves_leaves_nothing(tmp_path: Path, blobs: LocalBlobs) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 2_000_000
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await blobs.receive(FILE_ID, broken(), 0)
    assert left(tmp_path) == []


@pytest.mark.parametrize("step", ["open", "write", "finish"])
async def test_a_cancelled_upload_leaves_nothing(
    tmp_path: Path, blobs: LocalBlobs, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    plain = getattr(module._Sink, step)

    def slow(*args: Any) -> Any:
        begun.set()
        assert go_on.wait(10)
        return plain(*args)

    monkeypatch.setattr(module._Sink, step, slow)
    async with asyncio.TaskGroup() as group:
        receiving = group.create_task(blobs.receive(FILE_ID, stream(b"data"), 0))
        await asyncio.to_thread(begun.wait)
        receiving.cancel()
        go_on.set()
    assert receiving.cancelled()
    # The thread that was at work has ended when another one has had its turn.
    await asyncio.to_thread(lambda: None)
    assert left(tmp_path) == []


async def test_a_disk_that_refuses_is_told(blobs: LocalBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module._Sink, "write", full)
    with pytest.raises(GatewayError, match="cannot store the file: No space left on device") as refused:
        await blobs.receive(FILE_ID, stream(b"data"), 0)
    assert refused.value.kind is ErrorKind.UNAVAILABLE


async def test_a_key_is_used_once(tmp_path: Path, blobs: LocalBlobs) -> None:
    await blobs.receive(FILE_ID, stream(b"first"), 0)
    with pytest.raises(GatewayError, match="cannot store the file: File exists") as refused:
        await blobs.receive(FILE_ID, stream(b"second"), 0)
    assert refused.value.kind is ErrorKind.UNAVAILABLE
    (tmp_path / "files/incoming/other").write_bytes(b"of another attempt")
    with pytest.raises(GatewayError, match="cannot store the file: File exists"):
        await blobs.receive("other", stream(b"second"), 0)
    assert blobs.path(FILE_ID).read_bytes() == b"first"
    assert left(tmp_path) == [f"files/ef/{FILE_ID}", "files/incoming/other"]


async def test_removing_what_is_not_there_is_fine(blobs: LocalBlobs) -> None:
    await blobs.receive(FILE_ID, stream(b"data"), 0)
    await blobs.remove([FILE_ID, "other"])
    await blobs.remove([FILE_ID])
    assert not blobs.path(FILE_ID).exists()


async def test_the_sweep_takes_what_nobody_knows(tmp_path: Path, blobs: LocalBlobs) -> None:
    assert await blobs.sweep(stream_of()) == 0
    for file_id in ("a1", "b2", "c1"):
        await blobs.receive(file_id, stream(b"data"), 0)
    (tmp_path / "files/incoming/half").write_bytes(b"ha")
    assert await blobs.sweep(stream_of("b2", "gone")) == 3
    assert left(tmp_path) == ["files/b2/b2"]


async def test_a_sweep_at_any_time_takes_what_is_old(tmp_path: Path, blobs: LocalBlobs) -> None:
    assert await blobs.sweep_old(stream_of(), 2) == 0
    for file_id in ("a1", "b2", "c1"):
        await blobs.receive(file_id, stream(b"data"), 0)
    (tmp_path / "files/incoming/half").write_bytes(b"ha")
    for path in (blobs.path("a1"), blobs.path("b2"), tmp_path / "files/incoming/half"):
        os.utime(path, (1, 1))
    assert await blobs.sweep_old(stream_of("b2"), 2) == 1
    assert sorted(left(tmp_path)) == ["files/b2/b2", "files/c1/c1", "files/incoming/half"]


async def stream_of(*file_ids: str) -> AsyncIterator[str]:
    for file_id in file_ids:
        yield file_id


async def test_empty_folders_of_other_nodes_are_removed_once_they_are_old(tmp_path: Path) -> None:
    own, other = (LocalBlobs(tmp_path, name, is_shared=True) for name in ("own", "other"))
    for store, key in ((own, "key-1"), (other, "key-2")):
        await store.receive(key, stream(b"x"), 0)
    incoming = tmp_path / module.INCOMING
    (incoming / "busy").mkdir()
    (incoming / "busy" / "key-3").write_bytes(b"half")
    now = int(incoming.stat().st_mtime)
    assert await own.remove_abandoned(now - 60) == []
    assert len(list(incoming.iterdir())) == 3
    for name in ("own", "other", "busy"):
        os.utime(incoming / name, (now - 100, now - 100))
    assert await own.remove_abandoned(now - 60) == []
    assert sorted(path.name for path in incoming.iterdir()) == ["busy", "own"]
    # The other node goes on.
    await other.receive("key-4", stream(b"y"), 0)
    assert other.path("key-4").read_bytes() == b"y"


async def test_a_folder_that_goes_away_before_the_file_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, folder = os.open, tmp_path / module.INCOMING / "own"

    def remove_first(path: Any, *rest: Any) -> int:
        monkeypatch.setattr(os, "open", real)
        folder.rmdir()
        return real(path, *rest)

    monkeypatch.setattr(os, "open", remove_first)
    store = LocalBlobs(tmp_path, "own", is_shared=True)
    await store.receive("key-1", stream(b"x"), 0)
    assert store.path("key-1").read_bytes() == b"x"
