"""Tables of tbl: rows with a tab between cells."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

SEPARATOR: Final = re.compile(r"\btab\s*\((.)\)")
RULES: Final = re.compile(r"[_=\s]+|\\_")
REQUEST: Final = re.compile(r"\.\S*")
AGAIN: Final = ".T&"
OPEN: Final = "T{"
CLOSE: Final = "T}"
WITHIN: Final = "\0"
"""What stands between the lines of one cell."""


def rows(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of each row, as they are written."""
    separator = "\t"
    start = 0
    if lines and lines[0].rstrip().endswith(";"):
        found = SEPARATOR.search(lines[0])
        separator = found[1] if found else separator
        start = 1
    for line in _lines(lines[_first(lines, start) :]):
        if REQUEST.fullmatch(line) or RULES.fullmatch(line):
            continue
        cells = [_cell(cell) for cell in line.split(separator)]
        if any(cells):
            yield cells


def _first(lines: Sequence[str], start: int) -> int:
    """Return where the rows begin: behind the formats, which end with a full stop."""
    for number, line in enumerate(lines[start:], start):
        if line.rstrip().endswith("."):
            return number + 1
    return start


def _lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the rows; a cell that goes over several makes one of them."""
    pieces: list[str] = []
    is_format = False
    for line in lines:
        if is_format or (not pieces and line.startswith(AGAIN)):
            is_format = not line.rstrip().endswith(".")
            continue
        if pieces and not line.startswith(CLOSE):
            pieces.append(line)
            continue
        pieces.append(line.removeprefix(CLOSE) if pieces else line)
        if pieces[-1].rstrip().endswith(OPEN):
            pieces[-1] = pieces[-1].rstrip().removesuffix(OPEN)
            continue
        yield WITHIN.join(pieces)
        pieces = []
    if pieces:
        yield WITHIN.join(pieces)


def _cell(cell: str) -> str:
    """Return a cell without the calls of macros in it, whose words are kept."""
    lines = [re.sub(r"^[.']\s*\S+\s*", "", line) for line in cell.split(WITHIN)]
    return "" if RULES.fullmatch(cell) else " ".join(line for line in lines if line)
