"""Tables of rows: where the names of the columns stand, and how rows are written."""

import csv
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import accumulate, chain, islice
from pathlib import PurePath
from typing import Final

from gatewayd.extract.formats.column_names import ROWS_NEEDED, find_header_row, is_comment
from gatewayd.extract.records import DocumentSource
from gatewayd.extract.text_builder import TextBuilder, table_row

MAX_HEAD_CHARACTERS: Final = 64 * 1024
"""Beginning of a text in which the names of its columns are looked for."""

DELIMITERS: Final = ",;\t|"
SUFFIXES: Final = frozenset({".csv", ".tsv", ".tab"})
TYPES: Final = frozenset({"text/csv", "text/tab-separated-values", "application/csv"})
LINE: Final = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line as the rows of tables end; form feeds and the like may stand in a cell."""


def write_sheet(name: str, rows: Iterable[Sequence[str]], draft: TextBuilder) -> None:
    """Write a sheet under its name, unless it is empty: a line is a row, with a tab between cells."""
    filled = filter(any, rows)
    first = [*islice(filled, ROWS_NEEDED)]
    names = find_header_row(first)
    is_begun = False
    for number, cells in enumerate(chain(first, filled)):
        line = table_row([*cells])
        if line and not is_begun:
            draft.write(f"Sheet: {name}\n")
            is_begun = True
        (draft.write_columns if number == names else draft.write)(line)
    draft.end_part(label=name)


def is_table(source: DocumentSource) -> bool:
    """Tell whether a text is a table of values that a character separates, by its name and media type."""
    media_type = (source.content_type or "").partition(";")[0].strip().lower()
    return PurePath(source.name).suffix.lower() in SUFFIXES or media_type in TYPES


def find_header_line(text: str) -> tuple[int, int]:
    """Return where the names of the columns of such a text stand, without the end of the line; an empty
    stretch when it has none."""
    head = text[:MAX_HEAD_CHARACTERS]
    lines = LINE.findall(head)
    # The last line may be cut off.
    if len(head) < len(text):
        lines = lines[:-1]
    ends = [0, *accumulate(map(len, lines))]
    told = (line for line in lines if any(sign in line for sign in DELIMITERS) and not is_comment(line))
    delimiter = max(DELIMITERS, key=next(told, "").count)
    rows, numbers = [], [0]
    reader = csv.reader(lines, delimiter=delimiter)
    # The module refuses what is no table of values, and that has no columns.
    with suppress(csv.Error):
        for cells in islice(reader, ROWS_NEEDED):
            rows.append(cells)
            numbers.append(reader.line_num)
    found = find_header_row(rows)
    if found is None:
        return 0, 0
    start, end = ends[numbers[found]], ends[numbers[found + 1]]
    return start, start + len(text[start:end].rstrip("\r\n"))
