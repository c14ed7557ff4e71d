"""Store of the usage of models."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from gatewayd.metering.usage_records import (
    MAX_SUM,
    UsageDimension,
    UsageKey,
    UsageLine,
    UsageQuery,
    UsageSums,
)
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.readers import QueryReader
from gatewayd.storage.engine.statements import SqlStatement, stored_values
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.usage import UsageRow
from gatewayd.text import storable

SUMS: Final = tuple(each.name for each in fields(UsageSums))
BATCH_SIZE: Final = 500
"""Rows per statement."""

_COLUMNS: Final = {
    UsageDimension.DAY: ("day", "day"),
    UsageDimension.USER: ("user_id", "MAX(user_name)"),
    UsageDimension.GROUP: ("COALESCE(group_id, '')", "COALESCE(MAX(groups.name), '')"),
    UsageDimension.KEY: ("key_id", "MAX(key_name)"),
    UsageDimension.MODEL: ("model", "model"),
    UsageDimension.PROVIDER: ("provider", "provider"),
    UsageDimension.ENDPOINT: ("endpoint", "endpoint"),
}
"""Id and name of a line of a report, as SQL."""

_GROUPS: Final = (
    " LEFT JOIN (SELECT DISTINCT user_id, group_id FROM group_members) AS member"
    " ON member.user_id = used.user_id LEFT JOIN groups ON groups.id = member.group_id"
)
"""A user may be in a group by several sources."""


class TortoiseUsage:
    """Implements `metering.usage_records.UsageStore`; reports are read through `reader`."""

    def __init__(self, reader: QueryReader | None = None) -> None:
        self._reader = reader

    async def add(self, rows: Mapping[UsageKey, UsageSums]) -> None:
        """Add sums to the stored ones, with the names that users and keys have now."""
        keys = sorted(rows)
        async with write_transaction("write the usage") as client:
            users = await _names(client, "users", "email", {key.user_id for key in keys})
            api_keys = await _names(client, "api_keys", "name", {key.key_id for key in keys})
            for start in range(0, len(keys), BATCH_SIZE):
                records = [
                    _record(key, rows[key], users, api_keys) for key in keys[start : start + BATCH_SIZE]
                ]
                statement = SqlStatement(client)
                values = ", ".join(
                    f"({statement.bind_all(stored_values(UsageRow, record))})" for record in records
                )
                await statement.run(
                    f"INSERT INTO usage ({', '.join(records[0])}) VALUES {values} {_ENDING}"  # noqa: S608
                )

    async def rename(self, user_id: str, pseudonym: str) -> None:
        """Replace a user by a pseudonym without keys, BATCH_SIZE rows in a transaction."""
        while True:
            async with write_transaction("replace a user in the usage") as client:
                statement = SqlStatement(client)
                found = await statement.run(
                    f"SELECT * FROM usage WHERE user_id = {statement.bind(_name(user_id, 255))}"  # noqa: S608
                    f" ORDER BY id LIMIT {BATCH_SIZE}"
                )
                if not found:
                    return
                merged: dict[UsageKey, UsageSums] = {}
                for row in found:
                    key = UsageKey(row["day"], pseudonym, "", row["model"], row["provider"], row["endpoint"])
                    merged.setdefault(key, UsageSums()).add(UsageSums(*(row[name] for name in SUMS)))
                await UsageRow.filter(id__in=[row["id"] for row in found]).delete()
                await self.add(merged)

    async def report(self, query: UsageQuery) -> Sequence[UsageLine]:
        """Return the lines of a report: by day in its order, else the most expensive and largest first."""
        if self._reader is None:
            return []
        sql, values = report_statement(query)
        with translate_errors("report the usage"):
            found = await self._reader.rows(sql, *values)
        count = len(query.by)
        return [
            UsageLine(
                tuple(map(str, row[:count])),
                tuple(map(str, row[count : 2 * count])),
                UsageSums(*map(int, row[2 * count :])),
            )
            for row in found
        ]


def report_statement(query: UsageQuery) -> tuple[str, list[Any]]:
    """Return the SQL of a report and its parameters."""
    values: list[Any] = []
    wanted = ["1 = 1"]
    for column, comparison, value in (
        ("used.day", ">=", query.since or None),
        ("used.day", "<=", query.until or None),
        ("used.user_id", "=", query.user_id),
        ("member.group_id", "=", query.group_id),
        ("used.key_id", "=", query.key_id),
        ("used.model", "=", query.model),
        ("used.provider", "=", query.provider),
    ):
        if value is not None:
            values.append(_name(value, 2600))
            wanted.append(f"{column} {comparison} ${len(values)}")
    places = [_qualified(_COLUMNS[each]) for each in query.by]
    columns = [*(place for place, _ in places), *(name for _, name in places)]
    # PostgreSQL sums into numbers without bounds.
    columns += [f"CAST(SUM(used.{name}) AS BIGINT)" for name in SUMS]
    joined = _GROUPS if UsageDimension.GROUP in query.by or query.group_id is not None else ""
    sorting = "1" if query.by[:1] == (UsageDimension.DAY,) else "SUM(used.cost) DESC"
    values.append(query.limit)
    grouping = ", ".join(str(position + 1) for position in range(len(places)))
    return (
        f"SELECT {', '.join(columns)} FROM usage AS used{joined} WHERE {' AND '.join(wanted)}"  # noqa: S608
        f" GROUP BY {grouping} ORDER BY {sorting}, SUM(used.prompt + used.completion) DESC, 1"
        f" LIMIT ${len(values)}",
        values,
    )


def _qualified(place: tuple[str, str]) -> tuple[str, str]:
    column, name = place
    if column.startswith("COALESCE"):
        return column.replace("group_id", "member.group_id"), name
    named = name.replace("MAX(", "MAX(used.") if name.startswith("MAX(") else f"MAX(used.{name})"
    return f"used.{column}", named


def _record(
    key: UsageKey, sums: UsageSums, users: Mapping[str, str], api_keys: Mapping[str, str]
) -> dict[str, Any]:
    named = {
        "day": key.day,
        "user_id": _name(key.user_id, 255),
        "user_name": _name(users.get(key.user_id, ""), 320),
        "key_id": _name(key.key_id, 64),
        "key_name": _name(api_keys.get(key.key_id, ""), 255),
        "model": _name(key.model, 255),
        "provider": _name(key.provider, 255),
        "endpoint": _name(key.endpoint, 32),
    }
    row_id = hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
    return {"id": row_id, **named, **{name: min(MAX_SUM, getattr(sums, name)) for name in SUMS}}


def _name(value: str, length: int) -> str:
    """Return a text that every engine stores."""
    return storable(value)[:length]


async def _names(client: Any, table: str, column: str, wanted: set[str]) -> Mapping[str, str]:
    statement = SqlStatement(client)
    among = statement.among(sorted(filter(None, wanted)))
    rows = await statement.run(f"SELECT id, {column} AS name FROM {table} WHERE id {among}")  # noqa: S608
    return {row["id"]: row["name"] for row in rows}


def _summed(name: str) -> str:
    old, new = f"usage.{name}", f"excluded.{name}"
    return f"{name} = CASE WHEN {old} > {MAX_SUM} - {new} THEN {MAX_SUM} ELSE {old} + {new} END"


def _renamed(name: str) -> str:
    return f"{name} = CASE WHEN excluded.{name} = '' THEN usage.{name} ELSE excluded.{name} END"


_ENDING: Final = "ON CONFLICT (id) DO UPDATE SET " + ", ".join(
    [*map(_renamed, ("user_name", "key_name")), *map(_summed, SUMS)]
)
