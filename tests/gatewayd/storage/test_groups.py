import asyncio
from dataclasses import replace

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.storage.database import Database
from gatewayd.storage.groups import BATCH, TortoiseGroups
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.records import group, user
from tests.gatewayd.storage.conftest import Stores

FULL = group(
    "g1",
    name="Étude",
    description="d" * 10_000,
    user_id="u1",
    permissions={"features": {"api_keys": True}},
    data={"a": ["1"]},
    meta={"b": None},
    updated_at=2,
    created_at=1,
)


async def add_users(stores: Stores, *user_ids: str) -> None:
    for user_id in user_ids:
        await stores.users.add(user(user_id), None)


async def test_a_group_comes_back_as_it_was(stores: Stores) -> None:
    await stores.groups.add(FULL)
    assert await stores.groups.find("g1") == FULL
    assert await stores.groups.find_by_name("éTUDE") == FULL
    assert await stores.groups.list() == [FULL]


async def test_what_is_absent_is_none_or_false(stores: Stores) -> None:
    assert await stores.groups.find("g1") is None
    assert await stores.groups.find_by_name("x") is None
    assert await stores.groups.list() == []
    assert await stores.groups.list(user_id="u1") == []
    assert await stores.groups.list_members("g1") == []
    assert await stores.groups.list_group_ids([]) == {}
    assert not await stores.groups.change(FULL)
    assert not await stores.groups.remove("g1")
    assert await stores.groups.remove_members("g1", ["u1"]) == 0


async def test_names_are_taken_in_any_case(stores: Stores) -> None:
    await stores.groups.add(FULL)
    await stores.groups.add(group("g2"))
    with pytest.raises(GatewayError) as caught:
        await stores.groups.add(group("g3", name="ÉTUDE"))
    assert (caught.value.kind, caught.value.param) == (Kind.CONFLICT, "name")
    with pytest.raises(GatewayError, match="name is taken"):
        await stores.groups.change(group("g2", name="étude"))
    assert await stores.groups.change(replace(FULL, name="ÉTUDE"))


async def test_a_change_writes_every_field(stores: Stores) -> None:
    await stores.groups.add(group("g1"))
    assert await stores.groups.change(FULL)
    assert await stores.groups.find("g1") == FULL


async def test_only_existing_users_who_are_no_members_are_added(stores: Stores) -> None:
    await add_users(stores, "u1", "u2", "u3")
    await stores.groups.add(group("g"))
    assert await stores.groups.add_members("g", ["u1", "u1", "gone"], source="manual", at=1) == 1
    assert await stores.groups.add_members("g", ["u1", "u2"], source="scim", at=2) == 1
    assert await stores.groups.add_members("g", [], source="scim", at=2) == 0
    found = await stores.groups.find("g")
    assert found is not None
    assert found.member_count == 2
    assert [each.id for each in await stores.groups.list_members("g")] == ["u1", "u2"]
    assert await stores.groups.remove_members("g", ["u1", "u3", "gone"]) == 1
    assert [each.id for each in await stores.groups.list_members("g")] == ["u2"]


async def test_groups_are_listed_by_name_with_their_counts(stores: Stores) -> None:
    await add_users(stores, "u1", "u2")
    for group_id in ("c", "a", "b"):
        await stores.groups.add(group(group_id))
    await stores.groups.add_members("c", ["u1", "u2"], source="manual", at=1)
    await stores.groups.add_members("a", ["u2"], source="manual", at=1)
    counts = [(each.id, each.member_count) for each in await stores.groups.list()]
    assert counts == [("a", 1), ("b", 0), ("c", 2)]
    counts = [(each.id, each.member_count) for each in await stores.groups.list(user_id="u1")]
    assert counts == [("c", 2)]


async def test_the_groups_of_many_users_are_found_together(stores: Stores) -> None:
    await add_users(stores, "u1", "u2", "u3")
    for group_id in ("a", "b"):
        await stores.groups.add(group(group_id))
        await stores.groups.add_members(group_id, ["u1"], source="manual", at=1)
    await stores.groups.add_members("b", ["u2"], source="manual", at=1)
    found = await stores.groups.list_group_ids(["u1", "u2", "u3", "gone"])
    assert {user_id: sorted(ids) for user_id, ids in found.items()} == {"u1": ["a", "b"], "u2": ["b"]}


async def test_a_removed_group_takes_its_memberships_along(stores: Stores) -> None:
    await add_users(stores, "u1")
    await stores.groups.add(group("g"))
    await stores.groups.add_members("g", ["u1"], source="manual", at=1)
    assert await stores.groups.remove("g")
    assert await stores.groups.list_group_ids(["u1"]) == {}
    assert await stores.users.count() == 1


async def test_members_cannot_be_added_to_a_group_that_is_gone(database: Database) -> None:
    with pytest.raises(GatewayError) as caught:
        await TortoiseGroups().add_members("gone", ["u1"], source="manual", at=1)
    assert caught.value.kind is Kind.NOT_FOUND


async def test_members_are_listed_by_name_in_any_case(database: Database) -> None:
    for user_id, name in (("u1", "b"), ("u2", "A"), ("u3", "a")):
        await TortoiseUsers().add(user(user_id, name=name), None)
    groups = TortoiseGroups()
    await groups.add(group("g"))
    await groups.add_members("g", ["u1", "u2", "u3"], source="manual", at=1)
    assert [each.id for each in await groups.list_members("g")] == ["u2", "u3", "u1"]


async def test_racing_additions_count_each_member_once(database: Database) -> None:
    ids = [f"u{number}" for number in range(5)]
    for user_id in ids:
        await TortoiseUsers().add(user(user_id), None)
    groups = TortoiseGroups()
    await groups.add(group("g"))
    counts = await asyncio.gather(*(groups.add_members("g", ids, source="scim", at=1) for _ in range(8)))
    assert sum(counts) == len(ids)


async def test_more_users_than_one_statement_holds(database: Database) -> None:
    groups = TortoiseGroups()
    await groups.add(group("g"))
    await TortoiseUsers().add(user("u1"), None)
    many = [*(f"gone{number}" for number in range(2 * BATCH)), "u1", "bad\x00"]
    assert await groups.add_members("g", many, source="scim", at=1) == 1
    assert await groups.list_group_ids(many) == {"u1": ["g"]}
    assert await groups.remove_members("g", many) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "\x00"), ("name", "n" * 256), ("description", "\x00"), ("data", {"a": "\x00"})],
)
async def test_what_cannot_be_stored_is_refused_by_name(
    database: Database, field: str, value: object
) -> None:
    with pytest.raises(GatewayError) as caught:
        await TortoiseGroups().add(group("g", **{field: value}))
    assert (caught.value.kind, caught.value.param) == (Kind.INVALID_REQUEST, field)
    assert await TortoiseGroups().list() == []


async def test_what_cannot_be_stored_is_not_found(database: Database) -> None:
    groups = TortoiseGroups()
    assert await groups.find("\x00") is None
    assert await groups.find_by_name("\x00") is None
    assert await groups.find_by_name("x" * 5000) is None
    assert await groups.list_members("\x00") == []
    assert not await groups.remove("\x00")
    assert await groups.remove_members("\x00", ["u"]) == 0
    with pytest.raises(GatewayError) as caught:
        await groups.add_members("\x00", ["u"], source="manual", at=1)
    assert caught.value.kind is Kind.NOT_FOUND


async def test_a_group_that_is_not_there_gets_no_members(stores: Stores) -> None:
    await stores.users.add(user("u1"), None)
    with pytest.raises(GatewayError) as caught:
        await stores.groups.add_members("gone", ["u1"], source="manual", at=1)
    assert caught.value.kind is Kind.NOT_FOUND
    assert await stores.groups.list_group_ids(["u1"]) == {}
