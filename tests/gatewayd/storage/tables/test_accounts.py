import pytest
from tortoise.migrations.autodetector import MigrationAutodetector

from gatewayd.storage.engine.database import Database


async def test_the_migrations_make_what_the_rows_say(database: Database) -> None:
    detector = MigrationAutodetector(database._context.apps, database.location.config()["apps"])
    assert [writer.as_string() for writer in await detector.changes()] == []


async def test_every_column_is_there(database: Database) -> None:
    found = {(row["table"], row["column"]) for row in await database.engine.columns()}
    assert database.expected_columns() <= found
    others = {table for table, _ in found} - {table for table, _ in database.expected_columns()}
    log = set() if database.location.is_sqlite else {"cluster_changes", "cluster_pending", "cluster_version"}
    assert others == {"tortoise_migrations"} | log


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_postgres_orders_texts_by_code_point_and_keeps_json_binary(database: Database) -> None:
    rows = await database.engine.execute_query_dict(
        "SELECT column_name, data_type, collation_name FROM information_schema.columns "
        "WHERE table_name = 'users'"
    )
    kinds = {row["column_name"]: (row["data_type"], row["collation_name"]) for row in rows}
    assert kinds["id"] == kinds["name_key"] == ("character varying", "C")
    assert kinds["profile"] == ("jsonb", None)
