"""Stored JSON values by name."""

from collections.abc import Mapping, Sequence
from typing import Any

from tortoise.transactions import in_transaction

from gatewayd.storage.failures import translated
from gatewayd.storage.rows import ValueRow


class TortoiseValues:
    """Implements `accounts.interfaces.ValueStore`."""

    async def load(self) -> Mapping[str, Any]:
        """Return all stored values."""
        async with translated("read the settings"):
            return {row.name: row.value["is"] for row in await ValueRow.all()}

    async def put(self, values: Mapping[str, Any], *, at: int, by: str) -> None:
        """Write several values as one change."""
        async with translated("store the settings"), in_transaction():
            for name, value in values.items():
                # Wrapped, as a JSON field takes a bare text for JSON already written.
                row = ValueRow(name=name, value={"is": value}, updated_at=at, updated_by=by)
                await ValueRow.bulk_create(
                    [row], on_conflict=["name"], update_fields=["value", "updated_at", "updated_by"]
                )

    async def remove(self, names: Sequence[str]) -> int:
        """Forget values; return how many were stored."""
        async with translated("reset the settings"):
            return await ValueRow.filter(name__in=list(names)).delete() if names else 0
