"""Sums over the rows of tables, by which two copies of a table are compared, of one engine or of two."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gatewayd.storage.engine.migrate import HISTORY, INCOMPLETE

MODULUS: Final = 2**256
MAX_EXACT: Final = 2**53
"""Numbers from here on are compared as floating-point numbers: PostgreSQL writes 1e23 with all its digits."""

DERIVED: Final = re.compile(
    r"(?:words_\d+(?:_[a-z]+)?|space_vectors_\d+|collection_vectors_\d+_\d+|"
    r"collection_words(?:_\d+)?|collection_graphs|(?:vector|word)_backlog|sqlite_.*|"
    r"cluster_(?:changes|pending|version))"
)
"""Names of tables that are made from others: the words of collections, vectors of pgvector, changes."""


class ValueKind(StrEnum):
    """How a value is compared; SQLite stores truth as a number, PostgreSQL rewrites JSON."""

    PLAIN = "plain"
    TRUTH = "truth"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class TableSum:
    """Number of rows of a table, and the sum of their SHA-256 in hexadecimal: it ignores their order."""

    rows: int
    digest: str


class RowSummer:
    """Adds up rows, whose columns have the given kinds."""

    def __init__(self, kinds: Sequence[ValueKind]) -> None:
        self._kinds = kinds
        self._rows = 0
        self._sum = 0

    def add(self, row: Sequence[Any]) -> None:
        """Add one row; its columns must always come in the same order."""
        whole = hashlib.sha256()
        for value, kind in zip(row, self._kinds, strict=True):
            data = _canonical(value, kind)
            whole.update(b"%d:" % len(data))
            whole.update(data)
        self._sum = (self._sum + int.from_bytes(whole.digest())) % MODULUS
        self._rows += 1

    def total(self) -> TableSum:
        """Return the sum of all rows so far."""
        return TableSum(self._rows, f"{self._sum:064x}")


def is_content(table: str) -> bool:
    """Return whether a table has contents of its own: not the history, and nothing derived."""
    return table not in {HISTORY, INCOMPLETE} and DERIVED.fullmatch(table) is None


def differences(first: Mapping[str, TableSum], second: Mapping[str, TableSum]) -> Sequence[str]:
    """Return a sentence for each table that differs."""
    found = []
    for name in sorted(first.keys() | second.keys()):
        one, two = first.get(name), second.get(name)
        if one is None or two is None:
            found.append(f"the table {name} is missing")
        elif one.rows != two.rows:
            found.append(f"the table {name} has {two.rows} rows instead of {one.rows}")
        elif one.digest != two.digest:
            found.append(f"the table {name} has other contents")
    return found


def _canonical(value: Any, kind: ValueKind) -> bytes:
    if value is None:
        return b"n"
    match kind:
        case ValueKind.TRUTH:
            return b"t" if value else b"f"
        case ValueKind.JSON:
            return b"j" + canonical_json(value).encode()
        case ValueKind.PLAIN:
            if isinstance(value, bytes | bytearray | memoryview):
                return b"b" + bytes(value)
            return f"{type(value).__name__[0]}{value}".encode("utf-8", "surrogatepass")


def canonical_json(text: str) -> str:
    """Return one text for all spellings of a JSON value: sorted names, and numbers by their value."""
    try:
        value = json.loads(text, parse_float=_number, parse_int=_number)
    except (ValueError, RecursionError):
        # Damaged JSON stays as it is; PostgreSQL refuses to store it.
        return text
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if abs(value) < MAX_EXACT and value.is_integer() else value
