"""Pages of users and groups, on both engines."""

import asyncio
from typing import Any

import pytest

from gatewayd.accounts.records import Email, Group, MembershipSource, ProviderIdentity, Role, User
from gatewayd.errors import GatewayError
from gatewayd.scim.filters.conditions import (
    CompareCondition,
    Condition,
    ElementCondition,
    NotCondition,
    Operator,
    PresentCondition,
)
from gatewayd.scim.records import MembershipReference, ResourceCounts, ResourceQuery
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.readers import open_reader
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.scim import directory as module
from gatewayd.storage.scim.directory import TortoiseDirectory
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import group, user

DIRECTORY = TortoiseDirectory()
FULL = user(
    "u1",
    email="ada@example.org",
    name="Ada",
    role=Role.ADMIN,
    active=False,
    username="ada",
    profile={"bio": None},
    settings={"ui": {"a": [1]}},
    oauth={"google": {"sub": "1"}},
    scim={"okta": {"external_id": "0"}},
    identity=ProviderIdentity(
        "Ada@example.org", "Ada", None, "Ada", "Löve", (Email("Ada@example.org", primary=True),)
    ),
    last_active_at=3,
    updated_at=2,
    created_at=1,
    modified_us=2_000_001,
)


class Statements:
    """The statements that reach the database."""

    def __init__(self, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        self._is_inside = False
        for name in (
            "execute_query",
            "execute_query_dict",
            "execute_many",
            "execute_insert",
            "execute_script",
        ):
            monkeypatch.setattr(client, name, self._noted(getattr(client, name)))

    def _noted(self, run: Any) -> Any:
        async def noted(query: str, *values: Any) -> Any:
            if self._is_inside:  # one of them may call another
                return await run(query, *values)
            self.texts.append(query)
            self._is_inside = True
            try:
                return await run(query, *values)
            finally:
                self._is_inside = False

        return noted

    def take(self) -> int:
        """Return how many there were since the last time."""
        count = len(self.texts)
        self.texts.clear()
        return count


@pytest.fixture
def statements(database: Database, monkeypatch: pytest.MonkeyPatch) -> Statements:
    return Statements(database.engine, monkeypatch)


async def add_users(*users: User) -> None:
    for each in users:
        await TortoiseUsers().add(each, None)


async def add_many(count: int) -> None:
    await add_users(*(user(f"u{number:03}", name=f"Name {number % 7}") for number in range(count)))


async def add_groups(*groups: Group) -> None:
    for each in groups:
        await TortoiseGroups().add(each)


async def link(group_id: str, *user_ids: str, source: MembershipSource = MembershipSource.SCIM) -> None:
    await TortoiseGroups().add_members(group_id, user_ids, source=source, at=0)


async def ids(**query: Any) -> list[str]:
    return [each.id for each in (await DIRECTORY.list_users(ResourceQuery(**query))).items]


def named(name: str) -> CompareCondition:
    return CompareCondition("userName", Operator.EQ, name)


async def test_records_come_back_as_they_were(database: Database) -> None:
    await add_users(FULL)
    page = await DIRECTORY.list_users(ResourceQuery(named("ADA@example.org")))
    assert (page.items, page.total) == ([FULL], 1)
    made = group("g1", description="d", scim={"okta": {"external_id": "g"}}, created_at=1, modified_us=5)
    await add_groups(made)
    await link("g1", "u1")
    found = await DIRECTORY.list_groups(ResourceQuery(CompareCondition("displayName", Operator.EQ, "G1")))
    assert (found.items, found.total) == ([made], 1)


PAGES = [
    # Offset, limit, whose users are on the page, and in how many statements.
    (0, 4, range(4), 2),
    (4, 4, range(4, 8), 2),
    (8, 4, range(8, 10), 1),
    (6, 4, range(6, 10), 1),
    (0, 10, range(10), 1),
    (10, 4, range(0), 2),
    (2**63 - 1, 4, range(0), 2),
    (2**80, 2**80, range(0), 2),
    (0, 2**80, range(10), 1),
    (0, 0, range(0), 1),
    (5, 0, range(0), 1),
    (-1, 1, range(1), 2),
    (0, -1, range(0), 1),
]


async def test_a_page_knows_the_total_in_at_most_two_statements(
    database: Database, statements: Statements
) -> None:
    await add_many(10)
    for offset, limit, numbers, statement_count in PAGES:
        statements.take()
        page = await DIRECTORY.list_users(ResourceQuery(offset=offset, limit=limit))
        assert statements.take() == statement_count, (offset, limit)
        expected = [f"u00{number}" for number in numbers]
        assert ([each.id for each in page.items], page.total) == (expected, 10), (offset, limit)


async def test_an_empty_directory_is_an_empty_page(database: Database, statements: Statements) -> None:
    page = await DIRECTORY.list_users(ResourceQuery())
    assert (page.items, page.total, statements.take()) == ([], 0, 1)
    groups = await DIRECTORY.list_groups(ResourceQuery(offset=3))
    assert (groups.items, groups.total) == ([], 0)


LOOK_UPS = [
    # What is asked, and whether external ids are subjects.
    (named("ada@EXAMPLE.org"), False),
    (CompareCondition("externalId", Operator.EQ, "0"), False),
    (CompareCondition("id", Operator.EQ, "u1"), False),
    (CompareCondition("externalId", Operator.EQ, "s"), True),
    (named("nobody@example.org"), False),
]


@pytest.mark.parametrize("limit", [1, 100])
async def test_a_look_up_is_one_statement(database: Database, statements: Statements, limit: int) -> None:
    await add_users(
        user("u0"),
        user(
            "u1",
            email="ada@example.org",
            scim={"okta": {"external_id": "0"}},
            oauth={"okta": {"sub": "s"}, "google": {"sub": "t"}},
        ),
        user("u2", oauth={"google": {"sub": "s"}}),
    )
    for condition, by_subject in LOOK_UPS:
        statements.take()
        query = ResourceQuery(condition, "okta", by_subject=by_subject, limit=limit)
        page = await DIRECTORY.list_users(query)
        assert statements.take() == 1, condition
        expected = [] if condition.value == "nobody@example.org" else ["u1"]
        assert ([each.id for each in page.items], page.total) == (expected, len(expected)), condition


async def test_a_filtered_page_counts_what_the_filter_finds(database: Database) -> None:
    await add_many(20)
    condition = CompareCondition("displayName", Operator.CO, "ME 3")
    page = await DIRECTORY.list_users(ResourceQuery(condition, limit=2))
    assert ([each.id for each in page.items], page.total) == (["u003", "u010"], 3)
    page = await DIRECTORY.list_users(ResourceQuery(condition, offset=2, limit=2))
    assert ([each.id for each in page.items], page.total) == (["u017"], 3)
    assert (await DIRECTORY.list_users(ResourceQuery(condition, limit=0))).total == 3


async def test_a_reader_finds_the_same_and_waits_for_no_transaction(database: Database) -> None:
    await add_many(20)
    async with open_reader(database.location) as reader:
        directory = TortoiseDirectory(reader)
        for query in (
            ResourceQuery(CompareCondition("displayName", Operator.CO, "ME 3"), limit=2),
            ResourceQuery(offset=18, limit=5),
            ResourceQuery(sort="displayName"),
            ResourceQuery(limit=0),
        ):
            assert await directory.list_users(query) == await DIRECTORY.list_users(query)
        assert (await directory.list_groups(ResourceQuery())).items == []
        async with database.transaction():
            assert (await asyncio.wait_for(directory.list_users(ResourceQuery(limit=1)), 30)).total == 20


async def test_members_are_read_in_parts(
    database: Database, statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_SIZE", 2)
    groups = TortoiseGroups()
    await add_many(7)
    names = [f"u{number:03}" for number in range(7)]
    expected = {"g1": names[:4], "g2": [], "g3": names[2:]}
    for group_id, user_ids in expected.items():
        await groups.add(Group(group_id, group_id))
        await groups.add_members(group_id, user_ids, source=MembershipSource.SCIM, at=1)
        await groups.add_members(group_id, names, source=MembershipSource.MANUAL, at=1)
    statements.take()
    found = await DIRECTORY.list_members_of(list(expected))
    assert {key: [each.id for each in some] for key, some in found.items()} == {
        key: user_ids for key, user_ids in expected.items() if user_ids
    }
    assert statements.take() == 5
    assert await groups.keep_members("g1", ["u001", "nobody"], source=MembershipSource.SCIM) == 3
    assert await groups.keep_members("g3", [], source=MembershipSource.SCIM) == 5
    found = await DIRECTORY.list_members_of(["g1", "g3"])
    assert [each.id for each in found["g1"]] == ["u001"]
    assert (await groups.count_members(["g1", "g3"])) == {"g1": 7, "g3": 7}


async def test_walking_through_pages_meets_everybody_once(database: Database) -> None:
    await add_many(23)
    met = [each for offset in range(0, 30, 5) for each in await ids(offset=offset, limit=5)]
    assert met == [f"u{number:03}" for number in range(23)]


async def test_a_hundred_users_with_their_groups_take_at_most_four_statements(
    database: Database, statements: Statements
) -> None:
    await add_many(120)
    await add_groups(group("g1"), group("g2"))
    await link("g1", *(f"u{number:03}" for number in range(0, 120, 2)))
    await link("g2", *(f"u{number:03}" for number in range(0, 120, 3)))
    statements.take()
    page = await DIRECTORY.list_users(ResourceQuery(limit=100))
    groups = await DIRECTORY.list_groups_of([each.id for each in page.items])
    assert statements.take() <= 4
    assert (len(page.items), page.total, len(groups)) == (100, 120, 67)


async def test_memberships_of_the_provider_are_listed_in_order_of_creation(
    database: Database, statements: Statements
) -> None:
    await add_users(
        user("u1", name="Z"),
        user("u2", identity=ProviderIdentity("u2@example.org", display_name="Bea")),
        user("u3", name="Cleo", identity=ProviderIdentity("u3@example.org")),
        user("u4"),
    )
    await add_groups(group("g1", name="Zebra"), group("g2", name="Ape"), group("g3"))
    await link("g1", "u3", "u2", "u1")
    await link("g2", "u1")
    await link("g2", "u2", "u4", source=MembershipSource.MANUAL)
    await link("g3", "u1", source=MembershipSource.OAUTH)
    await link("g1", "u1", source=MembershipSource.MANUAL)
    statements.take()
    assert await DIRECTORY.list_groups_of(["u2", "u1", "u4", "u1", "\0", "nobody"]) == {
        "u1": [MembershipReference("g1", "Zebra"), MembershipReference("g2", "Ape")],
        "u2": [MembershipReference("g1", "Zebra")],
    }
    assert await DIRECTORY.list_members_of(["g1", "g2", "g3", "\ud800", "x" * 100]) == {
        "g1": [
            MembershipReference("u1", "Z"),
            MembershipReference("u2", "Bea"),
            MembershipReference("u3", "Cleo"),
        ],
        "g2": [MembershipReference("u1", "Z")],
    }
    assert statements.take() == 2
    assert await DIRECTORY.list_groups_of([]) == {}
    assert await DIRECTORY.list_members_of(["\0"]) == {}
    assert statements.take() == 0


async def test_members_are_called_as_the_provider_says(database: Database) -> None:
    await add_users(user("u1", name="Z"), user("u2", name="Y"))
    await add_groups(group("g1"))
    for source, displays in (
        (MembershipSource.MANUAL, {"u2": "By hand"}),
        (MembershipSource.SCIM, {"u1": "Sent"}),
    ):
        await TortoiseGroups().add_members("g1", ["u1", "u2"], source=source, at=0, displays=displays)
    members = {"g1": [MembershipReference("u1", "Sent"), MembershipReference("u2", "Y")]}
    assert await DIRECTORY.list_members_of(["g1"]) == members


@pytest.mark.parametrize(
    "condition",
    [
        PresentCondition("members.display"),
        CompareCondition("members.display", Operator.EQ, "Sent"),
        ElementCondition("members", CompareCondition("members.display", Operator.NE, "Sent")),
    ],
)
async def test_what_members_are_called_is_not_searched(database: Database, condition: Condition) -> None:
    with pytest.raises(GatewayError, match=r"members\.display") as caught:
        await DIRECTORY.list_groups(ResourceQuery(condition))
    assert caught.value.code == "invalidFilter"


async def test_known_users_are_found_in_thousands(database: Database, statements: Statements) -> None:
    await add_users(user("u1"), user("u2"))
    statements.take()
    wanted = [*(f"x{number}" for number in range(1500)), "u1", "\0", "\ud800", "u" * 65, "u1"]
    assert await DIRECTORY.list_known(wanted) == {"u1"}
    assert statements.take() == 2
    assert await DIRECTORY.list_known([]) == frozenset()


async def test_counts_tell_who_is_provisioned(database: Database, statements: Statements) -> None:
    assert await DIRECTORY.count() == ResourceCounts(0, 0, 0, 0, 0, 0)
    await add_users(
        user("u1"),
        user("u2", active=False, identity=ProviderIdentity("u2@example.org")),
        user("u3", scim={"okta": {"external_id": "1"}, "other": {"external_id": "2"}}),
        user(
            "u4",
            role=Role.PENDING,
            identity=ProviderIdentity("u4@example.org"),
            scim={"okta": {"external_id": "3"}},
        ),
    )
    await add_groups(group("g1", scim={"okta": {"external_id": "1"}}), group("g2"))
    await link("g1", "u1", "u2")
    await link("g1", "u3", source=MembershipSource.MANUAL)
    statements.take()
    assert await DIRECTORY.count() == ResourceCounts(
        users=4, active_users=2, provisioned_users=3, groups=2, provisioned_groups=1, memberships=2
    )
    assert statements.take() == 1


SORTED = [
    user(
        "u1",
        identity=ProviderIdentity(
            "c@x.org", None, "A", "b", "É", (Email("z@x.org"), Email("b@x.org", primary=True))
        ),
        active=False,
        created_at=5,
        modified_us=1,
    ),
    user(
        "u2",
        identity=ProviderIdentity("B@x.org", "b", None, None, None, (Email("c@x.org"), Email("A@x.org"))),
        created_at=3,
        modified_us=2,
        scim={"okta": {"external_id": "b"}},
    ),
    user(
        "u3",
        identity=ProviderIdentity("a@x.org", "A", "É"),
        created_at=4,
        scim={"okta": {"external_id": "A"}},
    ),
    user(
        "u4",
        identity=ProviderIdentity("d@x.org", "a", "z"),
        created_at=4,
        scim={"other": {"external_id": "0"}},
    ),
]


ORDERS = [
    # The attribute, and the users in ascending and in descending order.
    (None, "1234", "1234"),
    ("id", "1234", "4321"),
    ("userName", "3214", "4123"),
    ("USERNAME", "3214", "4123"),
    ("displayName", "3421", "1234"),
    ("name.formatted", "1432", "2341"),
    ("name.givenName", "1234", "2341"),
    ("name.familyName", "1234", "2341"),
    ("active", "1234", "2341"),
    ("emails.value", "1234", "3421"),
    ("externalId", "3214", "1423"),
    ("meta.created", "2341", "1342"),
    ("meta.lastModified", "3412", "2134"),
]


async def test_users_are_sorted_with_absent_ones_last_or_first(database: Database) -> None:
    await add_users(*SORTED)
    for sort, ascending, descending in ORDERS:
        for backwards, expected in ((False, ascending), (True, descending)):
            query: dict[str, Any] = {"sort": sort, "descending": backwards, "provider": "okta"}
            assert await ids(**query) == [f"u{number}" for number in expected], query
            assert await ids(**query, offset=1, limit=2) == [f"u{number}" for number in expected[1:3]], query


async def test_groups_are_sorted_and_filtered(database: Database) -> None:
    await add_groups(group("g1", name="b"), group("g2", name="A", scim={"okta": {"external_id": "1"}}))
    for sort, expected in (("displayName", ["g2", "g1"]), ("externalId", ["g2", "g1"]), ("id", ["g1", "g2"])):
        page = await DIRECTORY.list_groups(ResourceQuery(sort=sort, provider="okta"))
        assert [each.id for each in page.items] == expected
    page = await DIRECTORY.list_groups(
        ResourceQuery(NotCondition(PresentCondition("externalId")), "okta", sort="displayName")
    )
    assert [each.id for each in page.items] == ["g1"]


async def test_what_a_transaction_has_written_is_seen_in_it(database: Database) -> None:
    async with database.rehearsal():
        await add_users(FULL)
        await add_groups(group("g1"))
        await link("g1", "u1")
        assert await ids(condition=named("ada@example.org")) == ["u1"]
        assert await DIRECTORY.list_groups_of(["u1"]) == {"u1": [MembershipReference("g1", "g1")]}
        assert await DIRECTORY.list_known(["u1"]) == {"u1"}
        assert (await DIRECTORY.count()).users == 1
    assert await ids() == []


async def test_an_unknown_attribute_runs_no_statement(database: Database, statements: Statements) -> None:
    for query in (ResourceQuery(PresentCondition("title")), ResourceQuery(sort="title")):
        with pytest.raises(GatewayError):
            await DIRECTORY.list_users(query)
    assert statements.take() == 0
