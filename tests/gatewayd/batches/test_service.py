"""Tests for gatewayd.batches.service, over stores in memory."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Actor
from gatewayd.batches import files as files_module
from gatewayd.batches import service as service_module
from gatewayd.batches.files import BatchFiles, FileWishes
from gatewayd.batches.records import Batch, BatchFile
from gatewayd.batches.service import Batches
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.blobs import LocalBlobs
from tests.fakes.providers.models import make_actor

ACTOR = make_actor("u1")


class MemoryBatches:
    """A `BatchStore` of what the creation of batches asks for."""

    def __init__(self) -> None:
        self.rows: list[Batch] = []

    async def add(self, batch: Batch) -> None:
        self.rows.append(batch)

    async def count_unfinished(self, user_id: str) -> int:
        found = len(self.rows)
        await asyncio.sleep(0)
        return found


class MemoryFiles:
    """A `BatchFileStore` of what the creation of batches asks for."""

    def __init__(self) -> None:
        self.rows: dict[str, BatchFile] = {}
        self.results = 0

    async def add(self, file: BatchFile) -> None:
        self.rows[file.id] = file

    async def find(self, file_id: str) -> BatchFile | None:
        return self.rows.get(file_id)

    async def usage(self, user_id: str) -> tuple[int, int]:
        await asyncio.sleep(0)
        own = [file for file in self.rows.values() if file.user_id == user_id]
        return len(own), self.results or sum(file.size for file in own)

    async def expired(self, now: int, most: int) -> Sequence[str]:
        return []

    async def ids(self) -> AsyncIterator[str]:
        for file_id in self.rows:
            yield file_id

    async def remove(self, file_ids: Collection[str]) -> None:
        for file_id in file_ids:
            self.rows.pop(file_id, None)


class Site:
    """The service, its stores, and the worker and the rights that it asks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows, self.batches = MemoryFiles(), MemoryBatches()
        self.files = BatchFiles(self.rows, LocalBlobs(folder))  # type: ignore[arg-type]
        self.service = Batches(self.batches, self.files, self, self)  # type: ignore[arg-type]
        self.refusal: GatewayError | None = None

    def wake(self) -> None:
        """Begin nothing."""

    async def of(self, batch: Batch) -> Actor:
        if self.refusal is not None:
            raise self.refusal
        return ACTOR

    def stored(self) -> Sequence[Path]:
        return [path for path in self.folder.rglob("file-*") if path.is_file()]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def lines() -> AsyncIterator[bytes]:
    yield b"{}\n"


async def test_a_refused_batch_of_messages_leaves_no_file(site: Site) -> None:
    site.refusal = GatewayError(ErrorKind.FORBIDDEN, "cannot use the key here")
    with pytest.raises(GatewayError, match="cannot use the key"):
        await site.service.create_messages(ACTOR, lines(), 1)
    assert (site.rows.rows, site.stored(), site.batches.rows) == ({}, [], [])
    site.refusal = None
    batch = await site.service.create_messages(ACTOR, lines(), 1)
    assert list(site.rows.rows) == [batch.input_file_id]


async def test_no_batch_begins_while_results_fill_the_room_of_the_user(site: Site) -> None:
    """One file of requests may have any number of results."""
    file = await site.files.upload("u1", "a", lines(), lambda: FileWishes("batch"))
    asked: Any = (ACTOR, file.id, "/v1/embeddings", "24h")
    assert (await site.service.create(*asked)).input_file_id == file.id
    site.rows.results = files_module.MAX_USER_BYTES
    with pytest.raises(GatewayError) as refused:
        await site.service.create(*asked)
    assert refused.value.code == "too_many_files"
    assert len(site.batches.rows) == 1


async def test_a_file_of_another_user_is_not_found(site: Site) -> None:
    file = await site.files.upload("u2", "a", lines(), lambda: FileWishes("batch"))
    with pytest.raises(GatewayError) as refused:
        await site.service.create(ACTOR, file.id, "/v1/embeddings", "24h")
    assert refused.value.kind is ErrorKind.NOT_FOUND


async def test_the_bytes_of_a_deleted_user_go_without_a_restart(site: Site) -> None:
    for user_id in ("u1", "u2"):
        await site.files.upload(user_id, "a", lines(), lambda: FileWishes("batch"))
    for path in site.stored():
        os.utime(path, (1, 1))
    site.rows.rows = {file.id: file for file in site.rows.rows.values() if file.user_id == "u2"}
    assert await site.files.prune() == 1
    assert [path.name for path in site.stored()] == list(site.rows.rows)


async def test_the_bytes_of_a_removed_user_go_at_once_and_a_running_upload_stays(site: Site) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"{}"
        begun.set()
        await gate.wait()

    gone = await site.files.upload("u1", "a", lines(), lambda: FileWishes("batch"))
    running = asyncio.ensure_future(site.files.upload("u2", "a", slow(), lambda: FileWishes("batch")))
    await begun.wait()
    del site.rows.rows[gone.id]
    sweep = asyncio.ensure_future(site.files.remove_orphans())
    gate.set()
    assert await sweep == 1
    kept = await running
    assert await site.files.remove_orphans() == 0
    assert [path.name for path in site.stored()] == [kept.id]
    assert site.files._receiving == {}


async def gather_codes(*asked: Awaitable[object]) -> list[str | None]:
    """Return the codes of the failures, None for a success."""
    found = await asyncio.gather(*asked, return_exceptions=True)
    return [each.code if isinstance(each, GatewayError) else None for each in found]


async def test_uploads_side_by_side_stay_in_the_room_of_their_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them found room before any of them was stored."""
    monkeypatch.setattr(files_module, "MAX_USER_FILES", 5)
    monkeypatch.setattr(files_module, "MAX_USER_BYTES", 300)
    site = Site(tmp_path)
    gate = asyncio.Event()

    async def slow(size: int) -> AsyncIterator[bytes]:
        await gate.wait()
        for _ in range(size):
            yield b"x" * 10
            await asyncio.sleep(0)

    def upload(size: int, user_id: str = "u1") -> Awaitable[object]:
        return site.files.upload(user_id, "a", slow(size), lambda: FileWishes("batch"))

    asyncio.get_running_loop().call_soon(gate.set)
    codes = await gather_codes(*(upload(1) for _ in range(9)), upload(1, "u2"))
    assert codes == [*[None] * 5, *["too_many_files"] * 4, None]
    site.rows.rows.clear()
    codes = await gather_codes(*(upload(size) for size in (8, 9, 10, 11, 4)))
    assert codes.count(None) == len(site.rows.rows)
    assert sum(file.size for file in site.rows.rows.values()) <= 300
    assert len(site.stored()) == 6 + len(site.rows.rows)
    # What failed has left its room.
    site.rows.rows.clear()
    assert await gather_codes(upload(30)) == [None]
    site.rows.rows.clear()
    assert await gather_codes(upload(31)) == ["too_many_files"]
    assert await gather_codes(upload(1)) == [None]


async def test_batches_side_by_side_stay_in_the_room_of_their_user(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "MAX_UNFINISHED", 3)
    file = await site.files.upload("u1", "a", lines(), lambda: FileWishes("batch"))
    asked = [site.service.create(ACTOR, file.id, "/v1/embeddings", "24h") for _ in range(9)]
    codes = await gather_codes(*asked)
    assert len(site.batches.rows) == codes.count(None) <= 3
    assert (await gather_codes(site.service.create(ACTOR, file.id, "/v1/embeddings", "24h")))[0] in (
        *(None, "too_many_batches"),
    )
    assert len(site.batches.rows) <= 3
