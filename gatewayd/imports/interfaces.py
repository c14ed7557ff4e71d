"""The database that records are read from."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol


class ForeignDatabase(Protocol):
    """One state of a database of another program, which may go on writing to it. Nothing is written here."""

    @property
    def columns(self) -> Mapping[str, frozenset[str]]:
        """The names of the columns by table."""
        ...

    def rows(
        self, table: str, *, where: Mapping[str, str] | None = None, order_by: Sequence[str] = ()
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the rows of a table by column, few of which are in memory; none for an absent table.

        `where` has the texts of some columns, `order_by` the columns of the order; absent ones are ignored.
        """
        ...

    async def count(self, table: str) -> int:
        """Return the number of rows, 0 for an absent table."""
        ...
