"""One scope in memory: what it does by and by."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatewayd.errors import GatewayError
from gatewayd.ingest.records import SearchScope, VectorBatch
from gatewayd.vectors.index import packed_files
from gatewayd.vectors.index import scope_index as loaded_module
from gatewayd.vectors.index.checkpoints import CheckpointKey, GraphCheckpoints
from gatewayd.vectors.index.flat_index import FlatIndex
from gatewayd.vectors.index.hnsw_index import HnswIndex
from gatewayd.vectors.index.hybrid_index import FlatAndHnsw
from gatewayd.vectors.index.recall import GraphRecall
from gatewayd.vectors.index.scope_index import MAX_RELOADED_FILES, IndexRules, IndexServices, ScopeIndex
from gatewayd.vectors.index.threads import IndexThreads
from tests.fakes.documents.index_conformance import (
    SPACE,
    MemoryPassages,
    assert_best,
    collection,
    random_rows,
)

SCOPE = collection("c")
RULES = IndexRules(threshold=20, tail=5, changes=30)


class Site:
    """A database and what is made of it."""

    def __init__(self, folder: Path) -> None:
        self.passages = MemoryPassages()
        self.checkpoints = GraphCheckpoints(folder)
        self.checkpoints.open()
        self.folder = folder
        self.threads = IndexThreads()

    def loaded(self, rules: IndexRules = RULES) -> ScopeIndex:
        return ScopeIndex(
            CheckpointKey(SPACE, SCOPE), IndexServices(self.passages, self.checkpoints, self.threads, rules)
        )

    async def opened(self, rules: IndexRules = RULES) -> ScopeIndex:
        loaded = self.loaded(rules)
        await loaded.open()
        return loaded

    async def tended(self, rules: IndexRules = RULES) -> ScopeIndex:
        loaded = await self.opened(rules)
        await loaded.tend()
        return loaded

    async def put(self, loaded: ScopeIndex, name: str, count: int, seed: int) -> Sequence[int]:
        ids = self.passages.put(name, random_rows(count, seed), ["c"])
        await loaded.refresh(name)
        return ids

    async def assert_right(self, loaded: ScopeIndex, limit: int = 10) -> None:
        truth = self.passages.truth(SPACE, SCOPE)
        for query in random_rows(5, 99):
            assert_best(await loaded.search(query, limit), truth, query, limit)
        assert loaded.parts.ids == truth.keys()

    @property
    def generations(self) -> list[int]:
        return sorted(int(path.name.split(".")[2]) for path in self.folder.glob("*.json"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.threads.close()


async def test_few_vectors_have_no_graph(site: Site) -> None:
    site.passages.put("f", random_rows(19, 1), ["c"])
    loaded = await site.tended()
    assert not loaded.has_graph
    assert not loaded.is_due
    await site.put(loaded, "g", 1, 2)
    assert loaded.is_due
    await site.assert_right(loaded)
    await loaded.tend()
    assert loaded.has_graph
    assert len(loaded.parts.flat) == 0
    await site.assert_right(loaded)


async def test_what_is_new_waits_in_the_matrix_until_it_is_enough(site: Site) -> None:
    site.passages.put("f", random_rows(25, 1), ["c"])
    loaded = await site.tended()
    await site.put(loaded, "g", 4, 2)
    assert not loaded.is_due
    assert len(loaded.parts.flat) == 4
    await site.assert_right(loaded)
    await site.put(loaded, "h", 1, 3)
    graph = loaded.parts.graph
    await loaded.tend()
    assert loaded.parts.graph is graph
    assert len(loaded.parts.flat) == 0
    await site.assert_right(loaded)


async def test_a_full_graph_is_built_anew_larger(site: Site) -> None:
    site.passages.put("f", random_rows(40, 1), ["c"])
    loaded = await site.tended()
    graph = loaded.parts.graph
    assert graph is not None
    await site.put(loaded, "g", graph.free + 1, 2)
    await site.assert_right(loaded)
    await loaded.tend()
    assert loaded.parts.graph is not graph
    await site.assert_right(loaded)


async def test_a_graph_with_many_removed_ones_is_built_anew(site: Site) -> None:
    for number in range(10):
        site.passages.put(f"f{number}", random_rows(10, number), ["c"])
    loaded = await site.tended()
    graph = loaded.parts.graph
    for number in range(2):
        site.passages.drop_file(f"f{number}")
        await loaded.refresh(f"f{number}")
    assert not loaded.is_due
    for number in range(2, 4):
        site.passages.drop_file(f"f{number}")
        await loaded.refresh(f"f{number}")
    await loaded.tend()
    assert loaded.parts.graph is not graph
    assert loaded.parts.graph is not None
    assert loaded.parts.graph.waste == 0
    await site.assert_right(loaded)


async def test_a_graph_is_given_up_when_few_are_left(site: Site) -> None:
    for number in range(5):
        site.passages.put(f"f{number}", random_rows(5, number), ["c"])
    loaded = await site.tended()
    assert site.generations == [1]
    for number in range(3):
        site.passages.drop_file(f"f{number}")
        await loaded.refresh(f"f{number}")
    await loaded.tend()
    assert loaded.has_graph
    site.passages.put("f3", random_rows(4, 9))
    await loaded.refresh("f3")
    await loaded.tend()
    assert not loaded.has_graph
    assert site.generations == []
    await site.assert_right(loaded)


async def test_changes_during_the_build_are_kept(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.passages.put("f", random_rows(300, 1), ["c"])
    site.passages.put("g", random_rows(300, 2), ["c"])
    loaded = await site.opened()
    replaced = asyncio.Event()
    copies = 0
    copy = FlatAndHnsw.copy

    def copy_and_change(parts: FlatAndHnsw, ids: Sequence[int], target: HnswIndex | FlatIndex) -> None:
        nonlocal copies
        copy(parts, ids, target)
        copies += 1
        if copies == 2:
            site.passages.drop_file("f")
            site.passages.put("h", random_rows(7, 3), ["c"])
            loop.call_soon_threadsafe(replaced.set)

    async def change() -> None:
        await replaced.wait()
        for name in ("f", "h"):
            await loaded.refresh(name)
        await site.assert_right(loaded)
        assert not loaded.has_graph

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(FlatAndHnsw, "copy", copy_and_change)
    await asyncio.gather(loaded.tend(), change())
    assert loaded.has_graph
    assert len(loaded.parts.ids) == 307
    await site.assert_right(loaded)


async def test_a_checkpoint_saves_the_build(site: Site) -> None:
    site.passages.put("f", random_rows(60, 1), ["c"])
    await site.tended()
    assert site.generations == [1]
    site.passages.calls.clear()
    again = await site.opened()
    assert again.has_graph
    assert "load" not in site.passages.calls
    assert not again.is_unsaved
    await site.assert_right(again)


@pytest.mark.parametrize("files", [3, MAX_RELOADED_FILES + 1])
async def test_a_checkpoint_older_than_the_database_catches_up(site: Site, files: int) -> None:
    for number in range(10):
        site.passages.put(f"f{number}", random_rows(10, number), ["c"])
    await site.tended()
    site.passages.put("f1", random_rows(12, 50))
    site.passages.drop_file("f2")
    for number in range(files):
        site.passages.put(f"new{number}", random_rows(3, 100 + number), ["c"])
    again = await site.opened()
    assert again.has_graph
    await site.assert_right(again)
    await again.tend()
    await site.assert_right(again)


async def test_a_file_that_was_saved_in_part_is_whole_again(site: Site) -> None:
    site.passages.put("f", random_rows(60, 1), ["c"])
    loaded = await site.tended()
    ids = site.passages.put("g", random_rows(20, 2), ["c"])
    await loaded.refresh("g")
    graph = loaded.parts.graph
    assert graph is not None
    loaded.parts.copy(ids[:9], graph)
    await loaded.save()
    again = await site.opened()
    await site.assert_right(again)
    await again.tend()
    await site.assert_right(again)


async def test_a_checkpoint_newer_than_the_database_is_not_believed(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(10):
        site.passages.put(f"f{number}", random_rows(10, number), ["c"])
    await site.tended()
    # The database is brought back from yesterday, and gives the same ids to other passages.
    for number in range(5, 10):
        site.passages.drop_file(f"f{number}")
    site.passages.last_id = 50
    for number in range(3):
        site.passages.put(f"other{number}", random_rows(10, 70 + number), ["c"])
    again = await site.opened()
    assert "another database" in caplog.text
    assert site.generations == []
    await site.assert_right(again)


async def test_checkpoints_come_after_many_changes(site: Site) -> None:
    site.passages.put("f", random_rows(100, 1), ["c"])
    loaded = await site.tended()
    assert site.generations == [1]
    await site.put(loaded, "g", 29, 2)
    await loaded.tend()
    assert site.generations == [1]
    assert loaded.is_unsaved
    await site.put(loaded, "h", 1, 3)
    await loaded.tend()
    assert site.generations == [1, 2]
    assert not loaded.is_unsaved
    await loaded.save()
    assert site.generations == [1, 2]


async def test_a_full_disk_is_no_failure(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(site.checkpoints, "write", fail)
    site.passages.put("f", random_rows(60, 1), ["c"])
    loaded = await site.tended()
    assert "cannot write a checkpoint: no space" in caplog.text
    await site.assert_right(loaded)


async def test_opening_again_reads_nothing(site: Site) -> None:
    site.passages.put("f", random_rows(5, 1), ["c"])
    loaded = await site.opened()
    site.passages.calls.clear()
    await loaded.open()
    assert site.passages.calls == []


async def test_nothing_is_refreshed_before_it_was_read(site: Site) -> None:
    loaded = site.loaded()
    await loaded.refresh("f")
    assert site.passages.calls == []


class Broken(MemoryPassages):
    """A database that fails, or that has what it should not."""

    async def load(self, space: str, scope: SearchScope) -> AsyncIterator[VectorBatch]:
        yield VectorBatch("f9", bytes(8), bytes(3))


async def test_a_failed_load_can_be_tried_again(site: Site) -> None:
    good = site.passages
    site.passages = Broken()
    loaded = site.loaded()
    with pytest.raises(GatewayError, match="file 'f9'"):
        await loaded.open()
    assert not loaded.is_ready
    good.put("f", random_rows(5, 1), ["c"])
    loaded._tools = IndexServices(good, site.checkpoints, site.threads, RULES)
    await loaded.open()
    assert len(loaded.parts.ids) == 5


@pytest.mark.parametrize("count", [10, 60])
async def test_a_comparison_mends_and_tells(site: Site, count: int) -> None:
    site.passages.put("f", random_rows(count, 1), ["c"])
    site.passages.put("g", random_rows(5, 2), ["c"])
    loaded = await site.tended()
    assert await loaded.compare() == []
    ids = site.passages.ids["f"]
    loaded.parts.remove(ids[:2])
    site.passages.vectors[SPACE.name, "f"][4:7] *= -1
    site.passages.drop_file("g")
    site.passages.put("h", random_rows(3, 3), ["c"])
    loaded.parts.flat.add([7_000], random_rows(1, 4))
    assert sorted(await loaded.compare()) == [
        "2 passages of file 'f' were missing",
        "3 passages of file 'f' had other vectors",
        "3 passages of file 'h' were missing",
        "5 passages of file 'g' were gone from the file",
        "the index held 1 passages of no file",
    ]
    assert await loaded.compare() == []
    await site.assert_right(loaded, 70)


@pytest.mark.parametrize("count", [9, 60])
async def test_nothing_is_packed_or_compared_on_the_event_loop(
    site: Site, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    threads: Counter[int] = Counter()

    def told(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            threads[threading.get_ident()] += 1
            return function(*given)

        return call

    site.passages.put("f", random_rows(count, 1), ["c"])
    site.passages.put("g", random_rows(25, 2), ["c"])
    loaded = await site.opened()
    for module in (loaded_module, packed_files):
        for name in {"pack_ids", "unpack_ids", "unpack_batches"} & vars(module).keys():
            monkeypatch.setattr(module, name, told(getattr(module, name)))
    monkeypatch.setattr(FlatAndHnsw, "ids", property(told(FlatAndHnsw.ids.__get__)))
    await loaded.tend()
    loaded.parts.flat.add([7_000], random_rows(1, 4))
    site.passages.vectors[SPACE.name, "f"][4:7] *= -1
    assert len(await loaded.compare()) == 2
    site.passages.drop_file("g")
    await loaded.refresh("g")
    await loaded.tend()
    assert loaded.has_graph == (count == 60)
    assert threads
    assert threads[threading.get_ident()] == 0


async def test_what_a_graph_finds_is_measured_when_it_is_new_or_has_grown(site: Site) -> None:
    site.passages.put("f", random_rows(40, 1), ["c"])
    loaded = await site.tended()
    graph = loaded.parts.graph
    assert graph is not None
    assert loaded.recall == GraphRecall(1.0, graph.ef_search)
    assert not loaded.is_due
    loaded.recall = None
    await site.put(loaded, "g", 6, 2)
    await loaded.tend()
    assert (len(graph), loaded.recall) == (46, None)
    await site.put(loaded, "h", 6, 3)
    await loaded.tend()
    assert loaded.parts.graph is graph
    assert (len(graph), loaded.recall) == (52, GraphRecall(1.0, graph.ef_search))


async def test_what_a_graph_finds_is_measured_after_a_restart_and_now_and_then(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.passages.put("f", random_rows(40, 1), ["c"])
    await site.tended()
    again = await site.opened()
    assert again.is_due
    await again.tend()
    assert again.recall is not None
    assert not again.is_due
    later = time.monotonic() + RULES.check
    monkeypatch.setattr("gatewayd.vectors.index.scope_index.time.monotonic", lambda: later)
    assert again.is_due


async def test_its_size_follows_what_it_holds(site: Site) -> None:
    loaded = await site.opened()
    empty = loaded.size
    await site.put(loaded, "f", 1000, 1)
    assert loaded.size - empty >= 1000 * SPACE.dimension * np.float32().itemsize
