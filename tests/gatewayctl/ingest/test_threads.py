"""A few things at a time."""

import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

import pytest

from gatewayctl.ingest.threads import AHEAD, in_threads


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(in_threads(lambda item: item * item, range(100), 3)) == [item * item for item in range(100)]
    assert list(in_threads(str, [], 2)) == []


def test_so_many_at_a_time() -> None:
    together = threading.Barrier(3, timeout=10)
    assert len(list(in_threads(lambda item: together.wait(), range(6), 3))) == 6


def test_what_comes_is_not_drawn_all_at_once() -> None:
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for item in range(1000):
            drawn.append(item)
            yield item

    with closing(in_threads(abs, items(), 2)) as results:
        assert list(islice(results, 3)) == [0, 1, 2]
    assert len(drawn) <= 2 * AHEAD + 4


def test_the_first_failure_ends_it() -> None:
    worked: list[int] = []

    def work(item: int) -> int:
        if item == 2:
            raise ValueError(item)
        worked.append(item)
        return item

    results: list[int] = []
    with pytest.raises(ValueError, match="2"):
        results.extend(in_threads(work, range(1000), 1))
    assert results == worked[:2] == [0, 1]
    assert len(worked) <= AHEAD + 2
