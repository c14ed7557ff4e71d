"""Tables of tbl: rows with a tab between cells."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

SEPARATOR: Final = re.compile(r"\btab\s*\((.)\)")
RULES: Final = re.compile(r"[_=\s]+|\\_")
REQUEST: Final = re.compile(r"\.\S*")
AGAIN: Final = re.compile(r"^\.T&.*\n(?:.*[^.\n]\n)*.*\.$", re.M)
BLOCK: Final = re.compile(r"T\{\n?(.*?)\n?T\}", re.S)


def rows(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of each row, as they are written."""
    separator, body = _body(lines)
    within = "\0"
    text = AGAIN.sub("", "\n".join(body))
    text = BLOCK.sub(lambda found: found[1].replace("\n", within), text)
    for line in text.split("\n"):
        if REQUEST.fullmatch(line) or RULES.fullmatch(line):
            continue
        cells = [_cell(cell, within) for cell in line.split(separator)]
        if any(cells):
            yield cells


def _body(lines: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return what separates cells, and the lines behind the options and the formats."""
    separator = "\t"
    start = 0
    if lines and lines[0].rstrip().endswith(";"):
        found = SEPARATOR.search(lines[0])
        separator = found[1] if found else separator
        start = 1
    for number, line in enumerate(lines[start:], start):
        if line.rstrip().endswith("."):
            return separator, lines[number + 1 :]
    return separator, lines[start:]


def _cell(cell: str, within: str) -> str:
    """Return a cell without the calls of macros in it, whose words are kept."""
    lines = [re.sub(r"^[.']\s*\S+\s*", "", line) for line in cell.split(within)]
    return "" if RULES.fullmatch(cell) else " ".join(line for line in lines if line)
