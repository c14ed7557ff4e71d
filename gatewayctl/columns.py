"""Columns of a table on a terminal: which there is room for, how wide each is, and how its cells are cut."""

import re
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size

GAP: Final = 2
"""Spaces between two columns."""

MAX_SHORT: Final = 12
"""Characters of a value that is never cut."""

MIN_FIRST: Final = 20
"""Characters that the first column is not cut below: it says what a row is about."""

MIN_TEXT: Final = 12
"""Characters that no other text is cut below: with less, different ones read the same."""

MAX_NAME_SPACES: Final = 5
"""Spaces up to which a text is cut in its middle: the end of a name, a path or an address tells as much."""

NOTHING: Final = "-"
"""The cell of a value that there is not."""

ELLIPSIS: Final = "…"
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


class Column:
    """A column of a table: `width` is that of the longest cell or the heading, `least` what it is cut to."""

    def __init__(self, heading: str, cells: Sequence[str], is_whole: bool) -> None:
        self.heading = heading
        self.cells = cells
        self.is_whole = is_whole
        needed = max(map(cell_len, cells), default=0)
        self.width = max(needed, cell_len(heading))
        self.is_short = needed <= MAX_SHORT
        self.is_empty = set(cells) == {NOTHING}
        times = all(cell == NOTHING or TIME.fullmatch(cell) for cell in cells)
        self._is_fixed = is_whole or self.is_short or times

    def least(self, *, is_first: bool) -> int:
        """Return how narrow the column may be."""
        if self._is_fixed:
            return self.width
        return min(self.width, max(MIN_FIRST if is_first else MIN_TEXT, cell_len(self.heading)))

    def shown(self) -> list[str]:
        """Return the cells as wide as the column."""
        return [cut(cell, self.width) for cell in self.cells]


def table_columns(
    headings: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str]
) -> list[Column]:
    """Return the columns of rows; ids stay whole, and names where nothing else tells a row from another."""
    has_ids = any(map(_is_id, headings))
    are_paths = any(name.startswith("/") for name in names)
    columns = []
    for place, heading in enumerate(headings):
        cells = [row[place] for row in rows]
        is_name = cells == list(names) and not has_ids and not are_paths
        columns.append(Column(heading, cells, _is_id(heading) or is_name))
    return columns


def fitted(columns: Sequence[Column], room: int) -> list[Column] | None:
    """Return the columns that a line of `room` characters has room for, with their widths; None for none.

    What says nothing goes first, then the last texts and times, then the last short values. The first column
    and those that stay whole do not go.
    """
    if _line_width([column.width for column in columns]) <= room:
        return list(columns)
    first = columns[0]
    kept = [column for column in columns if column is first or column.is_whole or not column.is_empty]
    while _least_width(kept) > room:
        optional = [column for column in kept if column is not first and not column.is_whole]
        if not optional:
            return None
        kept.remove(([column for column in optional if not column.is_short] or optional)[-1])
    while _line_width([column.width for column in kept]) > room:
        wide = [column for column in kept if column.width > column.least(is_first=column is first)]
        max(wide, key=lambda column: column.width).width -= 1
    return kept


def cut(text: str, width: int) -> str:
    """Return a text that is not wider: a name loses its middle, a sentence or an e-mail address its end."""
    if cell_len(text) <= width:
        return text
    if text.count(" ") > MAX_NAME_SPACES or "@" in text:
        return set_cell_size(text, width - 1).rstrip() + ELLIPSIS
    tail = (width - 1) // 2
    return set_cell_size(text, width - 1 - tail) + ELLIPSIS + set_cell_size(text[::-1], tail)[::-1]


def _is_id(heading: str) -> bool:
    return heading.endswith("ID")


def _least_width(columns: Sequence[Column]) -> int:
    return _line_width([column.least(is_first=column is columns[0]) for column in columns])


def _line_width(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
