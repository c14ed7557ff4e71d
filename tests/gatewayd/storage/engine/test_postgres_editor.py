"""Triggers outlive the change of a column that they name."""

from typing import Any

from tortoise.connection import get_connection

from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.fields import NameColumn
from gatewayd.storage.engine.location import parse
from gatewayd.storage.tables.accounts import UserRow
from tests.fakes.storage.postgres import Postgres

DEFINITIONS = "SELECT pg_get_triggerdef(oid) AS it FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgname"


async def test_a_watched_column_gets_another_type(postgres: Postgres) -> None:
    async with Database.open(parse(postgres.migrated_database(), pool_size=2)) as database:
        client: Any = get_connection(database.engine.connection_name)
        before = await client.execute_query_dict(DEFINITIONS)
        old, new = UserRow._meta.fields_map["username"], NameColumn(max_length=300, null=True, unique=True)
        new.model_field_name = "username"
        async with database.engine.migrating() as transaction:
            editor = database.engine.schema_editor(transaction)
            await editor._alter_field(UserRow, old, new)
        assert await client.execute_query_dict(DEFINITIONS) == before
        assert any("cluster_user_update" in row["it"] for row in before)
        [column] = await client.execute_query_dict(
            "SELECT character_maximum_length AS it FROM information_schema.columns"
            " WHERE table_name = 'users' AND column_name = 'username'"
        )
        assert column["it"] == 300
