"""Store of settings: JSON values by name."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, fits_columns
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.accounts import ValueRow


class TortoiseValues:
    """Implements `accounts.interfaces.ValueStore`."""

    async def load(self) -> Mapping[str, Any]:
        """Return all stored values."""
        with translate_errors("read the settings"):
            rows = await ValueRow.all().order_by("name")
        return {row.name: decode(row.value, f"the setting {row.name}") for row in rows}

    async def put(self, values: Mapping[str, Any], *, at: int, by: str) -> None:
        """Write several values as one change."""
        # The same order everywhere prevents a deadlock between processes.
        rows = [
            ValueRow(name=name, value=encode(value, name), updated_at=at, updated_by=by)
            for name, value in sorted(values.items())
        ]
        async with write_transaction("store the settings"):
            if rows:
                await ValueRow.bulk_create(
                    rows, on_conflict=["name"], update_fields=["value", "updated_at", "updated_by"]
                )

    async def remove(self, names: Sequence[str]) -> int:
        """Delete values; return the number of deleted ones."""
        known = [name for name in names if fits_columns(ValueRow, name=name)]
        async with write_transaction("reset the settings"):
            return await ValueRow.filter(name__in=known).delete() if known else 0
