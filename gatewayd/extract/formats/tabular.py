"""Tables of rows: detection of the header, and output of sheets as lines."""

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
"""Characters at the start of a text in which the header is searched."""

DELIMITERS: Final = ",;\t|"
SUFFIXES: Final = frozenset({".csv", ".tsv", ".tab"})
TYPES: Final = frozenset({"text/csv", "text/tab-separated-values", "application/csv"})
LINE: Final = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line of a table; only CR and LF end it, as cells may contain form feeds and similar characters."""


def write_sheet(name: str, rows: Iterable[Sequence[str]], builder: TextBuilder) -> None:
    """Write a sheet with its name unless it is empty: a line per row, a tab between cells."""
    filled = filter(any, rows)
    first = [*islice(filled, ROWS_NEEDED)]
    names = find_header_row(first)
    is_begun = False
    for number, cells in enumerate(chain(first, filled)):
        line = table_row([*cells])
        if line and not is_begun:
            builder.write(f"Sheet: {name}\n")
            is_begun = True
        (builder.write_columns if number == names else builder.write)(line)
    builder.end_part(label=name)


def is_table(source: DocumentSource) -> bool:
    """Tell by name and media type whether a text is a table of delimiter-separated values."""
    media_type = (source.content_type or "").partition(";")[0].strip().lower()
    return PurePath(source.name).suffix.lower() in SUFFIXES or media_type in TYPES


def find_header_line(text: str) -> tuple[int, int]:
    """Return start and end of the header line of a table, without its line end; (0, 0) without a header."""
    head = text[:MAX_HEAD_CHARACTERS]
    lines = LINE.findall(head)
    # The last line may be incomplete.
    if len(head) < len(text):
        lines = lines[:-1]
    ends = [0, *accumulate(map(len, lines))]
    delimited = (line for line in lines if any(sign in line for sign in DELIMITERS) and not is_comment(line))
    delimiter = max(DELIMITERS, key=next(delimited, "").count)
    rows, numbers = [], [0]
    reader = csv.reader(lines, delimiter=delimiter)
    # The module csv refuses a text that is not a table; such a text has no header.
    with suppress(csv.Error):
        for cells in islice(reader, ROWS_NEEDED):
            rows.append(cells)
            numbers.append(reader.line_num)
    found = find_header_row(rows)
    if found is None:
        return 0, 0
    start, end = ends[numbers[found]], ends[numbers[found + 1]]
    return start, start + len(text[start:end].rstrip("\r\n"))
