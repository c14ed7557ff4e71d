from typing import Any

from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.upserts import BATCH_SIZE, insert_rows, upsert_rows
from gatewayd.storage.tables.accounts import ValueRow


def value(name: str, text: str = "1", at: int = 0) -> dict[str, Any]:
    return {"name": name, "value": text, "updated_at": at, "updated_by": "a"}


async def test_rows_are_inserted_or_replaced_and_told(database: Database) -> None:
    await insert_rows(ValueRow, [value("a"), value("b")])
    told = await upsert_rows(
        ValueRow, [value("b", "[2]", 5), value("c")], ["name"], returning="name, updated_at"
    )
    assert sorted(tuple(row.values()) for row in told) == [("b", 5), ("c", 0)]
    rows: Any = await ValueRow.all().order_by("name").values_list("name", "value", "updated_at")
    assert rows == [("a", "1", 0), ("b", "[2]", 5), ("c", "1", 0)]


async def test_no_rows_are_no_statement(database: Database) -> None:
    await insert_rows(ValueRow, [])
    assert await upsert_rows(ValueRow, [], ["name"], returning="name") == []
    assert await ValueRow.all().count() == 0


async def test_more_than_a_batch_is_all_written(database: Database) -> None:
    records = [value(f"{number:04}") for number in range(2 * BATCH_SIZE + 1)]
    told = await upsert_rows(ValueRow, records, ["name"], returning="name")
    assert sorted(row["name"] for row in told) == [record["name"] for record in records]
    assert await ValueRow.all().count() == len(records)
