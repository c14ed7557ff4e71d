"""The chain of hashes: sealing entries into rows, and finding each kind of tampering."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

import orjson

from gatewayd.audit.records import (
    MAX_VALUES_BYTES,
    AuditEntry,
    AuditRow,
    ChainHead,
    ChainProblem,
    ChainVerdict,
    storable_entry,
)

MAX_PROBLEMS: Final = 20

HASHED_COLUMNS: Final = tuple(each.name for each in fields(AuditRow) if each.name != "hash")


def canonical(columns: Mapping[str, Any]) -> bytes:
    """Return the canonical JSON of the columns of a row without its hash (RFC 8785, 3.2).

    It has no blanks, and names in order; `jq -cSj 'del(.hash)'` of an exported row gives the same bytes.
    """
    return orjson.dumps({name: columns[name] for name in HASHED_COLUMNS}, option=orjson.OPT_SORT_KEYS)


def hash_of(row: AuditRow) -> str:
    """Return the hash that a row must have."""
    return hashlib.sha256(canonical({name: getattr(row, name) for name in HASHED_COLUMNS})).hexdigest()


def link(entries: Sequence[tuple[int, AuditEntry]], head: ChainHead) -> Sequence[AuditRow]:
    """Return the rows of entries with their times (epoch microseconds), which follow the row `head`."""
    rows = []
    for at, entry in entries:
        columns = storable_entry(entry)
        for name in ("before", "after"):
            columns[name] = _bounded(columns[name])
        unlinked = AuditRow(sequence=head.sequence + 1, at=at, previous=head.hash, hash="", **columns)
        row = replace(unlinked, hash=hash_of(unlinked))
        rows.append(row)
        head = row.place
    return rows


def _bounded(values: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(orjson.dumps(values))
    except orjson.JSONEncodeError:
        # Whole numbers of more than 64 bits, for example.
        return {"dropped": "the values are no storable JSON"}
    return values if size <= MAX_VALUES_BYTES else {"dropped": f"the values have {size} bytes"}


class ChainVerifier:
    """Checks the rows of a chain one after the other.

    `base` is the place of the last row that retention removed. `checkpoints` are hashes by sequence number
    that were stored elsewhere: they show a removed end, and a chain that was computed anew.
    """

    def __init__(self, base: ChainHead, checkpoints: Mapping[int, str]) -> None:
        self._base = base
        self._last = base
        self._checkpoints = {
            number: value for number, value in checkpoints.items() if number >= base.sequence
        }
        self._rows = 0
        self._problems: list[ChainProblem] = []
        self._compare(base)

    def add(self, row: AuditRow) -> None:
        """Check the next row, in the order of the sequence numbers."""
        self._rows += 1
        expected = self._last.sequence + 1
        if row.sequence > expected:
            missing = (
                f"row {expected}"
                if row.sequence == expected + 1
                else f"rows {expected} to {row.sequence - 1}"
            )
            verb = "is" if row.sequence == expected + 1 else "are"
            self._note(expected, f"{missing} {verb} missing")
        elif row.sequence < expected:
            self._note(row.sequence, f"row {row.sequence} is there twice or out of order")
        elif row.previous != self._last.hash:
            self._note(row.sequence, f"row {row.sequence} does not follow the row before it")
        if row.hash != hash_of(row):
            self._note(row.sequence, f"row {row.sequence} was changed: its hash does not fit its values")
        self._last = row.place
        self._compare(row.place)

    def verdict(self) -> ChainVerdict:
        """Return the result after the last row."""
        beyond = [number for number in self._checkpoints if number > self._last.sequence]
        if beyond:
            first = self._last.sequence + 1
            self._note(
                first,
                f"the end of the chain is missing: a checkpoint names row {max(beyond)}, the rows end"
                f" with {self._last.sequence}",
                by_checkpoint=True,
            )
        return ChainVerdict(self._rows, self._base, self._last, tuple(self._problems))

    def _compare(self, place: ChainHead) -> None:
        known = self._checkpoints.get(place.sequence)
        if known is not None and known != place.hash:
            message = f"row {place.sequence} is not the one that a checkpoint names"
            self._note(place.sequence, message, by_checkpoint=True)

    def _note(self, sequence: int, message: str, *, by_checkpoint: bool = False) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(ChainProblem(sequence, message, by_checkpoint))
