"""Store of the audit log."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

import orjson

from gatewayd.audit.records import AuditQuery, AuditRow, ChainHead
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import MAX_WHOLE
from gatewayd.storage.engine.statements import SqlStatement, contains_pattern
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import insert_rows
from gatewayd.storage.tables.audit import AuditBaseRow, AuditLogRow
from gatewayd.transactions import Transactor

LOCK: Final = "gatewayd audit log"
NAMES: Final = tuple(each.name for each in fields(AuditRow))
COLUMNS: Final = ", ".join(NAMES)
VALUES: Final = ("before", "after")
PAGE_ROWS: Final = 1000
PRUNE_ROWS: Final = 1000
"""Rows that one transaction deletes."""

IN_CHAIN: Final = "sequence > COALESCE((SELECT MAX(sequence) FROM audit_base), 0)"

BASE_ID: Final = 1


class TortoiseAuditLog:
    """Implements `audit.interfaces.AuditStore`."""

    def __init__(self, transactor: Transactor) -> None:
        self._transactor = transactor

    async def append(self, make: Callable[[ChainHead], Sequence[AuditRow]]) -> Sequence[AuditRow]:
        """Store rows after the last one, in a transaction that excludes other writers."""
        with translate_errors("write the audit log"):
            async with self._transactor.exclusive(LOCK):
                made = make(await self.head())
                if made:
                    await insert_rows(AuditLogRow, [_stored(row) for row in made])
        return made

    async def head(self) -> ChainHead:
        """Return the place of the last row, or the base."""
        found = await self._run("SELECT sequence, hash FROM audit_log ORDER BY sequence DESC LIMIT 1")
        return ChainHead(found[0]["sequence"], found[0]["hash"]) if found else await self.base()

    async def base(self) -> ChainHead:
        """Return the place of the last removed row."""
        found = await self._run("SELECT sequence, hash FROM audit_base ORDER BY sequence DESC LIMIT 1")
        return ChainHead(found[0]["sequence"], found[0]["hash"]) if found else ChainHead()

    async def find(self, query: AuditQuery) -> Sequence[AuditRow]:
        """Return the selected rows of the chain in its order."""
        statement = SqlStatement(AuditLogRow._meta.db)
        wanted = _conditions(statement, query)
        if wanted is None:
            return []
        order = "DESC" if query.newest else "ASC"
        with translate_errors("read the audit log"):
            rows = await statement.run(
                f"SELECT {COLUMNS} FROM audit_log WHERE {' AND '.join(wanted)}"  # noqa: S608
                f" ORDER BY sequence {order} LIMIT {statement.bind(query.limit)}"
            )
        found = [_row_of(row) for row in rows]
        return found[::-1] if query.newest else found

    async def rows(self) -> AsyncIterator[AuditRow]:
        """Yield the rows after the base in the order of the chain."""
        after = -1
        while True:
            page = await self.find(AuditQuery(after=after, limit=PAGE_ROWS))
            for row in page:
                yield row
            if len(page) < PAGE_ROWS:
                return
            after = page[-1].sequence

    async def last_before(self, at: int) -> ChainHead | None:
        """Return the place of the last row before the first one that is not older than a time."""
        statement = SqlStatement(AuditLogRow._meta.db)
        first = f"SELECT MIN(sequence) FROM audit_log WHERE at >= {statement.bind(at)}"  # noqa: S608
        with translate_errors("read the audit log"):
            found = await statement.run(
                f"SELECT sequence, hash FROM audit_log WHERE sequence < COALESCE(({first}), {MAX_WHOLE})"  # noqa: S608
                f" AND {IN_CHAIN} ORDER BY sequence DESC LIMIT 1"
            )
        return ChainHead(found[0]["sequence"], found[0]["hash"]) if found else None

    async def rebase(self, place: ChainHead) -> None:
        """Make a place the base."""
        with translate_errors("delete old rows of the audit log"):
            async with self._transactor.exclusive(LOCK):
                known = await AuditBaseRow.filter(id=BASE_ID).update(sequence=place.sequence, hash=place.hash)
                if not known:
                    await insert_rows(
                        AuditBaseRow, [{"id": BASE_ID, "sequence": place.sequence, "hash": place.hash}]
                    )

    async def sweep(self) -> int:
        """Delete the rows up to the base, PRUNE_ROWS in a transaction."""
        last, count = (await self.base()).sequence, 0
        while True:
            async with write_transaction("delete old rows of the audit log"):
                found = await AuditLogRow.filter(sequence__lte=last).order_by("sequence").limit(1)
                if not found:
                    return count
                until = min(found[0].sequence + PRUNE_ROWS - 1, last)
                count += await AuditLogRow.filter(sequence__lte=until).delete()

    async def _run(self, sql: str) -> list[dict[str, Any]]:
        with translate_errors("read the audit log"):
            return await SqlStatement(AuditLogRow._meta.db).run(sql)


def _conditions(statement: SqlStatement, query: AuditQuery) -> list[str] | None:
    """Return the conditions of a query, None if no row can match."""
    wanted = [IN_CHAIN]
    for column, comparison, value in (
        ("sequence", ">", query.after),
        ("at", ">=", query.since),
        ("at", "<", query.until),
    ):
        if value is not None:
            wanted.append(f"{column} {comparison} {statement.bind(value)}")
    for text, parts, wholes in (
        (query.who, ("actor",), ("actor_id", "key")),
        (query.action, ("action",), ()),
        (query.target, ("target", "subject"), ()),
    ):
        if not text:
            continue
        pattern = contains_pattern(text)
        if pattern is None:
            return None
        some = [f"LOWER({column}) {statement.like(pattern)}" for column in parts]
        some += [f"{column} = {statement.bind(text)}" for column in wholes]
        wanted.append(f"({' OR '.join(some)})")
    return wanted


def _stored(row: AuditRow) -> Mapping[str, Any]:
    columns = {name: getattr(row, name) for name in NAMES}
    for name in VALUES:
        columns[name] = orjson.dumps(columns[name], option=orjson.OPT_SORT_KEYS).decode()
    return columns


def _row_of(row: Mapping[str, Any]) -> AuditRow:
    return AuditRow(**{**row, **{name: _values_of(row[name]) for name in VALUES}})


def _values_of(text: str) -> Mapping[str, Any]:
    """Return stored values; a text that was changed to something else is kept, and its hash does not fit."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    return found if isinstance(found, dict) else {"unreadable": text}
