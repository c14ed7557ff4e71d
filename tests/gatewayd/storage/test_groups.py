import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gatewayd.accounts.records import MembershipSource, Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.groups import BATCH_SIZE, TortoiseGroups
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import group, user
from tests.gatewayd.storage.conftest import Stores

FULL = group(
    "g1",
    name="Étude",
    description="d" * 10_000,
    user_id="u1",
    permissions={"features": {"api_keys": True}},
    data={"a": ["1"]},
    meta={"b": None},
    scim={"okta": {"external_id": "0"}, "odd": 1},
    updated_at=2,
    created_at=1,
    modified_us=2_000_000,
)


USERS = ("u1", "u2", "u3")


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
    assert list(await stores.groups.list_member_ids("g1")) == []
    assert await stores.groups.list_group_ids([]) == {}
    assert not await stores.groups.change(FULL)
    assert not await stores.groups.remove("g1")


async def test_names_are_taken_in_any_case(stores: Stores) -> None:
    await stores.groups.add(FULL)
    await stores.groups.add(group("g2"))
    with pytest.raises(GatewayError) as caught:
        await stores.groups.add(group("g3", name="ÉTUDE"))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.CONFLICT, "name")
    with pytest.raises(GatewayError, match="name is taken"):
        await stores.groups.change(group("g2", name="étude"))
    assert await stores.groups.change(replace(FULL, name="ÉTUDE"))


async def test_a_change_writes_every_field(stores: Stores) -> None:
    await stores.groups.add(group("g1"))
    assert await stores.groups.change(FULL)
    assert await stores.groups.find("g1") == FULL


async def test_external_ids_are_taken_for_one_provider(stores: Stores) -> None:
    await stores.groups.add(FULL)
    await stores.groups.add(group("g2", scim={"entra": {"external_id": "0"}}))
    await stores.groups.add(group("g3", scim={"okta": {"external_id": "O"}}))
    same = {"okta": {"external_id": "0"}}
    for attempt in (stores.groups.add(group("g4", scim=same)), stores.groups.change(group("g3", scim=same))):
        with pytest.raises(GatewayError, match="is taken") as caught:
            await attempt
        error = caught.value
        assert (error.kind, error.code, error.param) == (ErrorKind.CONFLICT, "taken", "external_id")
    assert [each.id for each in await stores.groups.list()] == ["g2", "g3", "g1"]
    await stores.groups.change(replace(FULL, scim=None))
    assert await stores.groups.change(group("g3", scim=same))
    await stores.groups.remove("g3")
    assert await stores.groups.change(FULL)


async def test_of_sixteen_racing_groups_with_one_external_id_one_wins(stores: Stores) -> None:
    same = {"okta": {"external_id": "0"}}
    results = await asyncio.gather(
        *(stores.groups.add(group(f"g{number}", scim=same)) for number in range(16)), return_exceptions=True
    )
    assert results.count(None) == 1
    lost = [(result.kind, result.code) for result in results if isinstance(result, GatewayError)]
    assert lost == [(ErrorKind.CONFLICT, "taken")] * 15
    assert len(await stores.groups.list()) == 1


async def test_a_touch_writes_when_a_group_changed(stores: Stores) -> None:
    await stores.groups.add(group("g", description="d"))
    await stores.groups.touch("g", at=5, modified_us=5_000_001)
    await stores.groups.touch("gone", at=5, modified_us=5_000_001)
    assert await stores.groups.find("g") == group("g", description="d", updated_at=5, modified_us=5_000_001)


async def test_only_existing_users_who_are_no_members_are_added(stores: Stores) -> None:
    await add_users(stores, "u1", "u2", "u3")
    await stores.groups.add(group("g"))
    assert (
        await stores.groups.add_members("g", ["u1", "u1", "gone"], source=MembershipSource.MANUAL, at=1) == 1
    )
    assert await stores.groups.add_members("g", ["u2", "u1"], source=MembershipSource.MANUAL, at=2) == 1
    assert await stores.groups.add_members("g", [], source=MembershipSource.SCIM, at=2) == 0
    assert await stores.groups.count_members(["g"]) == {"g": 2}
    assert list(await stores.groups.list_member_ids("g")) == ["u1", "u2"]
    assert await stores.groups.remove_members("g", ["u1", "u3", "gone"]) == 1
    assert list(await stores.groups.list_member_ids("g")) == ["u2"]


async def members(stores: Stores, source: MembershipSource) -> set[str]:
    sources = await stores.groups.list_sources("g", USERS)
    return {user_id for user_id, named in sources.items() if source in named}


async def test_a_member_of_several_sources_counts_once(stores: Stores) -> None:
    await add_users(stores, "u1", "u2")
    await stores.groups.add(group("g"))
    assert await stores.groups.list_sources("g", USERS) == {}
    for source in (MembershipSource.MANUAL, MembershipSource.SCIM):
        assert await stores.groups.add_members("g", ["u1"], source=source, at=1) == 1
    assert await stores.groups.add_members("g", ["u1", "u2"], source=MembershipSource.SCIM, at=2) == 1
    assert await stores.groups.list_sources("g", USERS) == {
        "u1": [MembershipSource.MANUAL, MembershipSource.SCIM],
        "u2": [MembershipSource.SCIM],
    }
    assert list(await stores.groups.list_member_ids("g")) == ["u1", "u2"]
    assert await stores.groups.list_group_ids(["u1", "u2"]) == {"u1": ["g"], "u2": ["g"]}
    assert await stores.groups.count_members(["g"]) == {"g": 2}
    assert await stores.groups.count_members(["g"], source=MembershipSource.MANUAL) == {"g": 1}
    assert await stores.groups.count_members(["g", "g", "\ud800"], source=MembershipSource.SCIM) == {"g": 2}
    assert await stores.groups.count_by_source("g") == {MembershipSource.MANUAL: 1, MembershipSource.SCIM: 2}
    assert await stores.groups.list_sources("g", ["u2", "gone", "\ud800"]) == {"u2": [MembershipSource.SCIM]}


async def test_members_who_are_in_no_other_group_are_counted(stores: Stores) -> None:
    await add_users(stores, "u1", "u2", "u3")
    await stores.users.add(user("root", role=Role.ADMIN), None)
    for name, members in {"g": ["u1", "u2", "root"], "h": ["u2", "u3"], "empty": []}.items():
        await stores.groups.add(group(name))
        await stores.groups.add_members(name, members, source=MembershipSource.MANUAL, at=1)
    await stores.groups.add_members("g", ["u1"], source=MembershipSource.SCIM, at=1)
    outside = stores.groups.count_members_outside
    assert [await outside("g", others) for others in ([], ["h"], ["h", "empty", "gone"], ["g"])] == [
        *(2, 1, 1, 0),
    ]
    assert await outside("empty", []) == 0


async def test_a_source_calls_its_members_as_it_likes(stores: Stores) -> None:
    await add_users(stores, "u1", "u2", "u3")
    await stores.groups.add(group("g"))

    async def add(
        user_ids: Sequence[str], source: MembershipSource = MembershipSource.SCIM, **displays: str
    ) -> int:
        return await stores.groups.add_members("g", user_ids, source=source, at=1, displays=displays)

    assert await add(["u1", "u2"], u1="One", gone="x", u3="no member") == 2
    shown = {each.id: each.name for each in await stores.users.list_by_ids(["u1", "u2"])}
    assert await add(["u1", "u2"]) == 0
    assert await add(["u1", "u2"], u1="One", u2=shown["u2"]) == 0
    assert await add(["u1", "u2", "u3"], u1="1", u2="Two") == 3
    assert await add(["u1", "u2"], u1="1", u2="Two") == 0
    assert await add(["u1"], MembershipSource.MANUAL, u1="Other") == 1
    assert await add(["u1"], u1="1") == 0
    assert await stores.groups.remove_members("g", ["u1"], source=MembershipSource.SCIM) == 1
    assert await add(["u1"], u1="1") == 1


async def test_each_source_takes_away_its_own_members(stores: Stores) -> None:
    await add_users(stores, "u1", "u2", "u3")
    await stores.groups.add(group("g"))
    await stores.groups.add_members("g", ["u1", "u2"], source=MembershipSource.MANUAL, at=1)
    await stores.groups.add_members("g", ["u1", "u2", "u3"], source=MembershipSource.SCIM, at=1)
    assert await stores.groups.remove_members("g", ["u1"], source=MembershipSource.OAUTH) == 0
    assert await stores.groups.remove_members("g", ["u1", "gone"], source=MembershipSource.SCIM) == 1
    assert await members(stores, MembershipSource.SCIM) == {"u2", "u3"}
    assert await members(stores, MembershipSource.MANUAL) == {"u1", "u2"}
    assert await stores.groups.remove_members("g", ["u1", "u2"]) == 2
    assert await stores.groups.list_sources("g", USERS) == {"u3": [MembershipSource.SCIM]}


async def test_a_source_keeps_only_these_members(stores: Stores) -> None:
    await add_users(stores, "u1", "u2", "u3")
    await stores.groups.add(group("g"))
    await stores.groups.add_members("g", ["u1"], source=MembershipSource.MANUAL, at=1)
    await stores.groups.add_members("g", ["u1", "u2", "u3"], source=MembershipSource.SCIM, at=1)
    assert await stores.groups.keep_members("g", ["u2", "gone"], source=MembershipSource.SCIM) == 2
    assert await members(stores, MembershipSource.SCIM) == {"u2"}
    assert await stores.groups.keep_members("g", ["u2"], source=MembershipSource.SCIM) == 0
    assert await stores.groups.keep_members("g", [], source=MembershipSource.SCIM) == 1
    assert await stores.groups.list_sources("g", USERS) == {"u1": [MembershipSource.MANUAL]}


async def test_groups_are_listed_by_name_and_their_members_counted(stores: Stores) -> None:
    await add_users(stores, "u1", "u2")
    for group_id in ("c", "a", "b"):
        await stores.groups.add(group(group_id))
    await stores.groups.add_members("c", ["u1", "u2"], source=MembershipSource.MANUAL, at=1)
    await stores.groups.add_members("a", ["u2"], source=MembershipSource.MANUAL, at=1)
    assert [each.id for each in await stores.groups.list()] == ["a", "b", "c"]
    assert [each.id for each in await stores.groups.list(user_id="u1")] == ["c"]
    assert await stores.groups.count_members(["a", "b", "c", "gone", "\x00"]) == {"a": 1, "c": 2}
    assert await stores.groups.count_members([]) == {}


async def test_the_groups_of_many_users_are_found_together(stores: Stores) -> None:
    await add_users(stores, "u1", "u2", "u3")
    for group_id in ("a", "b"):
        await stores.groups.add(group(group_id))
        await stores.groups.add_members(group_id, ["u1"], source=MembershipSource.MANUAL, at=1)
    await stores.groups.add_members("b", ["u2"], source=MembershipSource.MANUAL, at=1)
    found = await stores.groups.list_group_ids(["u1", "u2", "u3", "gone"])
    assert {user_id: sorted(ids) for user_id, ids in found.items()} == {"u1": ["a", "b"], "u2": ["b"]}


async def test_a_removed_group_takes_its_memberships_along(stores: Stores) -> None:
    await add_users(stores, "u1")
    await stores.groups.add(group("g"))
    await stores.groups.add_members("g", ["u1"], source=MembershipSource.MANUAL, at=1)
    assert await stores.groups.remove("g")
    assert await stores.groups.list_group_ids(["u1"]) == {}
    assert await stores.users.count() == 1


async def test_members_cannot_be_added_to_a_group_that_is_gone(database: Database) -> None:
    with pytest.raises(GatewayError) as caught:
        await TortoiseGroups().add_members("gone", ["u1"], source=MembershipSource.MANUAL, at=1)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_members_are_listed_by_name_in_any_case(database: Database) -> None:
    for user_id, name in (("u1", "b"), ("u2", "A"), ("u3", "a")):
        await TortoiseUsers().add(user(user_id, name=name), None)
    groups = TortoiseGroups()
    await groups.add(group("g"))
    await groups.add_members("g", ["u1", "u2", "u3"], source=MembershipSource.MANUAL, at=1)
    assert list(await groups.list_member_ids("g")) == ["u2", "u3", "u1"]


async def test_racing_additions_count_each_member_once(database: Database) -> None:
    ids = [f"u{number}" for number in range(5)]
    for user_id in ids:
        await TortoiseUsers().add(user(user_id), None)
    groups = TortoiseGroups()
    await groups.add(group("g"))
    counts = await asyncio.gather(
        *(groups.add_members("g", ids, source=MembershipSource.SCIM, at=1) for _ in range(8))
    )
    assert sum(counts) == len(ids)


async def test_racing_changes_of_the_members_do_not_wait_in_a_circle(database: Database) -> None:
    ids = [f"u{number}" for number in range(20)]
    for user_id in ids:
        await TortoiseUsers().add(user(user_id), None)
    groups = TortoiseGroups()
    await groups.add(group("g"))
    for _ in range(5):
        await asyncio.gather(
            groups.add_members("g", ids, source=MembershipSource.SCIM, at=1),
            groups.add_members("g", ids[::-1], source=MembershipSource.SCIM, at=1),
            groups.remove_members("g", ids[::-1]),
            groups.keep_members("g", ids[5:10], source=MembershipSource.SCIM),
            *(TortoiseUsers().change(user(user_id, name="new")) for user_id in ids[:3]),
        )
    assert set(await groups.list_member_ids("g")) <= set(ids)


async def test_adding_to_a_large_group_takes_as_many_statements_as_to_a_small_one(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    await TortoiseUsers().add(user("u1"), None)
    await TortoiseUsers().add(user("u2"), None)
    groups = TortoiseGroups()
    await groups.add(group("g"))
    counts = []
    for user_id in ("u1", "u2"):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "tortoise.db_client"):
            await groups.add_members("g", [user_id], source=MembershipSource.SCIM, at=1)
        counts.append(len([each for each in caplog.records if each.name == "tortoise.db_client"]))
    assert counts[0] == counts[1] <= 3


async def test_more_users_than_one_statement_holds(database: Database) -> None:
    groups = TortoiseGroups()
    await groups.add(group("g"))
    await TortoiseUsers().add(user("u1"), None)
    many = [*(f"gone{number}" for number in range(2 * BATCH_SIZE)), "u1", "bad\x00"]
    assert await groups.add_members("g", many, source=MembershipSource.SCIM, at=1) == 1
    assert await groups.list_group_ids(many) == {"u1": ["g"]}
    assert await groups.keep_members("g", many, source=MembershipSource.SCIM) == 0
    assert await groups.remove_members("g", many) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "\x00"),
        ("name", "n" * 256),
        ("description", "\x00"),
        ("data", {"a": "\x00"}),
        ("scim", {"\x00": 1}),
    ],
)
async def test_what_cannot_be_stored_is_refused_by_name(
    database: Database, field: str, value: object
) -> None:
    with pytest.raises(GatewayError) as caught:
        await TortoiseGroups().add(group("g", **{field: value}))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, field)
    assert await TortoiseGroups().list() == []


@pytest.mark.parametrize("display", ["x" * 256, "\x00", "\ud800"])
async def test_what_a_member_cannot_be_called_is_refused(database: Database, display: str) -> None:
    groups = TortoiseGroups()
    await groups.add(group("g"))
    await TortoiseUsers().add(user("u1"), None)
    with pytest.raises(GatewayError) as caught:
        await groups.add_members("g", ["u1"], source=MembershipSource.SCIM, at=1, displays={"u1": display})
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "display")
    assert await groups.list_sources("g", USERS) == {}


async def test_what_cannot_be_stored_is_not_found(database: Database) -> None:
    groups = TortoiseGroups()
    assert await groups.find("\x00") is None
    assert await groups.find_by_name("\x00") is None
    assert await groups.find_by_name("x" * 5000) is None
    assert await groups.list_member_ids("\x00") == []
    assert await groups.count_by_source("\x00") == {}
    assert await groups.count_members_outside("\x00", []) == 0
    assert await groups.list_sources("\x00", USERS) == {}
    await groups.touch("\x00", at=1, modified_us=1)
    assert not await groups.remove("\x00")


@pytest.mark.parametrize("group_id", ["gone", "\x00"])
async def test_a_group_that_is_not_there_gets_no_members(stores: Stores, group_id: str) -> None:
    await stores.users.add(user("u1"), None)
    for attempt in (
        stores.groups.add_members(group_id, ["u1"], source=MembershipSource.MANUAL, at=1),
        stores.groups.keep_members(group_id, [], source=MembershipSource.SCIM),
        stores.groups.remove_members(group_id, ["u1"]),
    ):
        with pytest.raises(GatewayError) as caught:
            await attempt
        assert caught.value.kind is ErrorKind.NOT_FOUND
    assert await stores.groups.list_group_ids(["u1"]) == {}
