"""Reads lists that the daemon gives a page at a time."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar


class Page(Protocol):
    """A part of a list."""

    @property
    def total(self) -> int:
        """How many rows there are, those on other pages too."""
        ...


P = TypeVar("P", bound=Page)
Row = TypeVar("Row")


def everything(read: Callable[[int], P], rows_of: Callable[[P], Sequence[Row]]) -> list[Row]:
    """Return the rows of all pages; `read` takes how many rows come before a page."""
    rows: list[Row] = []
    while True:
        page = read(len(rows))
        found = rows_of(page)
        rows += found
        if not found or len(rows) >= page.total:
            return rows
