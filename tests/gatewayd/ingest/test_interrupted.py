"""The queue over a real database, cancelled in the middle of whatever it does."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.ingest.records import File, FileStatus, ScopeKind, SearchScope
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import sqlite
from gatewayd.storage.engine.readers import open_reader
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.search.embedding_spaces import TortoiseSpaces
from gatewayd.storage.search.passages import TortoisePassages
from gatewayd.tasks import TaskRegistry
from tests.fakes.documents.ingest_services import Ingest, ingesting
from tests.fakes.documents.memory_stores import MemoryFiles, MemoryJobs, MemoryPassages, MemorySpaces

TEXTS = {
    f"{number}.txt": " ".join(f"word{number}-{each}" for each in range(100 * number)) for number in (1, 2, 40)
}
SPACE = "test:hash:1"


async def interrupt(folder: Path, steps: int, **stores: Any) -> bool:
    """Work for some half milliseconds and stop, as a kill would; False when all was done before."""
    tasks = TaskRegistry()
    ingest = Ingest(folder, tasks, **stores)
    ingest.queue.start()
    await asyncio.sleep(steps * 0.0005)
    is_unfinished = bool(await ingest.stores.jobs.list())
    await tasks.close()
    return is_unfinished


@pytest.mark.parametrize("share", range(4))
async def test_an_interrupted_file_is_finished_once(tmp_path: Path, migrated_copy: Path, share: int) -> None:
    location = sqlite(tmp_path / "gatewayd.db")
    async with Database.open(location) as database, open_reader(location) as reader:
        made = {
            MemoryFiles: TortoiseFiles(),
            MemoryJobs: TortoiseJobs(),
            MemoryPassages: TortoisePassages(reader),
            MemorySpaces: TortoiseSpaces(reader),
        }
        stores = {"wrap": lambda store: made[type(store)], "transactor": database}
        async with ingesting(tmp_path / "files", **stores) as ingest:
            await ingest.queue.close()
            files = [await ingest.upload(name, text) for name, text in TEXTS.items()]
        steps = 1 + share
        while await interrupt(tmp_path / "files", steps, **stores):
            # A kill that comes too early each time would be counted as the document's fault.
            for job in await ingest.stores.jobs.list():
                await ingest.stores.jobs.put(replace(job, attempts=min(job.attempts, 1)))
            steps += 4
        async with ingesting(tmp_path / "files", **stores) as ingest:
            for file in files:
                await check(ingest, file)
        assert await ingest.stores.jobs.list() == []


async def check(ingest: Ingest, file: File) -> None:
    done = await ingest.files.finished(file.id, 10)
    assert (done.status, done.error) == (FileStatus.COMPLETED, None)
    assert await ingest.stores.passages.find_text(file.id) == TEXTS[file.name]
    scope = SearchScope(ScopeKind.FILE, file.id)
    count = await ingest.stores.passages.count_vectors(SPACE, scope)
    assert count == done.chunks > 0
    assert not await ingest.stores.passages.is_staged(file.id)
