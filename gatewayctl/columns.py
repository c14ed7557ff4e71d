"""Columns of a table on a terminal: selection, widths, and truncation of cells."""

import re
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size

GAP: Final = 2
"""Spaces between two columns."""

MAX_SHORT: Final = 12
"""Maximum length of a value that is never truncated."""

MIN_FIRST: Final = 20
"""Minimum width of the first column, which identifies the row."""

MIN_TEXT: Final = 12
"""Minimum width of other texts; with less, different texts look alike."""

MAX_NAME_SPACES: Final = 5
"""Maximum number of spaces in a text that is truncated in its middle: the end of a name, path or address is
as important as the beginning."""

NOTHING: Final = "-"
"""The cell of an absent value."""

ELLIPSIS: Final = "…"
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


class Column:
    """A column of a table: `width` fits the longest cell and the heading, `least` is the minimum."""

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
        """Return the minimum width of the column."""
        if self._is_fixed:
            return self.width
        return min(self.width, max(MIN_FIRST if is_first else MIN_TEXT, cell_len(self.heading)))

    def shown(self) -> list[str]:
        """Return the cells with the width of the column."""
        return [cut(cell, self.width) for cell in self.cells]


def table_columns(
    headings: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str]
) -> list[Column]:
    """Return the columns of rows; ids stay whole, and names too if only they identify a row."""
    has_ids = any(map(_is_id, headings))
    are_paths = any(name.startswith("/") for name in names)
    columns = []
    for place, heading in enumerate(headings):
        cells = [row[place] for row in rows]
        is_name = cells == list(names) and not has_ids and not are_paths
        columns.append(Column(heading, cells, _is_id(heading) or is_name))
    return columns


def fitted(columns: Sequence[Column], room: int) -> list[Column] | None:
    """Return the columns that fit into `room` characters, with their widths; None if none fit.

    Empty columns are dropped first, then the last texts and times, then the last short values. The first
    column and those that stay whole are not dropped.
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
    """Return a truncated text: a name loses its middle, a sentence or an e-mail address its end."""
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
