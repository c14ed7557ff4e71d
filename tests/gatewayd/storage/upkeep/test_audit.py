"""Tests for gatewayd.storage.upkeep.audit: the chain on every engine, and what its triggers refuse."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from tortoise.connection import get_connections
from tortoise.exceptions import BaseORMException

from gatewayd.audit.chain import ChainVerifier, link
from gatewayd.audit.records import (
    AuditActor,
    AuditActorKind,
    AuditEntry,
    AuditQuery,
    AuditResult,
    AuditRow,
    ChainHead,
    ChainVerdict,
)
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.upkeep import audit as audit_store
from gatewayd.storage.upkeep.audit import TortoiseAuditLog

ADA = AuditActor(AuditActorKind.KEY, "Ada@example.org", "u1", "sk-abc")
ROOT = AuditActor(AuditActorKind.UNIX, "root", "0")


async def add(store: TortoiseAuditLog, *entries: AuditEntry) -> Sequence[AuditRow]:
    head = await store.head()
    given = [(head.sequence + place, entry) for place, entry in enumerate(entries, 1)]
    return await store.append(lambda head: link(given, head))


async def filled(database: Database, count: int = 6) -> TortoiseAuditLog:
    store = TortoiseAuditLog(database)
    await add(store, *(AuditEntry(f"user set {place}", ADA, target="ö" * 9) for place in range(count)))
    return store


async def verify(store: TortoiseAuditLog) -> ChainVerdict:
    verifier = ChainVerifier(await store.base(), {})
    async for row in store.rows():
        verifier.add(row)
    return verifier.verdict()


async def run(database: Database, sql: str) -> None:
    await get_connections().get(database.location.connection).execute_script(sql)


async def test_rows_are_read_as_they_were_written(database: Database) -> None:
    store = TortoiseAuditLog(database)
    assert (await store.head(), await store.base()) == (ChainHead(), ChainHead())
    first = AuditEntry(
        "user set", ADA, "192.0.2.1", "/x/50%_", "eve", {"role": "user"}, {"b": 1.5, "a": None}
    )
    refused = AuditEntry("sign-in", ROOT, "::1", result=AuditResult.REFUSED, detail="wrong password")
    made = [*await add(store, first), *await add(store, refused)]
    assert await store.find(AuditQuery()) == made
    assert await store.head() == made[-1].place
    assert (await verify(store)).problems == ()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (AuditQuery(who="ADA@"), [1, 3]),
        (AuditQuery(who="u1"), [1, 3]),
        (AuditQuery(who="sk-abc"), [1, 3]),
        (AuditQuery(who="0"), [2]),
        (AuditQuery(action="SET"), [1]),
        (AuditQuery(target="50%_"), [1]),
        (AuditQuery(target="%"), [1]),
        (AuditQuery(target="Eve"), [1]),
        (AuditQuery(who="\x00"), []),
        (AuditQuery(since=2, until=3), [2]),
        (AuditQuery(after=1), [2, 3]),
        (AuditQuery(limit=2), [1, 2]),
        (AuditQuery(limit=2, newest=True), [2, 3]),
    ],
)
async def test_search(database: Database, query: AuditQuery, found: list[int]) -> None:
    store = TortoiseAuditLog(database)
    await add(
        store,
        AuditEntry("user set", ADA, target="/x/50%_", subject="eve"),
        AuditEntry("key revoke", ROOT),
        AuditEntry("sign-in", ADA),
    )
    assert [row.sequence for row in await store.find(query)] == found


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE audit_log SET actor = 'eve' WHERE sequence = 3",
        "DELETE FROM audit_log WHERE sequence = 3",
        "DELETE FROM audit_log",
        "UPDATE audit_base SET sequence = 5",
        "UPDATE audit_base SET sequence = 1",
        "DELETE FROM audit_base",
    ],
)
async def test_the_database_refuses_changes(database: Database, sql: str) -> None:
    store = await filled(database)
    await store.rebase((await store.find(AuditQuery(limit=2)))[-1].place)
    await store.sweep()
    before = [row async for row in store.rows()]
    with pytest.raises(BaseORMException, match="audit log"):
        await run(database, sql)
    assert [row async for row in store.rows()] == before


async def test_the_retention_removes_the_first_rows_and_the_rest_stays_verifiable(database: Database) -> None:
    store = await filled(database)
    place = await store.last_before(5)
    assert place is not None
    assert (place.sequence, await store.last_before(1)) == (4, None)
    await store.rebase(place)
    assert await store.sweep() == 4
    assert (await store.base(), (await verify(store)).rows) == (place, 2)
    assert (await verify(store)).problems == ()
    head = await store.head()
    await store.rebase(head)
    assert await store.sweep() == 2
    [row] = await add(store, AuditEntry("later", ROOT))
    assert (row.sequence, row.previous) == (7, head.hash)
    assert (await verify(store)).problems == ()


async def test_a_prune_that_was_killed_is_completed_later(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The base moves first, and what is left before it is no part of the chain."""
    monkeypatch.setattr(audit_store, "PRUNE_ROWS", 2)
    store = await filled(database, 9)
    place = await store.last_before(8)
    assert place is not None
    await store.rebase(place)
    await killed_sweep(store)
    assert (await store.last_before(8), await store.base()) == (None, place)
    assert [row.sequence for row in await store.find(AuditQuery())] == [8, 9]
    assert [row.sequence async for row in store.rows()] == [8, 9]
    assert (await verify(store)).problems == ()
    assert await store.sweep() == 5
    assert await store.sweep() == 0


async def killed_sweep(store: TortoiseAuditLog) -> None:
    """Sweep until the second transaction, which dies."""
    real, begun = write_transaction, count(1)

    def dying(what: str) -> AbstractAsyncContextManager[Any]:
        if next(begun) > 1:
            raise ConnectionResetError
        return real(what)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(audit_store, "write_transaction", dying)
        with pytest.raises(ConnectionResetError):
            await store.sweep()


async def test_a_row_of_a_clock_that_was_set_back_removes_no_row_before_it(database: Database) -> None:
    store = await filled(database, 4)
    await store.append(lambda head: link([(0, AuditEntry("clock set back", ROOT))], head))
    place = await store.last_before(3)
    assert place is not None
    assert (place.sequence, await store.last_before(1)) == (2, None)
    everything = await store.last_before(100)
    assert everything == await store.head()


async def test_tampering_without_triggers_is_found(database: Database) -> None:
    """Someone with the rights of the owner drops the triggers first."""
    store = await filled(database)
    table = " ON audit_log" if not database.location.is_sqlite else ""
    await run(database, f"DROP TRIGGER audit_log_unchanged{table}; DROP TRIGGER audit_log_kept{table}")
    await run(database, "UPDATE audit_log SET after = 'no json' WHERE sequence = 2")
    await run(database, "DELETE FROM audit_log WHERE sequence = 4")
    found = [(each.sequence, each.message) for each in (await verify(store)).problems]
    assert found[0] == (2, "row 2 was changed: its hash does not fit its values")
    assert found[1] == (4, "row 4 is missing")


async def test_a_row_with_a_taken_number_is_refused(database: Database) -> None:
    store = await filled(database)
    [row] = await store.find(AuditQuery(limit=1))
    with pytest.raises(Exception, match="cannot write the audit log"):
        await store.append(lambda _: [replace(row, detail="forged")])
