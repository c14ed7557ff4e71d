"""Detection of the header row of a table, by comparison with the rows below it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Final

MAX_ROWS_ABOVE: Final = 10
"""Maximum number of rows above the header row: titles, notes."""

MAX_ROWS_COMPARED: Final = 20
"""Maximum number of rows below with which a row is compared."""

ROWS_NEEDED: Final = MAX_ROWS_ABOVE + 1 + MAX_ROWS_COMPARED
"""Number of rows that `find_header_row` reads."""

MAX_NAME_CHARACTERS: Final = 200
MAX_CODE_WORDS: Final = 2

_YEAR: Final = re.compile(r"(?:1[89]|2[01])\d\d")
_PERIOD: Final = re.compile(
    r"(?:\d{1,4}[-/]\d{1,4}(?:[-/]\d{1,4})?|\d{1,2}\.\d{1,2}\.\d{2,4}|(?:0[1-9]|1[0-2])\.(?:19|20)\d\d)"
    r"(?:[T ]\d.*)?|\d{1,2}:\d\d(?::\d\d)?"
)
_NUMBER: Final = re.compile(
    r"[-+(\u2212]?[^\w\s]?\s?\d[\d.,'\u2019\u00a0\u202f ]*(?:[eE][-+]?\d+)?\s?[^\w\s]?\)?"
)
_COMMENT: Final = re.compile(r"#+[^#,;|\t\r\n]")


class CellKind(StrEnum):
    """Kind of the content of a cell: words, signs only, or a plain value."""

    WORDS = auto()
    SIGNS = auto()
    NUMBER = auto()
    YEAR = auto()
    PERIOD = auto()
    ADDRESS = auto()
    CODE = auto()


_LABELS: Final = frozenset({CellKind.WORDS, CellKind.YEAR, CellKind.PERIOD, CellKind.CODE})
"""Kinds of cells that can name a column."""

_NUMBERS: Final = frozenset({CellKind.NUMBER, CellKind.YEAR})


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A cell that may name its column, and the values below it."""

    name: str
    kind: CellKind
    values: Sequence[str]
    value_kind: CellKind | None
    """The kind of more than half of the values, else None."""

    @property
    def holds_name(self) -> bool:
        """Whether the candidate name is a value like those below, or may be one as there are none."""
        if len(self.name) > MAX_NAME_CHARACTERS or self.name.casefold() in map(str.casefold, self.values):
            return True
        if self.kind in {CellKind.WORDS, CellKind.SIGNS}:
            return False
        if self.kind is CellKind.NUMBER:
            return not self.values or any(classify_cell(value) in _NUMBERS for value in self.values)
        return self.kind is self.value_kind

    @property
    def differs(self) -> bool:
        """Whether the values are of another kind than the name. A year above numbers may be a number."""
        if self.value_kind in {None, CellKind.WORDS, CellKind.SIGNS, self.kind}:
            return False
        return {self.kind, self.value_kind} != _NUMBERS

    @property
    def has_words(self) -> bool:
        """Whether the name is words, and the values are words or of no common kind."""
        return self.kind is CellKind.WORDS and self.value_kind in {None, CellKind.WORDS, CellKind.SIGNS}


def find_header_row(rows: Sequence[Sequence[str]]) -> int | None:
    """Return the index of the header row of a table, None without one.

    Titles, notes and lines that start with `#` may precede it.
    """
    for number, cells in enumerate(rows[: MAX_ROWS_ABOVE + 1]):
        if sum(1 for cell in cells if cell.strip()) > 1 and not is_comment(cells[0]):
            below = rows[number + 1 : number + 1 + MAX_ROWS_COMPARED]
            return number if are_column_names(cells, below) else None
    return None


def are_column_names(cells: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Tell whether the cells of a row name the columns of the rows below it.

    They do if more cells are words, years or dates than numbers, no cell has the kind of its column or recurs
    in it, and at least one column has values of another kind. In a table of words only, such as
    `Country,Capital` above `France,Paris`, the first row counts as the header.
    """
    # Long tables repeat the header on each page.
    rows = [row for row in below if [*row] != [*cells]]
    columns = [_column(rows, place, cell) for place, cell in enumerate(cells) if cell.strip()]
    labels = sum(column.kind in _LABELS for column in columns)
    numbers = sum(column.kind in {CellKind.NUMBER, CellKind.ADDRESS} for column in columns)
    if len(columns) < 2 or labels <= numbers or any(column.holds_name for column in columns):
        return False
    if rows and all(column.has_words for column in columns):
        return True
    return any(column.differs for column in columns) or _are_years(columns)


def is_comment(line: str) -> bool:
    """Tell whether a line or cell is a comment; `#` alone is the name of a column of numbers."""
    return _COMMENT.match(line) is not None


def classify_cell(cell: str) -> CellKind:
    """Return the kind of a cell that is not blank."""
    if len(cell) > MAX_NAME_CHARACTERS:
        return CellKind.WORDS
    if _YEAR.fullmatch(cell):
        return CellKind.YEAR
    if _PERIOD.fullmatch(cell):
        return CellKind.PERIOD
    if _NUMBER.fullmatch(cell):
        return CellKind.NUMBER
    if not any(map(str.isalnum, cell)):
        return CellKind.SIGNS
    words = len(cell.split())
    if words == 1 and ("@" in cell or "://" in cell):
        return CellKind.ADDRESS
    has_digit = any(map(str.isdecimal, cell))
    return CellKind.CODE if has_digit and words <= MAX_CODE_WORDS else CellKind.WORDS


def _column(rows: Iterable[Sequence[str]], place: int, cell: str) -> TableColumn:
    values = [row[place].strip() for row in rows if place < len(row) and row[place].strip()]
    name = cell.strip()
    kinds = Counter(map(classify_cell, values))
    most = next((kind for kind, count in kinds.items() if 2 * count > len(values)), None)
    return TableColumn(name, classify_cell(name), values, most)


def _are_years(columns: Sequence[TableColumn]) -> bool:
    """Tell whether more than one column with values has a year as its name."""
    years = [column for column in columns if column.kind is CellKind.YEAR and column.values]
    return len(years) > 1
