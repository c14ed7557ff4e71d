import asyncio
import logging
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.records import Email, MembershipSource, ProviderIdentity, ProviderRole, Role, User
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import group, key, user
from tests.gatewayd.storage.conftest import Stores

FULL = user(
    "u1",
    name="Ada Löve 🦊",
    role=Role.ADMIN,
    active=False,
    username="ada",
    profile_image_url="data:image/png;base64," + "A" * 100_000,
    token_version=7,
    profile={"bio": "x", "born": None, "size": 1.0, "tags": ["1", "é", {}]},
    settings={"ui": {"a": [1, 2**63, -1]}},
    info={},
    oauth={"google": {"sub": "1"}},
    scim={"okta": {"external_id": "0"}},
    last_active_at=3,
    updated_at=2,
    created_at=1,
    modified_us=2_000_000,
)
ADA = ProviderIdentity(
    user_name="Ada.Löve@Example.org",
    display_name="Ada L",
    formatted_name="Ada Löve",
    given_name="Ada",
    family_name=None,
    emails=(Email("u1@Example.org", primary=True), Email("ada@home.example", "Home")),
    roles=(ProviderRole("admin", "Administrator", primary=True), ProviderRole(display="Ä", type="x")),
)
PROVISIONED = replace(FULL, identity=ADA)
OKTA = {"okta": {"external_id": "0"}}


async def names(stores: Stores, **wanted: Any) -> list[str]:
    found, _ = await stores.users.list(**wanted)
    return [each.id for each in found]


async def test_a_user_comes_back_as_it_was(stores: Stores) -> None:
    await stores.users.add(FULL, "hash")
    assert await stores.users.find("u1") == FULL
    assert await stores.users.find_by_email("u1@example.org") == FULL
    assert await stores.users.find_password_hash("u1") == "hash"
    assert await stores.users.list() == ([FULL], 1)


async def test_what_a_provider_said_comes_back_as_it_was(stores: Stores) -> None:
    await stores.users.add(PROVISIONED, None)
    assert await stores.users.find("u1") == PROVISIONED
    assert await stores.users.change(FULL)
    assert await stores.users.find("u1") == FULL
    bare = replace(PROVISIONED, identity=ProviderIdentity(user_name="Ada@x"))
    assert await stores.users.change(bare)
    assert await stores.users.find("u1") == bare


@pytest.mark.parametrize(
    ("second", "field"),
    [
        ({"identity": ProviderIdentity("ADA.LÖVE@example.org")}, "user_name"),
        ({"identity": ProviderIdentity("Ada.Lo\u0308ve@example.org")}, "user_name"),
        ({"email": "ada.löve@example.org"}, "email"),
        ({"scim": {"x": {}, **OKTA}}, "external_id"),
        ({"oauth": {"google": {"sub": "1"}}}, "subject"),
    ],
    ids=str,
)
async def test_what_a_provider_said_is_taken(stores: Stores, second: dict[str, Any], field: str) -> None:
    await stores.users.add(PROVISIONED, None)
    await stores.users.add(user("u2"), None)
    for attempt in (stores.users.add(user("u3", **second), None), stores.users.change(user("u2", **second))):
        with pytest.raises(GatewayError, match="is taken") as caught:
            await attempt
        error = caught.value
        assert (error.kind, error.code, error.param) == (ErrorKind.CONFLICT, "taken", field)
    assert await stores.users.list(order_by="email") == ([PROVISIONED, user("u2")], 2)


async def test_what_is_given_up_is_free(stores: Stores) -> None:
    await stores.users.add(PROVISIONED, None)
    await stores.users.change(replace(PROVISIONED, scim=None, oauth={}, identity=ProviderIdentity()))
    other = user("u2", scim=FULL.scim, oauth=FULL.oauth, identity=ADA)
    await stores.users.add(other, None)
    await stores.users.remove("u2")
    assert await stores.users.change(PROVISIONED)


async def test_odd_shapes_are_kept_and_looked_up_by_nothing(stores: Stores) -> None:
    odd = {"a": 1, "b": {}, "c": {"external_id": 5, "sub": []}, "d": {"external_id": "", "sub": ""}}
    for user_id in ("u1", "u2"):
        await stores.users.add(user(user_id, scim=odd, oauth=odd), None)
    found = await stores.users.find("u2")
    assert found is not None
    assert (found.scim, found.oauth) == (odd, odd)


async def rows_of(database: Database, table: str, *columns: str) -> list[tuple[Any, ...]]:
    query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY id"
    rows = await database.engine.execute_query_dict(query)
    return [tuple(row.values()) for row in rows]


KEYS = [
    f"{name}_key" for name in ("user_name", "display_name", "formatted_name", "given_name", "family_name")
]


async def test_keys_and_addresses_follow_what_is_shown(database: Database) -> None:
    users = TortoiseUsers()
    columns = ("value_key", "type_key", "is_primary")
    made = replace(FULL, identity=ProviderIdentity())
    await users.add(made, None)
    by_hand = ("u1@example.org", "ada löve 🦊", "ada löve 🦊", "ada", "löve 🦊")
    assert await rows_of(database, "users", *KEYS) == [by_hand]
    assert await rows_of(database, "user_emails", *columns) == [("u1@example.org", "work", True)]
    await users.change(PROVISIONED)
    assert await rows_of(database, "users", *KEYS) == [
        ("ada.löve@example.org", "ada l", "ada löve", "ada", "")
    ]
    assert await rows_of(database, "user_emails", *columns) == [
        ("u1@example.org", "work", True),
        ("ada@home.example", "home", False),
    ]
    await users.change(made)
    assert await rows_of(database, "users", *KEYS) == [by_hand]
    assert await rows_of(database, "user_emails", *columns) == [("u1@example.org", "work", True)]
    assert await rows_of(database, "user_external_ids", "provider", "external_id") == [("okta", "0")]
    assert await rows_of(database, "user_subjects", "provider", "subject") == [("google", "1")]
    await users.remove("u1")
    for table in ("user_emails", "user_external_ids", "user_subjects"):
        assert await rows_of(database, table, "id") == []


async def test_an_ordinary_write_costs_few_statements(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    async def count(change: User) -> int:
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "tortoise.db_client"):
            await (users.change(change) if added else users.add(change, None))
        return len([each for each in caplog.records if each.name == "tortoise.db_client"])

    users, added = TortoiseUsers(), False
    transaction = 2 if not database.location.is_sqlite else 0
    provisioned = replace(PROVISIONED, oauth=None)
    assert await count(provisioned) - transaction <= 3
    added = True
    assert await count(replace(provisioned, name="New", active=True)) - transaction <= 2
    assert await count(replace(provisioned, scim={"okta": {"external_id": "1"}})) - transaction <= 4


async def test_what_is_absent_is_none_or_false(stores: Stores) -> None:
    assert await stores.users.find("u1") is None
    assert await stores.users.find_by_email("u1@example.org") is None
    assert await stores.users.find_password_hash("u1") is None
    assert await stores.users.find_first_admin_id() is None
    assert await stores.users.list() == ([], 0)
    assert not await stores.users.change(FULL)
    assert not await stores.users.set_password_hash("u1", "hash")
    assert not await stores.users.remove("u1")
    assert await stores.users.count() == 0


@pytest.mark.parametrize(
    ("second", "field"),
    [
        (user("u1", email="other@example.org"), "id"),
        (user("u2", email="u1@example.org"), "email"),
        (user("u2", username="ada"), "username"),
    ],
)
async def test_taken_values_conflict_and_change_nothing(stores: Stores, second: Any, field: str) -> None:
    await stores.users.add(FULL, "hash")
    with pytest.raises(GatewayError) as caught:
        await stores.users.add(second, None)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.CONFLICT, field)
    assert await stores.users.list() == ([FULL], 1)


async def test_a_change_to_a_taken_address_conflicts(stores: Stores) -> None:
    await stores.users.add(FULL, "hash")
    other = user("u2")
    await stores.users.add(other, None)
    for fields in ({"email": FULL.email}, {"username": "ada"}):
        with pytest.raises(GatewayError, match="is taken"):
            await stores.users.change(replace(other, **fields))
    assert await stores.users.find("u2") == other


async def test_many_users_may_have_no_username(stores: Stores) -> None:
    await stores.users.add(user("u1"), None)
    await stores.users.add(user("u2"), None)
    assert await stores.users.count() == 2


async def test_a_change_writes_every_field_but_the_password(stores: Stores) -> None:
    await stores.users.add(user("u1", email="old@example.org"), "hash")
    assert await stores.users.change(FULL)
    assert await stores.users.find("u1") == FULL
    assert await stores.users.find_password_hash("u1") == "hash"
    assert await stores.users.set_password_hash("u1", None)
    assert await stores.users.find_password_hash("u1") is None


async def test_a_removed_user_takes_memberships_and_keys_along(stores: Stores) -> None:
    for user_id in ("u1", "u2"):
        await stores.users.add(user(user_id), None)
        await stores.keys.add(key(f"k-{user_id}", user_id))
    await stores.groups.add(group("g"))
    await stores.groups.add_members("g", ["u1", "u2"], source=MembershipSource.MANUAL, at=1)
    assert await stores.users.remove("u1")
    assert [each.id for each in await stores.keys.list()] == ["k-u2"]
    assert list(await stores.groups.list_member_ids("g")) == ["u2"]


async def test_admins_are_counted_and_the_oldest_is_known(stores: Stores) -> None:
    await stores.users.add(user("u1", created_at=1), None)
    await stores.users.add(user("u2", created_at=3, role=Role.ADMIN), None)
    await stores.users.add(user("u3", created_at=2, role=Role.ADMIN, active=False), None)
    assert await stores.users.count_active_admins() == 1
    assert await stores.users.find_first_admin_id() == "u3"
    await stores.users.add(user("u0", created_at=2, role=Role.ADMIN), None)
    assert await stores.users.find_first_admin_id() == "u0"


@pytest.mark.parametrize(
    ("order_by", "expected"),
    [
        ("name", ["u2", "u3", "u1"]),
        ("email", ["u3", "u1", "u2"]),
        ("role", ["u2", "u1", "u3"]),
        ("created_at", ["u1", "u2", "u3"]),
        ("updated_at", ["u3", "u1", "u2"]),
        ("last_active_at", ["u2", "u3", "u1"]),
    ],
)
async def test_lists_are_ordered_and_ties_broken_by_id(
    stores: Stores, order_by: str, expected: list[str]
) -> None:
    await stores.users.add(
        user("u1", name="carla", email="b@x", created_at=1, updated_at=2, last_active_at=3), None
    )
    await stores.users.add(
        user("u2", name="ada", email="c@x", role=Role.ADMIN, created_at=1, updated_at=2, last_active_at=1),
        None,
    )
    await stores.users.add(
        user("u3", name="berta", email="a@x", created_at=1, updated_at=1, last_active_at=2), None
    )
    assert await names(stores, order_by=order_by) == expected
    assert await names(stores, order_by=order_by, descending=True) == expected[::-1]


async def test_pages_count_everything_that_fits(stores: Stores) -> None:
    for number in range(5):
        await stores.users.add(user(f"u{number}", name="even" if number % 2 == 0 else "odd"), None)
    found, total = await stores.users.list(query="even", offset=1, limit=1)
    assert ([each.id for each in found], total) == (["u2"], 3)
    assert await names(stores, offset=3) == ["u3", "u4"]
    assert await names(stores, limit=0) == []
    assert await names(stores, offset=9) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("ÉMILE", ["u1"]),
        ("émile", ["u1"]),
        ("%", ["u2"]),
        ("_", ["u3"]),
        ("\\", ["u4"]),
        ("'", ["u5"]),
        ("U5@EXAMPLE", ["u5"]),
        ("nobody", []),
        ("\x00", []),
        ("x" * 10_000, []),
    ],
)
async def test_a_query_finds_its_very_characters_in_any_case(
    stores: Stores, query: str, expected: list[str]
) -> None:
    for number, name in enumerate(["Émile Zola", "100%", "a_b", "back\\slash", "O'Neill"], start=1):
        await stores.users.add(user(f"u{number}", name=name), None)
    assert await names(stores, query=query) == expected
    assert list(await stores.users.list_ids(query=query)) == expected


async def test_any_number_of_accounts_are_read_by_id(stores: Stores) -> None:
    for user_id, created_at in (("u1", 5), ("u3", 1), ("u2", 1)):
        await stores.users.add(user(user_id, created_at=created_at), None)
    assert list(await stores.users.list_ids()) == ["u2", "u3", "u1"]
    found = await stores.users.list_by_ids(["u1", "gone", "\ud800", "u2"])
    assert [each.id for each in found] == ["u1", "u2"]
    assert list(await stores.users.list_by_ids([])) == []


async def test_touch_writes_many_and_never_goes_back(stores: Stores) -> None:
    for user_id in ("u1", "u2"):
        await stores.users.add(user(user_id, last_active_at=10), None)
    await stores.users.touch({"u2": 9, "u1": 11, "gone": 12})
    await stores.users.touch({})
    found, _ = await stores.users.list()
    assert [each.last_active_at for each in found] == [11, 10]


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "u\x00"},
        {"id": "u" * 65},
        {"email": "\ud800@example.org"},
        {"email": "e" * 321},
        {"name": "a\x00b"},
        {"name": "n" * 256},
        {"username": "\x00"},
        {"profile_image_url": "\x00"},
        {"profile": {"a": ["\x00"]}},
        {"settings": {"\x00": 1}},
        {"info": {"a": float("nan")}},
        {"oauth": {"a": 2**64}},
        {"scim": {"a": "\udc00"}},
        {"token_version": 2**63},
        {"created_at": -(2**63) - 1},
        {"modified_us": 2**63},
    ],
    ids=str,
)
async def test_what_cannot_be_stored_is_refused_by_name(database: Database, fields: dict[str, Any]) -> None:
    users = TortoiseUsers()
    with pytest.raises(GatewayError) as caught:
        await users.add(
            user(**{"user_id": "u1"} | {"user_id" if k == "id" else k: v for k, v in fields.items()}), None
        )
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, next(iter(fields)))
    assert await users.count() == 0


@pytest.mark.parametrize("name", ["\x00", "\ud800", "x" * 1000])
async def test_what_cannot_be_stored_is_not_found(database: Database, name: str) -> None:
    users = TortoiseUsers()
    assert await users.find(name) is None
    assert await users.find_by_email(name) is None
    assert await users.find_password_hash(name) is None
    await users.touch({name: 1})
    assert not await users.set_password_hash(name, "hash")
    assert not await users.remove(name)


async def test_lists_are_ordered_by_known_columns_only(database: Database) -> None:
    with pytest.raises(GatewayError) as caught:
        await TortoiseUsers().list(order_by="password_hash")
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "order_by")


async def test_names_are_ordered_in_any_case_and_alike_on_every_engine(database: Database) -> None:
    users = TortoiseUsers()
    for number, name in enumerate(["b", "A", "É", "_", "a", "Z"]):
        await users.add(user(f"u{number}", name=name), None)
    found, _ = await users.list(order_by="name")
    assert [each.name for each in found] == ["_", "A", "a", "b", "Z", "É"]


@pytest.mark.parametrize(
    ("same", "field"),
    [
        ({"email": "same@example.org"}, "email"),
        ({"identity": ProviderIdentity("same@example.org")}, "user_name"),
        ({"scim": OKTA}, "external_id"),
        ({"oauth": {"google": {"sub": "1"}}}, "subject"),
    ],
    ids=str,
)
async def test_of_sixteen_racing_users_with_one_name_one_wins(
    stores: Stores, same: dict[str, Any], field: str
) -> None:
    results = await asyncio.gather(
        *(stores.users.add(user(f"u{number}", **same), None) for number in range(16)),
        return_exceptions=True,
    )
    assert results.count(None) == 1
    lost = [result for result in results if isinstance(result, GatewayError)]
    assert {(error.kind, error.code, error.param) for error in lost} == {(ErrorKind.CONFLICT, "taken", field)}
    assert len(lost) == 15
    assert await stores.users.count() == 1


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"identity": ProviderIdentity("a@" + "x" * 319)}, "user_name"),
        ({"identity": ProviderIdentity("a@\x00")}, "user_name"),
        ({"identity": ProviderIdentity("a@b", display_name="d" * 256)}, "display_name"),
        ({"identity": ProviderIdentity("a@b", emails=(Email("\x00"),))}, "emails"),
        ({"identity": ProviderIdentity("a@b", emails=(Email("e" * 961),))}, "value"),
        ({"scim": {"okta": {"external_id": "e" * 513}}}, "external_id"),
        ({"scim": {"o" * 129: {"external_id": "e"}}}, "provider"),
        ({"oauth": {"okta": {"sub": "e" * 513}}}, "subject"),
    ],
    ids=["long name", "odd name", "display", "odd address", "address", "external id", "provider", "subject"],
)
async def test_what_a_provider_said_and_cannot_be_stored_is_refused(
    database: Database, fields: dict[str, Any], param: str
) -> None:
    with pytest.raises(GatewayError) as caught:
        await TortoiseUsers().add(user("u1", **fields), None)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, param)
    assert await TortoiseUsers().count() == 0


async def test_the_longest_names_are_stored_on_every_engine(database: Database) -> None:
    wide = "🦊" * 512
    names = {"🐧" * 128: {"external_id": wide, "sub": wide}}
    person = ProviderIdentity("a" * 320, *("ΐ" * 255 for _ in range(4)), (Email("ΐ" * 255, "ΐ" * 255),))
    full = user("u1", name="ΐ" * 255, scim=names, oauth=names, identity=person)
    await TortoiseUsers().add(full, None)
    assert await TortoiseUsers().find("u1") == full
    with pytest.raises(GatewayError, match="external id is taken"):
        await TortoiseUsers().add(user("u2", scim=names), None)
