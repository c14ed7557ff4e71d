"""What a graph finds, measured and corrected."""

import logging
from collections.abc import AsyncIterator

import numpy as np
import pytest

from gatewayd.vectors.index import recall as module
from gatewayd.vectors.index.hnsw_index import MIN_EF_SEARCH, HnswIndex, graph_capacity
from gatewayd.vectors.index.recall import MIN_RECALL, NEAREST_COUNT, GraphRecall, NeighbourSample, RecallCheck
from gatewayd.vectors.index.threads import IndexThreads
from tests.fakes.documents.index_conformance import Rows, random_rows


def filled(rows: Rows) -> HnswIndex:
    graph = HnswIndex(rows.shape[1], graph_capacity(len(rows)))
    graph.add(range(len(rows)), rows)
    return graph


@pytest.fixture
async def threads() -> AsyncIterator[IndexThreads]:
    opened = IndexThreads()
    yield opened
    opened.close()


def narrowed(graph: HnswIndex, ef_search: int = 10) -> None:
    """Have a graph follow too few candidates, until it is widened."""
    graph.ef_search = ef_search
    graph._index.set_ef(ef_search)


async def test_a_search_that_finds_enough_stays_as_it_is(
    threads: IndexThreads, caplog: pytest.LogCaptureFixture
) -> None:
    graph = filled(random_rows(3000, 1, 16))
    found = await RecallCheck(graph, threads, "c").run(lambda: True)
    assert found is not None
    assert found.recall >= 0.99
    assert found.ef_search == graph.ef_search == MIN_EF_SEARCH
    assert caplog.records == []


async def test_searches_that_find_too_little_are_widened(
    threads: IndexThreads, caplog: pytest.LogCaptureFixture
) -> None:
    # Without any groups nothing leads to the nearest ones but many candidates.
    graph = filled(random_rows(6000, 2, 384))
    narrowed(graph)
    with caplog.at_level(logging.INFO):
        found = await RecallCheck(graph, threads, "c").run(lambda: True)
    assert found is not None
    assert found.recall >= MIN_RECALL
    assert found.ef_search == graph.ef_search
    assert graph.ef_search > 10
    [record] = caplog.records
    assert f"with ef_search {graph.ef_search}" in record.getMessage()
    assert record.levelno == logging.INFO
    assert record.__dict__["scope"] == "c"
    assert record.__dict__["recall_before"] < MIN_RECALL
    assert record.__dict__["ef_search_before"] == 10


async def test_a_recall_that_stays_too_low_is_warned_of(
    threads: IndexThreads, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_EF_SEARCH", 10)
    graph = filled(random_rows(6000, 2, 384))
    narrowed(graph)
    found = await RecallCheck(graph, threads, "c").run(lambda: True)
    assert found is not None
    assert found.recall < MIN_RECALL
    [record] = caplog.records
    assert record.levelno == logging.WARNING


def test_the_comparison_is_with_every_vector_but_the_query() -> None:
    rows = random_rows(2500, 3, 16)
    graph = filled(rows)
    graph.remove(range(500))
    comparison = NeighbourSample(graph)
    assert len(comparison) == module.SAMPLE_SIZE
    for start in range(0, graph.count, module.SLICE_SIZE):
        comparison.compare(start)
    for label, query, best in zip(comparison._sample, comparison._rows, comparison._best, strict=True):
        assert label >= 500
        scores = rows[500:] @ query
        scores[label - 500] = -np.inf
        assert np.sort(best) == pytest.approx(np.sort(scores)[-NEAREST_COUNT:], abs=1e-5)
    hits, wanted = comparison.found(0, len(comparison))
    assert wanted == module.SAMPLE_SIZE * NEAREST_COUNT
    assert hits >= 0.99 * wanted


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_few_vectors_have_few_neighbours(threads: IndexThreads, count: int) -> None:
    graph = filled(random_rows(count, 4, 16)) if count else HnswIndex(16, 10)
    assert await RecallCheck(graph, threads, "c").run(lambda: True) == GraphRecall(1.0, MIN_EF_SEARCH)


async def test_it_ends_when_nobody_wants_it(threads: IndexThreads) -> None:
    graph = filled(random_rows(300, 5, 16))
    assert await RecallCheck(graph, threads, "c").run(lambda: False) is None
