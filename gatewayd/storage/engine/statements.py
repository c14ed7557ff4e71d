"""SQL statements that are put together: their parameters, lists among them, pages, and patterns of LIKE."""

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
    """The parameters of a statement that is being made, for one engine."""

    client: Any
    values: list[Any] = field(default_factory=list)

    @property
    def is_postgres(self) -> bool:
        """Whether the engine is PostgreSQL."""
        return bool(self.client.capabilities.dialect == "postgres")

    def bind(self, value: Any) -> str:
        """Take a value as a parameter and return how the SQL refers to it."""
        self.values.append(value)
        return placeholder(self.client, len(self.values))

    def bind_all(self, values: Iterable[Any]) -> str:
        """Take several values as the members of a list."""
        return ", ".join([self.bind(value) for value in values])

    def among(self, values: Sequence[str] | Sequence[int]) -> str:
        """Return what follows a column that is one of any texts or numbers: they are one parameter."""
        if self.is_postgres:
            return f"= ANY({self.bind(list(values))})"
        return f"IN (SELECT value FROM json_each({self.bind(orjson.dumps(list(values)).decode())}))"  # noqa: S608

    def like(self, pattern: str) -> str:
        """Return what follows a column that fits a pattern of `contains_pattern` or `like_pattern`."""
        return f"LIKE {self.bind(pattern)} ESCAPE '\\'"

    def window(self, offset: int, limit: int | None) -> str:
        """Return the end of a statement that selects one page."""
        longest = MAX_WHOLE if limit is None else min(max(limit, 0), MAX_WHOLE)
        return f" LIMIT {self.bind(longest)} OFFSET {self.bind(min(max(offset, 0), MAX_WHOLE))}"

    def copy(self) -> "SqlStatement":
        """Return another statement that begins with the same parameters."""
        return SqlStatement(self.client, list(self.values))

    async def run(self, sql: str) -> list[dict[str, Any]]:
        """Run the statement and return its rows."""
        rows: list[dict[str, Any]] = await self.client.execute_query_dict(sql, self.values)
        return rows


def storable_ids(row: type[Model], ids: Iterable[str]) -> list[str]:
    """Return the ids that a row could have, each once."""
    return [each for each in dict.fromkeys(ids) if fits_columns(row, id=each)]


def stored_values(row: type[Model], columns: Mapping[str, Any]) -> list[Any]:
    """Return the values of some columns as they are stored; invalid_request naming one that cannot be."""
    return [row._meta.fields_map[name].to_db_value(value, row) for name, value in columns.items()]


def contains_pattern(text: str) -> str | None:
    """Return the pattern of folded texts that contain a text in any case, None when no text could."""
    return f"%{_escaped(casefold_nfc(text))}%" if is_storable(text) else None


def like_pattern(pattern: str) -> str | None:
    """Return the pattern of folded texts that are like `pattern` in any case, None when no text could be.

    In it `*` stands for any text and `?` for any character.
    """
    if not is_storable(pattern):
        return None
    # Many in a row mean the same as one, and cost more.
    short = re.sub(r"\*+", "*", casefold_nfc(pattern))
    return _escaped(short).replace("*", "%").replace("?", "_")


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)
