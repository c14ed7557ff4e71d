"""Tests for gatewayd.audit.chain: each kind of tampering is found, with the number of its row."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import pytest

from gatewayd.audit.chain import ChainVerifier, hash_of, link
from gatewayd.audit.records import (
    AuditActor,
    AuditActorKind,
    AuditEntry,
    AuditRow,
    ChainHead,
    ChainVerdict,
)

ADA = AuditActor(AuditActorKind.ACCOUNT, "ada@example.org", "u1")
ENTRIES = [(at, AuditEntry(f"action {at}", ADA, after={"b": at, "a": "ö"})) for at in range(1, 8)]
ROWS = link(ENTRIES, ChainHead())
HEAD = ROWS[-1].place

Rows = Sequence[AuditRow]


def verify(rows: Rows, base: ChainHead | None = None, known: ChainHead = HEAD) -> ChainVerdict:
    verifier = ChainVerifier(base or ChainHead(), {known.sequence: known.hash})
    for row in rows:
        verifier.add(row)
    return verifier.verdict()


def resealed(rows: Rows, place: int, **changes: object) -> Rows:
    """Return a chain of which one row is changed and all later ones are computed anew."""
    made = list(rows)
    made[place] = replace(made[place], **changes)  # type: ignore[arg-type]
    for at in range(place, len(made)):
        previous = made[at - 1].hash if at else ChainHead().hash
        made[at] = replace(made[at], previous=previous, sequence=at + 1)
        made[at] = replace(made[at], hash=hash_of(made[at]))
    return made


def changed(place: int, **changes: object) -> Callable[[Rows], Rows]:
    return lambda rows: [*rows[:place], replace(rows[place], **changes), *rows[place + 1 :]]  # type: ignore[arg-type]


def test_a_sound_chain() -> None:
    assert verify(ROWS) == ChainVerdict(7, ChainHead(), HEAD)
    assert verify([]).problems[0].sequence == 1
    assert ChainVerifier(ChainHead(), {}).verdict().problems == ()


def test_a_chain_whose_first_rows_the_retention_removed() -> None:
    assert verify(ROWS[3:], ROWS[2].place).problems == ()
    assert verify([], HEAD).problems == ()


def test_the_hash_is_that_of_the_sorted_json_of_the_row() -> None:
    """An auditor needs no program of the gateway: jq -cSj 'del(.hash)' | sha256sum."""
    columns = asdict(ROWS[1])
    given = columns.pop("hash")
    text = json.dumps(columns, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == given


@pytest.mark.parametrize(
    ("tamper", "sequence", "words"),
    [
        (changed(2, actor="eve@example.org"), 3, "was changed"),
        (changed(2, after={"b": 9}), 3, "was changed"),
        (changed(2, at=0), 3, "was changed"),
        (changed(2, hash="0" * 64), 3, "was changed"),
        (changed(2, previous="0" * 64), 3, "does not follow"),
        (lambda rows: [*rows[:2], *rows[3:]], 3, "row 3 is missing"),
        (lambda rows: [*rows[:2], *rows[5:]], 3, "rows 3 to 5 are missing"),
        (lambda rows: rows[1:], 1, "row 1 is missing"),
        (lambda rows: rows[:5], 6, "the end of the chain is missing"),
        (lambda rows: [*rows[:3], rows[1], *rows[3:]], 2, "twice or out of order"),
        (lambda rows: [*rows[:2], rows[3], rows[2], *rows[4:]], 3, "missing"),
        (lambda rows: [*rows, replace(rows[-1], sequence=8)], 8, "does not follow"),
        (lambda rows: resealed(rows, 3, actor="eve"), 7, "not the one that a checkpoint names"),
        (lambda rows: resealed([*rows[:2], *rows[3:]], 2), 7, "the end of the chain is missing"),
    ],
)
def test_tampering_is_found(tamper: Callable[[Rows], Rows], sequence: int, words: str) -> None:
    verdict = verify(tamper(ROWS))
    found = [(each.sequence, each.message) for each in verdict.problems]
    assert any(number == sequence and words in message for number, message in found), found


def test_problems_are_bounded() -> None:
    assert len(verify([replace(row, detail="x") for row in link(ENTRIES * 20, ChainHead())]).problems) == 20


def test_values_that_no_row_can_hold_are_replaced() -> None:
    odd = AuditEntry("a\x00b\ud800", ADA, after={"n": 2**70, "x": float("nan"), "s": {"\x00": b"x"}})
    large = AuditEntry("large", ADA, after={"x": "y" * 20_000})
    [first, second] = link([(1, odd), (2, large)], ChainHead())
    assert first.action == "a\ufffdb\ufffd"
    assert first.after == {"n": str(2**70), "x": None, "s": {"\ufffd": "b'x'"}}
    assert second.after == {"dropped": "the values have 20008 bytes"}
    assert hash_of(first) == first.hash
