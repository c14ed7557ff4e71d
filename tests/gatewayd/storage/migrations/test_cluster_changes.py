"""The triggers of the change log look at every column that a node may remember."""

import importlib
from collections.abc import Mapping

import pytest

from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import parse
from tests.fakes.storage.postgres import Postgres

MIGRATION = importlib.import_module("gatewayd.storage.migrations.0021_cluster_changes")

# Columns that are no part of what is remembered, are derived from others, or never change.
TIMES = {"created_at", "updated_at"}
UNWATCHED: Mapping[str, set[str]] = {
    "users": {
        *("id", "password_hash", "last_active_at", "modified_us", "name_key", "user_name_key"),
        *("display_name_key", "formatted_name_key", "given_name_key", "family_name_key"),
    },
    "api_keys": {"id", "name", "name_key", "prefix", "last_used_at"},
    "groups": {
        *("id", "name", "name_key", "description", "user_id", "data", "meta", "scim", "modified_us"),
    },
    "group_members": {"id", "source", "display"},
    "stored_values": {"updated_by"},
    "access_grants": {"id"},
    "plugins": {"number", "problem"},
    "limits": {"id"},
}


@pytest.mark.parametrize(
    ("table", "watched"), [(each.table, each.columns) for each in MIGRATION.WATCHED if each.columns]
)
async def test_every_column_is_watched_or_of_no_interest(
    postgres: Postgres, table: str, watched: tuple[str, ...]
) -> None:
    columns = set(watched)
    async with Database.open(parse(postgres.migrated_database(), pool_size=2)) as database:
        found = {row["column"] for row in await database.engine.columns() if row["table"] == table}
    assert columns <= found
    assert found - columns - TIMES == UNWATCHED.get(table, set())


def test_only_updates_of_watched_columns_run_a_trigger() -> None:
    [users] = [each for each in MIGRATION.WATCHED if each.table == "users" and each.columns]
    [update] = [each for each in MIGRATION.trigger_statements(users) if "UPDATE" in each]
    assert "last_active_at" not in update
    assert "UPDATE OF email, username" in update
    assert all("AFTER UPDATE OF active, role, token_version" in each for each in MIGRATION.user_statements())
