"""Inserts and upserts of many rows in few statements."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tortoise.models import Model

from gatewayd.storage.engine.statements import SqlStatement, stored_values

BATCH_SIZE: Final = 500
"""Rows per statement; SQLite allows 32766 parameters."""


async def insert_rows(
    row: type[Model], records: Sequence[Mapping[str, Any]], *, returning: str = ""
) -> list[dict[str, Any]]:
    """Insert records (values by column) in their order; all have the same columns.

    Returns the columns `returning` of every row, in no particular order.
    """
    return await _run(row, records, f" RETURNING {returning}" if returning else "")


async def upsert_rows(
    row: type[Model], records: Sequence[Mapping[str, Any]], keys: Sequence[str], *, returning: str = ""
) -> list[dict[str, Any]]:
    """Insert records, or replace the other columns of existing rows with the same `keys`.

    No two records may have the same keys. Returns the columns `returning` of every row, in no particular
    order.
    """
    if not records:
        return []
    changed = ", ".join(f"{column} = excluded.{column}" for column in records[0] if column not in keys)
    ending = f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changed}"
    return await _run(row, records, f"{ending} RETURNING {returning}" if returning else ending)


async def insert_unless_present(row: type[Model], record: Mapping[str, Any], key: str) -> bool:
    """Insert a record unless there is a row with the same `key`; return whether it was inserted."""
    return bool(await _run(row, [record], f" ON CONFLICT ({key}) DO NOTHING RETURNING {key}"))


async def _run(row: type[Model], records: Sequence[Mapping[str, Any]], ending: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for start in range(0, len(records), BATCH_SIZE):
        batch = records[start : start + BATCH_SIZE]
        statement = SqlStatement(row._meta.db)
        rows = ", ".join(f"({statement.bind_all(stored_values(row, record))})" for record in batch)
        columns = ", ".join(batch[0])
        found += await statement.run(
            f"INSERT INTO {row._meta.db_table} ({columns}) VALUES {rows}{ending}"  # noqa: S608 - no values
        )
    return found
