"""Tests for gatewayd.storage.upkeep.person_rows: no table with a person in it is forgotten."""

from tortoise import Tortoise

from gatewayd.storage.engine.database import Database
from gatewayd.storage.tables.accounts import ResponseIdRow
from gatewayd.storage.upkeep import person_rows
from gatewayd.storage.upkeep.person_rows import (
    CASCADED,
    DELETED,
    RENAMED,
    SEPARATE,
    TortoisePersonRows,
)

WITH_THEIR_ROW = {"user_emails", "user_external_ids", "user_subjects", "shared_chats"}
"""Tables whose rows go with that of an account or of a chat."""


async def test_each_table_with_a_user_is_counted(database: Database) -> None:
    known = {each.table for each in (*DELETED, *CASCADED, *SEPARATE, *RENAMED)}
    apps = Tortoise.apps
    assert apps is not None
    tables = {
        model._meta.db_table
        for model in apps["gatewayd"].values()
        if {"user", "user_id", "principal_id", "subject_id"} & set(model._meta.fields_map)
    }
    assert tables - known == WITH_THEIR_ROW
    counts = await TortoisePersonRows().counts("u1", "")
    assert set(counts.values()) == {0}
    assert len(counts) == len({*DELETED, *CASCADED, *SEPARATE, *RENAMED})


async def test_many_rows_go_in_several_transactions(database: Database) -> None:
    rows = TortoisePersonRows()
    await ResponseIdRow.bulk_create(
        ResponseIdRow(digest=f"{place}", user_id=f"u{place % 2}", created_at=1)
        for place in range(4 * person_rows.PAGE_ROWS)
    )
    await rows.remove("u0", "")
    assert (await rows.counts("u0", ""))["ids of responses"] == 0
    assert (await rows.counts("u1", ""))["ids of responses"] == 2 * person_rows.PAGE_ROWS
    assert not rows.may_be_id("")
    assert not rows.may_be_id("x" * 65)
