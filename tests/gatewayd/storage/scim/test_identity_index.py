from typing import Any

import pytest

from gatewayd.accounts.records import Email, ProviderIdentity
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import BATCH_SIZE
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.scim import identity_index
from gatewayd.storage.scim.identity_index import keys_of, of_group, of_user, update_lookups
from gatewayd.storage.tables.accounts import (
    GroupExternalIdRow,
    UserEmailRow,
    UserExternalIdRow,
    UserSubjectRow,
)
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import group, user


def test_keys_are_folded_and_empty_for_what_is_absent() -> None:
    person = ProviderIdentity("Ada@X", display_name="ÀDA", given_name="E\u0301va")
    assert keys_of(user("u1", identity=person)) == {
        "user_name_key": "ada@x",
        "display_name_key": "àda",
        "formatted_name_key": "",
        "given_name_key": "éva",
        "family_name_key": "",
    }


def test_the_rows_of_a_user() -> None:
    person = ProviderIdentity("Ada@X", emails=(Email("Ada@X", "Home"), Email("b@x", primary=True)))
    names: dict[str, Any] = {"okta": {"external_id": "E", "sub": "S"}, "odd": "x", "none": {}}
    assert of_user(user("u1", identity=person, scim=names, oauth=names)) == {
        UserEmailRow: [
            {"value_key": "ada@x", "type_key": "home", "is_primary": False},
            {"value_key": "b@x", "type_key": "work", "is_primary": True},
        ],
        UserExternalIdRow: [{"provider": "okta", "external_id": "E"}],
        UserSubjectRow: [{"provider": "okta", "subject": "S"}],
    }


@pytest.mark.parametrize("odd", ["text", ["okta"], [{"okta": {"external_id": "E"}}], 5, True])
def test_a_store_that_is_no_object_has_no_rows(odd: Any) -> None:
    found = of_user(user("u1", scim=odd, oauth=odd))
    assert (found[UserExternalIdRow], found[UserSubjectRow]) == ([], [])
    assert of_group(group("g", scim=odd)) == {GroupExternalIdRow: []}


def test_the_rows_of_a_group() -> None:
    assert of_group(group("g")) == {GroupExternalIdRow: []}
    found = of_group(group("g", scim={"okta": {"external_id": "E"}}))
    assert found == {GroupExternalIdRow: [{"provider": "okta", "external_id": "E"}]}


async def test_only_the_rows_of_the_owner_are_replaced(database: Database) -> None:
    groups = TortoiseGroups()
    one, two = (
        group("g1", scim={"okta": {"external_id": "1"}}),
        group("g2", scim={"okta": {"external_id": "2"}}),
    )
    await groups.add(one)
    await groups.add(two)
    renamed = group("g1", scim={"entra": {"external_id": "3"}})
    async with write_transaction("test"):
        await update_lookups({"group_id": "g1"}, of_group(one), of_group(renamed))
    rows = (
        await GroupExternalIdRow.all().order_by("group_id").values_list("group_id", "provider", "external_id")
    )
    assert [tuple(row) for row in rows] == [("g1", "entra", "3"), ("g2", "okta", "2")]


@pytest.mark.parametrize("count", [BATCH_SIZE, BATCH_SIZE + 1])
async def test_more_rows_than_one_statement_holds(database: Database, count: int) -> None:
    emails = tuple(Email(f"{number}@x") for number in range(count))
    await TortoiseUsers().add(user("u1", identity=ProviderIdentity("a@x", emails=emails)), None)
    assert await UserEmailRow.filter(user_id="u1").count() == count


async def test_what_has_not_changed_is_not_written() -> None:
    # There is no database here.
    rows = of_user(user("u1"))
    await identity_index.update_lookups({"user_id": "u1"}, rows, rows)
