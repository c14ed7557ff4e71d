"""Tests for gatewayctl.paging."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from gatewayctl.paging import everything


@dataclass(frozen=True)
class Page:
    rows: Sequence[int]
    total: int


@pytest.mark.parametrize(("count", "asked"), [(0, [0]), (1, [0]), (3, [0]), (4, [0, 3]), (7, [0, 3, 6])])
def test_pages_are_read_until_all_rows_are_there(count: int, asked: list[int]) -> None:
    offsets: list[int] = []

    def read(offset: int) -> Page:
        offsets.append(offset)
        return Page(range(offset, min(offset + 3, count)), count)

    assert everything(read, lambda page: page.rows) == list(range(count))
    assert offsets == asked


def test_rows_that_went_meanwhile_are_not_waited_for() -> None:
    pages = [Page([1, 2], 5), Page([], 2)]
    assert everything(lambda _: pages.pop(0), lambda page: page.rows) == [1, 2]
