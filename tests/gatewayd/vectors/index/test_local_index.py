"""The local index: what every index does, and what only this one has to."""

import asyncio
import contextlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import SearchScope, VectorBatch
from gatewayd.tasks import TaskRegistry
from gatewayd.vectors.index import local_index as module
from gatewayd.vectors.index import scope_index as loaded_module
from gatewayd.vectors.index.hnsw_index import MIN_EF_SEARCH
from gatewayd.vectors.index.local_index import LocalIndex
from gatewayd.vectors.index.recall import GraphRecall
from gatewayd.vectors.index.scope_index import IndexRules
from tests.fakes.documents.index_conformance import (
    SPACE,
    IndexConformance,
    IndexHarness,
    MemoryHarness,
    MemoryPassages,
    assert_best,
    clustered_rows,
    collection,
    found,
    found_ids,
    nearest,
    packed,
    random_rows,
    single,
)

SMALL = IndexRules(threshold=4, tail=2, changes=5)
MUCH = 1 << 30


class Site:
    """An index over vectors in memory, that can be opened again."""

    def __init__(self, folder: Path, budget: int = MUCH, rules: IndexRules = SMALL) -> None:
        self.folder = folder
        self.passages = MemoryPassages()
        self.tasks = TaskRegistry()
        self.budget = budget
        self.rules = rules
        self.index = self.made()

    def made(self) -> LocalIndex:
        return LocalIndex(self.passages, self.folder, self.budget, self.tasks, self.rules)

    async def reopen(self, *, clean: bool = True) -> None:
        """Start again, after a clean end or as after a crash."""
        if clean:
            await self.index.close()
        else:
            await self.tasks.close()
            self.index._threads.close()
        self.index = self.made()
        await self.index.open()

    async def rest(self) -> None:
        """Wait until nothing is done in the background but waiting."""
        while self.index._tending or self.index._leaving:
            await asyncio.sleep(0.001)

    async def close(self) -> None:
        await self.index.close()
        await self.tasks.close()

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def calls(self, name: str) -> int:
        return self.passages.calls.count(name)


async def opened(site: Site) -> AsyncIterator[Site]:
    await site.index.open()
    yield site
    await site.close()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async for one in opened(Site(tmp_path)):
        yield one


class _OfRules(IndexConformance):
    budget = MUCH
    rules = SMALL

    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[IndexHarness]:
        async for one in opened(Site(tmp_path, self.budget, self.rules)):
            yield MemoryHarness(one.index, one.passages)


class TestMatrix(_OfRules):
    rules = IndexRules()


class TestGraph(_OfRules):
    pass


class TestNothingStays(_OfRules):
    budget = 0


# Memory


async def test_scopes_are_loaded_when_they_are_asked(site: Site) -> None:
    site.passages.put("f", random_rows(3, 1), ["c"])
    await site.index.refresh(collection("c"), "f")
    assert site.passages.calls == []
    query = random_rows(1, 2)[0]
    for _ in range(3):
        await found(site.index, collection("c"), query)
    assert site.calls("load") == 1
    await asyncio.gather(*(found(site.index, single("f"), query) for _ in range(20)))
    assert site.calls("load") == 2


async def test_what_was_not_used_for_long_makes_room(tmp_path: Path) -> None:
    site = Site(tmp_path, rules=IndexRules())
    for name in "abc":
        site.passages.put(name, random_rows(1000, 1), [name])
    async for _ in opened(site):
        query = random_rows(1, 2)[0]
        await found(site.index, collection("a"), query)
        site.index._cache._budget = int(site.index.size * 2.5)
        for name, loads in (("b", 2), ("a", 2), ("c", 3), ("a", 3), ("c", 3), ("b", 4), ("a", 5)):
            await found(site.index, collection(name), query)
            assert site.calls("load") == loads, name
            assert site.index.size <= site.index._cache._budget


async def test_collections_that_load_each_other_out_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async for site in opened(Site(tmp_path, budget=0)):
        query = random_rows(1, 2)[0]
        for name in "ab":
            site.passages.put(name, random_rows(3, 1), [name])
            await found(site.index, collection(name), query)
        assert (site.index.reloads, site.index.problem) == (0, None)
        for name in "abab":
            await found(site.index, collection(name), query)
        assert site.index.reloads == 4
        assert caplog.messages == [site.index.problem]
        assert "collection a (1 MiB) and of collection b (1 MiB)" in caplog.text


async def test_a_load_is_shared_when_another_one_makes_room(tmp_path: Path) -> None:
    passages = Slow()
    site = Site(tmp_path, budget=0)
    site.passages = passages
    site.index = site.made()
    async for _ in opened(site):
        for name in "ab":
            passages.put(name, random_rows(3, 1), [name])
        query = random_rows(1, 2)[0]
        first = asyncio.ensure_future(found(site.index, collection("a"), query))
        await passages.begun.wait()
        passages.gates["b"] = asyncio.Event()
        passages.gates["b"].set()
        await found(site.index, collection("b"), query)
        second = asyncio.ensure_future(found(site.index, collection("a"), query))
        await asyncio.sleep(0)
        passages.go.set()
        assert await first == await second
        assert passages.loads == ["a", "b"]


async def test_nothing_is_packed_on_the_event_loop_while_vectors_are_loaded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()

    def told(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            threads.add(threading.get_ident())
            return function(*given)

        return call

    for name in ("pack_ids", "unpack_ids", "unpack_batches"):
        monkeypatch.setattr(loaded_module, name, told(getattr(loaded_module, name)))
    site.passages.put("f", random_rows(20, 1), ["c"])
    query = random_rows(1, 2)[0]
    await found(site.index, collection("c"), query)
    await site.rest()
    await site.reopen()
    # From its checkpoint.
    assert len(await found(site.index, collection("c"), query, 50)) == 20
    assert site.calls("load") == 1
    assert threads
    assert threading.get_ident() not in threads


async def test_what_makes_room_is_kept_on_disk(tmp_path: Path) -> None:
    async for site in opened(Site(tmp_path, budget=0)):
        for name in "ab":
            site.passages.put(name, random_rows(50, 1), [name])
        query = random_rows(1, 2)[0]
        await found(site.index, collection("a"), query)
        await site.rest()
        site.passages.put("a2", random_rows(1, 3), ["a"])
        await site.index.refresh(collection("a"), "a2")
        await found(site.index, collection("b"), query)
        await site.rest()
        site.passages.calls.clear()
        assert len(await found(site.index, collection("a"), query, 100)) == 51
        assert site.calls("load") == 0


# Changes at the same time


class Slow(MemoryPassages):
    """Vectors that are read when the test says so, as they were before."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.gates: dict[str, asyncio.Event] = {}
        self.loads: list[str] = []

    async def load(self, space: str, scope: SearchScope) -> AsyncIterator[VectorBatch]:
        batches = [one for name in self.files(space, scope) for one in self.batches(space, name)]
        self.loads.append(scope.id)
        self.begun.set()
        await self.gates.get(scope.id, self.go).wait()
        for batch in batches:
            yield batch


@pytest.fixture
async def slow(tmp_path: Path) -> AsyncIterator[tuple[Site, Slow]]:
    site, passages = Site(tmp_path), Slow()
    site.passages = passages
    site.index = site.made()
    async for one in opened(site):
        yield one, passages


async def test_a_refresh_during_a_load_is_not_lost(slow: tuple[Site, Slow]) -> None:
    site, passages = slow
    rows = random_rows(9, 1)
    passages.put("f", rows[:3], ["c"])
    passages.put("g", rows[3:6], ["c"])
    search = asyncio.ensure_future(found(site.index, collection("c"), rows[0], 50))
    await passages.begun.wait()
    passages.put("f", rows[6:])
    passages.drop_file("g")
    refreshes = asyncio.gather(*(site.index.refresh(collection("c"), name) for name in "fg"))
    await asyncio.sleep(0)
    passages.go.set()
    await search
    await refreshes
    assert sorted(await found_ids(site.index, collection("c"), rows[0], 50)) == passages.ids["f"]


async def test_a_load_goes_on_when_who_asked_has_left(slow: tuple[Site, Slow]) -> None:
    site, passages = slow
    rows = random_rows(3, 1)
    passages.put("f", rows, ["c"])
    first, second = (asyncio.ensure_future(found(site.index, collection("c"), rows[0], 50)) for _ in range(2))
    await passages.begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    passages.go.set()
    assert len(await second) == 3


async def test_a_refresh_ends_well_when_its_caller_is_cancelled(site: Site) -> None:
    rows = random_rows(9, 1)
    site.passages.put("f", rows[:3], ["c"])
    await found(site.index, collection("c"), rows[0])
    site.passages.put("g", rows[3:], ["c"])
    caller = asyncio.ensure_future(site.index.refresh(collection("c"), "g"))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    while len(await found(site.index, collection("c"), rows[0], 50)) < 9:
        await asyncio.sleep(0.001)


async def test_after_a_failed_refresh_everything_is_read_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read now")

    rows = random_rows(9, 1)
    site.passages.put("f", rows[:3], ["c"])
    await found(site.index, collection("c"), rows[0])
    site.passages.put("g", rows[3:], ["c"])
    with monkeypatch.context() as patch:
        patch.setattr(site.passages, "load_file", fail)
        with pytest.raises(GatewayError, match="cannot read now"):
            await site.index.refresh(collection("c"), "g")
    assert len(await found(site.index, collection("c"), rows[0], 50)) == 9


async def test_a_failed_load_fails_the_search_and_the_next_one_is_made(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read now")

    rows = random_rows(3, 1)
    site.passages.put("f", rows, ["c"])
    with monkeypatch.context() as patch:
        patch.setattr(site.passages, "count_vectors", fail)
        with pytest.raises(GatewayError, match="cannot read now"):
            await found(site.index, collection("c"), rows[0])
    assert len(await found(site.index, collection("c"), rows[0])) == 3


async def test_a_wrong_vector_is_refused(site: Site) -> None:
    for call in (
        site.index.search(SPACE, collection("c"), bytes(8), 3),
        site.index.similarities(SPACE, collection("c"), bytes(8), [3]),
    ):
        with pytest.raises(GatewayError, match="cannot search"):
            await call


# Checkpoints


async def test_a_clean_end_and_a_start_build_nothing(site: Site) -> None:
    rows = random_rows(40, 1)
    site.passages.put("f", rows, ["c"])
    await found(site.index, collection("c"), rows[0])
    await site.rest()
    site.passages.put("g", rows[:1], ["c"])
    await site.index.refresh(collection("c"), "g")
    await site.reopen()
    site.passages.calls.clear()
    assert len(await found(site.index, collection("c"), rows[0], 50)) == 41
    assert site.calls("load") == 0


async def test_a_forgotten_scope_has_no_files(site: Site) -> None:
    rows = random_rows(40, 1)
    for name in "cd":
        site.passages.put(name, rows, [name])
        await found(site.index, collection(name), rows[0])
    await site.rest()
    assert len(site.files) == 4
    site.passages.drop_file("c")
    await site.index.forget(collection("c"))
    assert len(site.files) == 2
    assert await found(site.index, collection("c"), rows[0]) == []
    assert len(await found(site.index, collection("d"), rows[0])) == 10


async def test_forgetting_while_a_graph_is_built_leaves_no_file(site: Site) -> None:
    rows = random_rows(2000, 1)
    for number in range(10):
        site.passages.put("c", rows, ["c"])
        await found(site.index, collection("c"), rows[0])
        if number % 2:
            await asyncio.sleep(0.002 * number)
        await site.index.forget(collection("c"))
        assert site.files == []
        assert not site.index._tending


async def test_a_start_sweeps_what_nobody_needs(site: Site) -> None:
    rows = random_rows(40, 1)
    for name in "cde":
        site.passages.put(name, rows, [name])
        await found(site.index, collection(name), rows[0])
    await site.rest()
    site.passages.drop_file("c")
    site.passages.put("d", rows[:1])
    (site.folder / "collection-x.part").write_bytes(b"half")
    await site.reopen()
    while len(site.files) > 2:
        await asyncio.sleep(0.001)
    assert len(await found(site.index, collection("e"), rows[0], 50)) == 40


async def test_after_a_rest_a_checkpoint_is_written(tmp_path: Path) -> None:
    rows = random_rows(40, 1)
    async for site in opened(Site(tmp_path, rules=IndexRules(threshold=4, tail=2, changes=1000, idle=0.01))):
        site.passages.put("c", rows, ["c"])
        await found(site.index, collection("c"), rows[0])
        await site.rest()
        before = site.files
        site.passages.put("d", rows[:1], ["c"])
        await site.index.refresh(collection("c"), "d")
        while site.files == before:
            await asyncio.sleep(0.001)


async def test_the_lowest_recall_of_the_graphs_is_told(site: Site) -> None:
    assert site.index.recall is None
    for name in "cd":
        site.passages.put(name, random_rows(40, 1), [name])
        await found(site.index, collection(name), random_rows(1, 2)[0])
    await site.rest()
    assert site.index.recall == (1.0, MIN_EF_SEARCH)
    for loaded, recall in zip(site.index._cache, (0.97, 0.96), strict=True):
        loaded.recall = GraphRecall(recall, 600)
    assert site.index.recall == (0.96, 600)


async def test_what_a_graph_finds_is_measured_again_without_a_change(tmp_path: Path) -> None:
    rules = IndexRules(threshold=4, tail=2, idle=0.01, check=0.05)
    async for site in opened(Site(tmp_path, rules=rules)):
        site.passages.put("c", random_rows(40, 1), ["c"])
        await found(site.index, collection("c"), random_rows(1, 2)[0])
        [loaded] = site.index._cache
        for _ in range(2):
            loaded.recall = None
            while loaded.recall is None:
                await asyncio.sleep(0.001)


async def test_a_check_tells_of_damaged_checkpoints(site: Site) -> None:
    rows = random_rows(40, 1)
    site.passages.put("c", rows, ["c"])
    await found(site.index, collection("c"), rows[0])
    await site.rest()
    (body,) = site.folder.glob("*.hnsw")
    body.write_bytes(body.read_bytes()[:-1])
    (sentence,) = await site.index.check(SPACE, collection("c"))
    assert "damaged" in sentence
    assert await site.index.check(SPACE, collection("c")) == []


# Against an oracle


class Machine(RuleBasedStateMachine):
    """Files come, change and go in two collections; every answer is compared with all vectors."""

    @initialize(
        threshold=some.sampled_from([3, 10, 10_000]),
        tail=some.integers(1, 6),
        budget=some.sampled_from([0, 20_000, MUCH]),
    )
    def begin(self, threshold: int, tail: int, budget: int) -> None:
        self.runner = asyncio.Runner()
        rules = IndexRules(threshold=threshold, tail=tail, changes=8)
        self.site = Site(Path(self.folder), budget, rules)
        self.run(self.site.index.open())
        self.seed = 0

    folder = ""

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def tell(self, name: str) -> None:
        for scope in (collection("a"), collection("b"), single(name)):
            self.run(self.site.index.refresh(scope, name))

    def rows(self, count: int) -> Any:
        self.seed += 1
        # Every third file is like the others: equal vectors are common.
        return random_rows(count, self.seed if self.seed % 3 else 0)

    @rule(
        name=some.sampled_from("uvwxyz"), count=some.integers(0, 9), where=some.sampled_from(["a", "b", "ab"])
    )
    def put(self, name: str, count: int, where: str) -> None:
        self.site.passages.put(name, self.rows(count), list(where))
        self.tell(name)

    @rule(name=some.sampled_from("uvwxyz"))
    def remove(self, name: str) -> None:
        self.site.passages.drop_file(name)
        self.tell(name)

    @rule(name=some.sampled_from("uvwxyz"), where=some.sampled_from("ab"))
    def toggle(self, name: str, where: str) -> None:
        if name in self.site.passages.ids:
            members = self.site.passages.members.setdefault(where, [])
            members.remove(name) if name in members else members.append(name)
            self.run(self.site.index.refresh(collection(where), name))

    @rule(where=some.sampled_from("ab"), seed=some.integers(0, 99), limit=some.integers(1, 60))
    def search(self, where: str, seed: int, limit: int) -> None:
        query = random_rows(1, seed)[0]
        truth = self.site.passages.truth(SPACE, collection(where))
        hits = self.run(found(self.site.index, collection(where), query, limit))
        assert_best(hits, truth, query, limit)
        asked = [*truth, 10**9]
        answer = self.run(self.site.index.similarities(SPACE, collection(where), packed(query), asked))
        assert answer == pytest.approx({one: float(row @ query) for one, row in truth.items()}, abs=1e-5)

    @rule()
    def rest(self) -> None:
        self.run(self.site.rest())

    @rule(clean=some.booleans())
    def reopen(self, clean: bool) -> None:
        self.run(self.site.reopen(clean=clean))

    @rule(where=some.sampled_from("ab"))
    def forget(self, where: str) -> None:
        self.run(self.site.index.forget(collection(where)))

    @rule(where=some.sampled_from("ab"))
    def check(self, where: str) -> None:
        sentences = self.run(self.site.index.check(SPACE, collection(where)))
        assert [one for one in sentences if "a checkpoint was damaged" not in one] == []

    @rule(place=some.integers(0, 1 << 30))
    def damage(self, place: int) -> None:
        self.run(self.site.reopen(clean=False))
        paths = sorted(self.site.folder.iterdir())
        # What the index sweeps in the background may be gone by now.
        with contextlib.suppress(FileNotFoundError, IndexError):
            path = paths[place % max(len(paths), 1)]
            content = bytearray(path.read_bytes())
            content[place % len(content)] ^= 1 + place % 255
            path.write_bytes(content)

    @invariant()
    def nothing_fails_in_the_background(self) -> None:
        assert self.failures() == []

    failures: Callable[[], list[str]] = staticmethod(list)

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.run(self.site.close())
            self.runner.close()


def test_every_answer_is_that_of_all_vectors(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    def failures() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]

    class Fresh(Machine):
        def __init__(self) -> None:
            super().__init__()
            self.folder = str(tmp_path_factory.mktemp("machine"))

    Fresh.failures = staticmethod(failures)
    Fresh.TestCase.settings = settings(
        max_examples=80,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    Fresh.TestCase("runTest").debug()


# Under load


async def stress(site: Site, seconds: float, dimension: int) -> int:
    """Search while files come, change and go; return how many searches were right."""
    chance = random.Random(3)
    pool = clustered_rows(4000, 5, dimension, 40)
    searches = 0
    until = time.monotonic() + seconds
    scope = collection("c")
    # Whatever was, or may be, in at the time of a search.
    known: dict[int, Any] = {}

    def put(name: str) -> None:
        start = chance.randrange(3900)
        rows = pool[start : start + chance.randrange(1, 100)]
        known.update(zip(site.passages.put(name, rows, ["c"], SPACE_OF[dimension]), rows, strict=True))

    async def change(worker: int) -> None:
        while time.monotonic() < until:
            name = f"f{worker}-{chance.randrange(30)}"
            if chance.random() < 0.2:
                site.passages.drop_file(name)
            else:
                put(name)
            await site.index.refresh(scope, name)
            await asyncio.sleep(0)

    async def search() -> None:
        nonlocal searches
        while time.monotonic() < until:
            query = pool[chance.randrange(4000)]
            hits = await site.index.search(SPACE_OF[dimension], scope, packed(query), chance.randrange(1, 60))
            for hit in hits:
                assert hit.score == pytest.approx(float(known[hit.passage_id] @ query), abs=1e-5)
            searches += 1

    for number in range(10):
        put(f"f0-{number}")
    await asyncio.gather(*(change(worker) for worker in range(3)), *(search() for _ in range(4)))
    await site.rest()
    truth = site.passages.truth(SPACE_OF[dimension], scope)
    good = 0
    for query in pool[::100]:
        hits = await site.index.search(SPACE_OF[dimension], scope, packed(query), 10)
        assert {hit.passage_id for hit in hits} <= truth.keys()
        least = nearest(truth, query, 10)[-1]
        good += sum(hit.score >= least - 1e-5 for hit in hits)
    assert good >= 0.97 * 10 * len(pool[::100])
    assert await site.index.check(SPACE_OF[dimension], scope) == []
    return searches


async def test_without_the_extra_graph_every_vector_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    async for site in opened(Site(tmp_path)):
        rows = random_rows(50, 1)
        site.passages.put("f", rows, ["c"])
        for _ in range(2):
            hits = await found(site.index, collection("c"), rows[7], 10)
            await site.rest()
            assert_best(hits, site.passages.truth(SPACE, collection("c")), rows[7], 10)
        await site.reopen()
        assert site.files == []


@pytest.mark.process
def test_the_index_is_loaded_without_the_extra_graph() -> None:
    blocked = "import sys; sys.modules['hnswlib'] = None; import gatewayd.vectors.index.local_index"
    subprocess.run([sys.executable, "-c", blocked], check=True, timeout=60)


SPACE_OF = {dimension: module.EmbeddingSpace(f"test:{dimension}", dimension) for dimension in (32, 384)}


async def test_searches_while_everything_changes(tmp_path: Path) -> None:
    async for site in opened(Site(tmp_path, rules=IndexRules(threshold=300, tail=50, changes=2000))):
        assert await stress(site, 1.5, 32) > 20


@pytest.mark.slow
async def test_searches_while_everything_changes_for_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async for site in opened(Site(tmp_path, rules=IndexRules(threshold=1000, tail=200, changes=5000))):
        assert await stress(site, 5, 384) > 25
        await site.reopen()
        truth = site.passages.truth(SPACE_OF[384], collection("c"))
        query = np.array(next(iter(truth.values())))
        assert (await site.index.search(SPACE_OF[384], collection("c"), packed(query), 1))[0].score > 0.999
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
