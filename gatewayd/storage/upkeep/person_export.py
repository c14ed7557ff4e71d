"""Store that reads everything that belongs to one person, row by row."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import orjson
from tortoise import Tortoise, fields
from tortoise.models import Model

from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import JsonColumn
from gatewayd.storage.engine.statements import SqlStatement, contains_pattern
from gatewayd.storage.tables.accounts import UserRow
from gatewayd.storage.tables.audit import AuditLogRow
from gatewayd.storage.upkeep.person_rows import (
    CASCADED,
    DELETED,
    RENAMED,
    SEPARATE,
    PersonTable,
    bound_condition,
)

PAGE_ROWS: Final = 200
LARGE_ROWS: Final = {"stored_responses": 1, "stream_frames": 20, "plugins": 5, "models": 20}
"""Rows of a page; of tables with large rows fewer."""

AUDIT_WINDOW: Final = 20_000
"""Rows of the audit log that one statement looks at."""

SECRETS: Final = frozenset(
    {
        "password_hash",
        "token_version",
        "digest",
        "fingerprint",
        "reply",
        "id_token",
        "refresh_token",
        "access_token",
        "valves",
    }
)
"""Columns that are no data of the person, but open something."""

MEMBER_OF: Final = "id IN (SELECT group_id FROM group_members WHERE user_id = {user})"
FURTHER: Final = (
    PersonTable("addresses", "user_emails"),
    PersonTable("provisioned ids", "user_external_ids"),
    PersonTable("subjects at providers", "user_subjects"),
    PersonTable("groups", "groups", condition=MEMBER_OF),
    PersonTable(
        "files in their collections",
        "collection_files",
        condition="collection_id IN (SELECT id FROM collections WHERE user_id = {user})",
    ),
)
"""What goes with the account, and what tells what an id means."""

APART: Final = frozenset({"chats", "counters of limits", "entries of access lists"})
"""Kinds that are no rows to export: chats are rendered with their messages."""


class TortoisePersonRecords:
    """Implements `privacy.interfaces.PersonRecords`."""

    async def pages(self, user_id: str, email: str) -> AsyncIterator[tuple[str, Sequence[Mapping[str, Any]]]]:
        """Yield pages of rows with their kind, in a fixed order, without secrets."""
        for each in (*CASCADED, *FURTHER, *SEPARATE, *DELETED, *RENAMED):
            if each.kind in APART:
                continue
            async for rows in _pages(each, user_id, email):
                yield each.kind, rows
        async for rows in _audit_pages(user_id, email):
            yield "rows of the audit log", rows

    async def ids(self, table: str, user_id: str) -> AsyncIterator[str]:
        """Yield the ids of the rows of `chats`, `files` or `batch_files` of a person, in order."""
        last = ""
        while True:
            statement = SqlStatement(UserRow._meta.db)
            with translate_errors("read what belongs to the user"):
                rows = await statement.run(
                    f'SELECT id FROM "{table}" WHERE user_id = {statement.bind(user_id)}'  # noqa: S608
                    f" AND id > {statement.bind(last)} ORDER BY id LIMIT {PAGE_ROWS}"
                )
            for row in rows:
                yield row["id"]
            if len(rows) < PAGE_ROWS:
                return
            last = rows[-1]["id"]


async def _pages(table: PersonTable, user_id: str, email: str) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
    model = _model_of(table.table)
    size = LARGE_ROWS.get(table.table, PAGE_ROWS)
    last: Any = None
    while True:
        statement = SqlStatement(UserRow._meta.db)
        where = bound_condition(statement, table, user_id, email)
        if last is not None:
            where = f"({where}) AND {table.key} > {statement.bind(last)}"
        with translate_errors("read what belongs to the user"):
            rows = await statement.run(
                f'SELECT * FROM "{table.table}" WHERE {where} ORDER BY {table.key} LIMIT {size}'  # noqa: S608
            )
        if rows:
            yield [_shown(model, row) for row in rows]
        if len(rows) < size:
            return
        last = rows[-1][table.key]


async def _audit_pages(user_id: str, email: str) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
    """Yield the rows of actions by the person, and of those that concern them."""
    bounds = SqlStatement(AuditLogRow._meta.db)
    with translate_errors("read the audit log"):
        [found] = await bounds.run("SELECT MIN(sequence) AS first, MAX(sequence) AS last FROM audit_log")
    for start in range(found["first"] or 1, (found["last"] or 0) + 1, AUDIT_WINDOW):
        statement = SqlStatement(AuditLogRow._meta.db)
        conditions = [
            f"{column} = {statement.bind(value)}"
            for column in ("actor_id", "actor", "subject")
            for value in (user_id, email)
            if value
        ]
        for value in filter(None, (user_id, email)):
            conditions.append(f"LOWER(target) {statement.like(contains_pattern(value) or '')}")
        with translate_errors("read the audit log"):
            rows = await statement.run(
                f"SELECT * FROM audit_log WHERE sequence >= {statement.bind(start)}"  # noqa: S608
                f" AND sequence < {statement.bind(start + AUDIT_WINDOW)} AND ({' OR '.join(conditions)})"
                " ORDER BY sequence"
            )
        for place in range(0, len(rows), PAGE_ROWS):
            yield [dict(row) for row in rows[place : place + PAGE_ROWS]]


def _model_of(table: str) -> type[Model]:
    apps = Tortoise.apps
    if apps is None:
        raise RuntimeError("the database is not open")
    found: type[Model] = next(each for each in apps["gatewayd"].values() if each._meta.db_table == table)
    return found


def _shown(model: type[Model], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row as JSON values, the same on each engine, without secrets and columns for searches."""
    kinds = {field.source_field or name: field for name, field in model._meta.fields_map.items()}
    return {
        name: _value(kinds.get(name), value)
        for name, value in row.items()
        if name not in SECRETS and not name.endswith("_key")
    }


def _value(field: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(field, JsonColumn):
        return orjson.loads(value) if isinstance(value, str | bytes) else value
    if isinstance(field, fields.BooleanField):
        return bool(value)
    return bytes(value).decode("utf-8", "replace") if isinstance(value, bytes | memoryview) else value
