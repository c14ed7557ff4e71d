"""Tables of rows: which row has the names of the columns, and how rows are written."""

import csv
import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import PurePath
from typing import Final

from gatewayd.extract.draft import Draft, row
from gatewayd.extract.records import Source

MAX_ROWS_ABOVE: Final = 10
"""Rows that may stand above the names of the columns: titles, notes."""

MAX_NAME_CHARACTERS: Final = 200
MAX_HEAD_CHARACTERS: Final = 64 * 1024
"""Beginning of a text in which the names of its columns are looked for."""

DELIMITERS: Final = ",;\t|"
SUFFIXES: Final = frozenset({".csv", ".tsv", ".tab"})
TYPES: Final = frozenset({"text/csv", "text/tab-separated-values", "application/csv"})
YEAR: Final = re.compile(r"[12]\d{3}")


def write_sheet(name: str, rows: Iterable[Sequence[str]], draft: Draft) -> None:
    """Write a sheet under its name, unless it is empty: a line is a row, with a tab between cells."""
    is_begun = is_settled = False
    for number, cells in enumerate(filter(any, rows)):
        line = row(list(cells))
        if line and not is_begun:
            draft.write(f"Sheet: {name}\n")
            is_begun = True
        if is_settled or number > MAX_ROWS_ABOVE or not is_row(cells):
            draft.write(line)
            continue
        is_settled = True
        (draft.write_columns if are_names(cells) else draft.write)(line)
    draft.end_part(label=name)


def is_table(source: Source) -> bool:
    """Tell whether a text is a table of values that a character separates, by its name and media type."""
    media_type = (source.content_type or "").partition(";")[0].strip().lower()
    return PurePath(source.name).suffix.lower() in SUFFIXES or media_type in TYPES


def columns_at(text: str) -> tuple[int, int]:
    """Return where the names of the columns of such a text stand, without the end of the line; an empty
    stretch when it has none."""
    head = text[:MAX_HEAD_CHARACTERS]
    lines = head.splitlines(keepends=True)
    # The last line may be cut off.
    if len(head) < len(text):
        lines = lines[:-1]
    ends = [0, *accumulate(map(len, lines))]
    first = next((line for line in lines if any(sign in line for sign in DELIMITERS)), "")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(lines, delimiter=delimiter)
    begun = 0
    try:
        for number, cells in enumerate(reader):
            if is_row(cells) or number >= MAX_ROWS_ABOVE:
                names = text[ends[begun] : ends[reader.line_num]].rstrip("\r\n")
                return (ends[begun], ends[begun] + len(names)) if are_names(cells) else (0, 0)
            begun = reader.line_num
    except csv.Error:
        # The module refuses what is no table of values, and that has no columns.
        return 0, 0
    return 0, 0


def is_row(cells: Sequence[str]) -> bool:
    """Tell whether cells are more than a title or a note."""
    return sum(1 for cell in cells if cell.strip()) > 1


def are_names(cells: Sequence[str]) -> bool:
    """Tell whether the cells of a row are names: more than one, all different, none of them a value."""
    names = [cell.strip().casefold() for cell in cells if cell.strip()]
    return len(names) > 1 and len({*names}) == len(names) and all(map(_is_name, names))


def _is_name(cell: str) -> bool:
    is_word = any(character.isalpha() for character in cell)
    return len(cell) <= MAX_NAME_CHARACTERS and (is_word or YEAR.fullmatch(cell) is not None)
