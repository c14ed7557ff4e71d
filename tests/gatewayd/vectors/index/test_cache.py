"""Which scopes stay in memory."""

from typing import Any

import pytest

from gatewayd.ingest.records import EmbeddingSpace
from gatewayd.vectors.index.cache import ScopeCache
from gatewayd.vectors.index.checkpoints import CheckpointKey
from gatewayd.vectors.index.eviction_watch import ReloadWatch
from gatewayd.vectors.index.scope_index import ScopeIndex
from tests.fakes.documents.index_conformance import SPACE, collection, single


class Sized(ScopeIndex):
    """A loaded scope of a given size."""

    size: Any = 0
    has_graph: Any = False
    is_ready = True

    def __init__(
        self, name: str, size: int, *, has_graph: bool = False, space: EmbeddingSpace = SPACE
    ) -> None:
        self.key = CheckpointKey(space, collection(name))
        self.size = size
        self.has_graph = has_graph


@pytest.fixture
def reloads() -> ReloadWatch:
    return ReloadWatch(100)


@pytest.fixture
def cache(reloads: ReloadWatch) -> ScopeCache:
    return ScopeCache(100, 2, reloads)


def hold(cache: ScopeCache, *held: Sized) -> list[str]:
    gone: list[ScopeIndex] = []
    for one in held:
        cache.put(one)
        gone += cache.measure(one)
    return [one.key.scope.id for one in gone]


def test_the_longest_unused_goes_first(cache: ScopeCache) -> None:
    a, b, c, d = (Sized(name, 30) for name in "abcd")
    assert hold(cache, a, b, c) == []
    assert cache.find(a.key) is a
    assert hold(cache, d) == ["b"]
    assert cache.find(b.key) is None
    assert b not in cache
    assert [one.key.scope.id for one in cache] == ["c", "a", "d"]
    assert cache.size == 90


def test_one_over_the_budget_stays_alone(cache: ScopeCache) -> None:
    assert hold(cache, Sized("a", 30), Sized("b", 30), Sized("big", 500)) == ["a", "b"]
    assert cache.size == 500
    assert hold(cache, Sized("c", 10)) == ["big"]


def test_what_grows_makes_others_go(cache: ScopeCache) -> None:
    a, b = Sized("a", 10), Sized("b", 10)
    hold(cache, a, b)
    b.size = 95
    assert cache.measure(b) == [a]
    assert cache.size == 95


def test_what_is_being_loaded_stays(cache: ScopeCache) -> None:
    a, b, c = (Sized(name, 60) for name in "abc")
    a.is_ready = False
    assert hold(cache, a) == []
    assert hold(cache, b, c) == ["b"]
    assert cache.find(a.key) is a
    a.is_ready = True
    assert cache.measure(a) == [c]


def test_what_was_let_go_for_want_of_memory_is_told_of_when_it_comes_again(
    cache: ScopeCache, reloads: ReloadWatch, caplog: pytest.LogCaptureFixture
) -> None:
    graphs = [Sized(name, 1, has_graph=True) for name in "xyz"]
    hold(cache, *graphs, graphs[0])
    assert reloads.count == 0
    a, b = Sized("a", 60), Sized("b", 70)
    hold(cache, a, b, a)
    assert reloads.count == 1
    [message] = caplog.messages
    assert "collection a" in message
    assert "collection b" in message


def test_graphs_are_few(cache: ScopeCache) -> None:
    graphs = [Sized(name, 1, has_graph=True) for name in "abc"]
    assert hold(cache, *graphs[:2], Sized("m", 1)) == []
    assert hold(cache, graphs[2]) == ["a"]
    cache.remove(graphs[2])
    assert hold(cache, Sized("d", 1, has_graph=True)) == []


def test_what_was_taken_counts_no_more(cache: ScopeCache) -> None:
    a, other = Sized("a", 60), Sized("a", 60)
    hold(cache, a)
    cache.remove(a)
    cache.remove(a)
    assert cache.size == 0
    assert cache.measure(a) == []
    assert cache.size == 0
    hold(cache, other)
    cache.remove(a)
    assert cache.find(other.key) is other


def test_a_scope_has_several_spaces(cache: ScopeCache) -> None:
    a, b = Sized("a", 1), Sized("a", 1, space=EmbeddingSpace("x", 3))
    hold(cache, a, b, Sized("c", 1))
    assert set(cache.of(collection("a"))) == {a, b}
    assert cache.of(single("a")) == []
