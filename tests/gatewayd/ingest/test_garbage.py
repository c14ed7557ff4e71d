"""The collection of garbage: what is removed, and what a running upload needs is not."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.garbage import MIN_AGE_SECONDS, BlobHolder, GarbageCollector, GarbageCount
from tests.fakes.accounts.memory_stores import Memory

NOW = 1_000_000
OLD, NEW = NOW - 2 * 86_400, NOW - 60


class SpacesHouse:
    """Two spaces that nothing searches."""

    def __init__(self) -> None:
        self.names = ["a", "b"]

    async def find_unused(self) -> list[str]:
        return self.names

    async def remove_unused(self) -> int:
        return len(self.names)


class CountedRows:
    """Rows over a limit of age."""

    def __init__(self, left: int) -> None:
        self.left = left

    async def count(self) -> int:
        return self.left

    async def prune(self) -> int:
        left, self.left = self.left, 0
        return left


class GarbageHouse:
    """A folder of blobs, and the collector over it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.known = folder, {"kept01"}
        self.late: set[str] = set()
        self.pruned = 0
        holder = BlobHolder(LocalBlobs(folder), self.ids, self.exists)
        self.garbage = GarbageCollector(
            [holder], SpacesHouse(), {"expired sessions": self.prune}, Memory(), lambda: NOW
        )

    def put(self, name: str, at: int, size: int = 3) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, (at, at))
        return path

    async def ids(self) -> AsyncIterator[str]:
        for name in self.known:
            yield name

    async def exists(self, file_id: str) -> bool:
        return file_id in self.known | self.late

    async def prune(self) -> int:
        self.pruned += 1
        return 7


@pytest.fixture
def house(tmp_path: Path) -> GarbageHouse:
    return GarbageHouse(tmp_path)


async def test_only_old_bytes_without_a_row_are_removed(house: GarbageHouse) -> None:
    gone = [house.put("01/gone01", OLD, 5), house.put("incoming/half", OLD, 2)]
    kept = [
        house.put("01/kept01", OLD),
        house.put("02/young02", NEW),
        house.put("incoming/running", NEW),
    ]
    counts = {each.kind: (each.count, each.size) for each in await house.garbage.find()}
    assert all(path.exists() for path in (*gone, *kept))
    assert counts == {
        "orphaned files": (1, 5),
        "abandoned uploads": (1, 2),
        "unused vectors": (2, 0),
        "expired sessions": (7, 0),
    }
    assert {each.kind: (each.count, each.size) for each in await house.garbage.collect()} == counts
    assert [path.exists() for path in (*gone, *kept)] == [False, False, True, True, True]
    assert {each.kind: each.count for each in await house.garbage.find()}["orphaned files"] == 0


async def test_an_upload_that_was_finished_meanwhile_is_kept(house: GarbageHouse) -> None:
    """Its row, or its younger bytes, are seen right before the deletion."""
    path = house.put("01/late01", OLD)
    house.late.add("late01")
    await house.garbage.collect()
    assert path.exists()


async def test_bytes_that_became_young_meanwhile_are_kept(
    house: GarbageHouse,
) -> None:
    path = house.put("01/late01", OLD)

    async def exists(_: str) -> bool:
        os.utime(path, (NEW, NEW))
        return False

    holder = BlobHolder(LocalBlobs(house.folder), house.ids, exists)
    garbage = GarbageCollector([holder], SpacesHouse(), {}, Memory(), lambda: NOW)
    assert (await garbage.collect())[0].count == 0
    assert path.exists()


async def test_nothing_younger_than_an_hour_is_ever_removed(house: GarbageHouse) -> None:
    path = house.put("01/young01", NOW - MIN_AGE_SECONDS + 1)
    await house.garbage.collect(0)
    assert path.exists()


async def test_what_is_over_a_limit_of_age_is_counted_and_deleted(house: GarbageHouse) -> None:
    aged = {"old chats": CountedRows(4)}
    garbage = GarbageCollector([], SpacesHouse(), {}, Memory(), lambda: NOW, aged=aged)
    for work in (garbage.find, garbage.find, garbage.collect):
        assert GarbageCount("old chats", 4) in await work()
    assert GarbageCount("old chats", 0) in await garbage.find()


async def test_an_empty_folder(house: GarbageHouse) -> None:
    assert [each.count for each in await house.garbage.collect(1)] == [0, 0, 2, 7]
