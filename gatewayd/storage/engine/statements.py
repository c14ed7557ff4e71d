"""Builder of SQL statements: parameters, list parameters, pages, and LIKE patterns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from tortoise.models import Model

from gatewayd.storage.engine.fields import MAX_WHOLE, fits_columns
from gatewayd.storage.engine.transactions import placeholder
from gatewayd.text import casefold_nfc, is_storable


@dataclass(slots=True)
class SqlStatement:
    """A SQL statement under construction: its parameters, in the syntax of one engine."""

    client: Any
    values: list[Any] = field(default_factory=list)

    @property
    def is_postgres(self) -> bool:
        """Whether the engine is PostgreSQL."""
        return bool(self.client.capabilities.dialect == "postgres")

    def bind(self, value: Any) -> str:
        """Add a value as a parameter and return its placeholder."""
        self.values.append(value)
        return placeholder(self.client, len(self.values))

    def bind_all(self, values: Iterable[Any]) -> str:
        """Add several values as parameters and return their placeholders, separated by commas."""
        return ", ".join([self.bind(value) for value in values])

    def among(self, values: Sequence[str] | Sequence[int]) -> str:
        """Return the SQL after a column for membership in a list, which is one parameter."""
        if self.is_postgres:
            return f"= ANY({self.bind(list(values))})"
        return f"IN (SELECT value FROM json_each({self.bind(orjson.dumps(list(values)).decode())}))"  # noqa: S608

    def like(self, pattern: str) -> str:
        """Return the SQL after a column for a match with `contains_pattern` or `like_pattern`."""
        return f"LIKE {self.bind(pattern)} ESCAPE '\\'"

    def window(self, offset: int, limit: int | None) -> str:
        """Return the LIMIT and OFFSET of a page."""
        count = MAX_WHOLE if limit is None else min(max(limit, 0), MAX_WHOLE)
        return f" LIMIT {self.bind(count)} OFFSET {self.bind(min(max(offset, 0), MAX_WHOLE))}"

    def copy(self) -> "SqlStatement":
        """Return another statement with the same parameters."""
        return SqlStatement(self.client, list(self.values))

    async def run(self, sql: str) -> list[dict[str, Any]]:
        """Run the statement and return its rows."""
        rows: list[dict[str, Any]] = await self.client.execute_query_dict(sql, self.values)
        return rows


def storable_ids(row: type[Model], ids: Iterable[str]) -> list[str]:
    """Return the ids that a row can store, each once."""
    return [each for each in dict.fromkeys(ids) if fits_columns(row, id=each)]


def stored_values(row: type[Model], columns: Mapping[str, Any]) -> list[Any]:
    """Return the database values of some columns; invalid_request naming an unstorable one."""
    return [row._meta.fields_map[name].to_db_value(value, row) for name, value in columns.items()]


def contains_pattern(text: str) -> str | None:
    """Return the pattern for case-folded texts that contain a text, None when none can."""
    return f"%{_escaped(casefold_nfc(text))}%" if is_storable(text) else None


def like_pattern(pattern: str) -> str | None:
    """Return the pattern for case-folded texts that match `pattern`, None when none can.

    In `pattern`, `*` matches any text and `?` any character.
    """
    if not is_storable(pattern):
        return None
    # A run of `*` means the same as one, but is slower.
    short = re.sub(r"\*+", "*", casefold_nfc(pattern))
    return _escaped(short).replace("*", "%").replace("?", "_")


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)
