"""Predicates mean what the reference evaluator says, on both engines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gatewayd.accounts.display_identity import display_identity
from gatewayd.accounts.records import Email, Group, MembershipSource, ProviderIdentity, Role, User
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.filters.conditions import (
    AllCondition,
    AnyCondition,
    CompareCondition,
    Condition,
    ElementCondition,
    NotCondition,
    Operator,
    PresentCondition,
)
from gatewayd.scim.records import GroupEntry, MembershipReference, ResourceQuery, ResourceType, UserEntry
from gatewayd.storage.engine.database import Database
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.scim.directory import TortoiseDirectory
from gatewayd.storage.scim.predicates import ConditionContext, compile_condition, compile_order
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import group, user
from tests.fakes.accounts.scim_conditions import evaluate

PROVIDER = "okta"

WORDS = (
    *("a", "A", "ab", "ada", "ADA", "b", "work", "home", "user", "direct"),
    *("é", "É", "e\u0301", "straße", "STRASSE", "ﬁ", "İ", "\u017f", "Σ", "ς"),
    *("%", "_", "a%b", "a_b", "\\", "'", '"', "''; --", "?", "$1", "{ids}"),
    *("🦊", "a🦊", "\ud7ff", "\ue000", "\uffff", "\U0010ffff", "a\U0010ffff", "\u200d", " ", "a b"),
)
TEXTS = st.sampled_from(WORDS) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=4
)
IMPOSSIBLE = st.sampled_from(["", "\0", "a\0", "\ud800", "a\udfff", "x" * 3000])
ASKED = TEXTS | st.builds(str.__add__, TEXTS, st.sampled_from(["1", "2"])) | IMPOSSIBLE
SECONDS = st.integers(-2, 2)
MOMENTS = (
    st.integers(-2_000_002, 2_000_002)
    | st.sampled_from([-2_000_000, -1_000_000, 0, 1_000_000, 2_000_000])
    | st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, -(10**30)])
)
IDS = ("1", "2", "3", "4")

TEXT_OPERATORS = st.sampled_from(Operator)
ORDERING = (Operator.EQ, Operator.NE, Operator.GT, Operator.GE, Operator.LT, Operator.LE)


def compares(attribute: str, values: SearchStrategy[Any], operators: Any = TEXT_OPERATORS) -> Any:
    return st.builds(CompareCondition, st.just(attribute), operators, values)


def texts(*attributes: str) -> Any:
    return st.one_of([compares(attribute, ASKED) for attribute in attributes])


def equals(attribute: str) -> Any:
    return compares(attribute, st.booleans(), st.sampled_from([Operator.EQ, Operator.NE]))


def moments(attribute: str) -> Any:
    return compares(attribute, MOMENTS, st.sampled_from(ORDERING))


def trees(leaves: Any) -> Any:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(NotCondition, inner),
            st.builds(AllCondition, st.lists(inner, max_size=3).map(tuple)),
            st.builds(AnyCondition, st.lists(inner, max_size=3).map(tuple)),
        ),
        max_leaves=6,
    )


def elements(attribute: str, leaves: Any) -> Any:
    return st.builds(ElementCondition, st.just(attribute), trees(leaves))


def presence(*attributes: str) -> Any:
    return st.builds(PresentCondition, st.sampled_from(attributes))


COMMON = (
    compares("id", ASKED | st.sampled_from([f"u{number}" for number in IDS])),
    texts("externalId", "displayName", "meta.resourceType"),
    moments("meta.created"),
    moments("meta.lastModified"),
    presence(
        "id", "externalId", "displayName", "meta.resourceType", "meta.created", "meta.lastModified", "meta"
    ),
)
EMAIL = st.one_of(
    texts("emails.value", "emails.type"),
    equals("emails.primary"),
    presence("emails.value", "emails.type", "emails.primary"),
)
LINK = compares("groups.value", ASKED | st.sampled_from(["g1", "g2"]))
GROUP = st.one_of(LINK, texts("groups.display", "groups.type"), presence("groups.value", "groups.display"))
MEMBER = st.one_of(
    compares("members.value", ASKED | st.sampled_from(["u1", "u2"])),
    texts("members.type"),
    presence("members.value", "members.type"),
)
USER_CONDITIONS = trees(
    st.one_of(
        *COMMON,
        texts("userName", "name.formatted", "name.givenName", "name.familyName"),
        equals("active"),
        presence("userName", "name", "name.givenName", "active", "emails", "groups"),
        EMAIL,
        GROUP,
        elements("emails", EMAIL),
        elements("groups", GROUP),
    )
)
GROUP_CONDITIONS = trees(st.one_of(*COMMON, MEMBER, presence("members"), elements("members", MEMBER)))

EMAILS = st.lists(st.builds(Email, TEXTS, TEXTS, st.booleans()), max_size=3).map(tuple)
IDENTITIES = st.just(ProviderIdentity()) | st.builds(
    ProviderIdentity,
    TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    EMAILS,
)


@dataclass(frozen=True)
class World:
    """Some users and groups, and who is in which; external ids are told apart by what follows them."""

    users: Sequence[User]
    groups: Sequence[Group]
    scim: frozenset[tuple[str, str]]
    manual: frozenset[tuple[str, str]]

    def entries(self) -> Iterator[UserEntry]:
        for each in self.users:
            mine = [one for one in self.groups if (one.id, each.id) in self.scim]
            yield UserEntry(each, [MembershipReference(one.id, one.name) for one in mine])

    def group_entries(self) -> Iterator[GroupEntry]:
        for each in self.groups:
            members = [one for one in self.users if (each.id, one.id) in self.scim]
            yield GroupEntry(
                each,
                [
                    MembershipReference(one.id, display_identity(one).display_name or one.name)
                    for one in members
                ],
            )


def one_user(number: str) -> SearchStrategy[User]:
    def build(name: str, identity: ProviderIdentity, foreign: tuple[str | None, ...], **more: Any) -> User:
        external_id, subject = (None if text is None else f"{text}{number}" for text in foreign)
        if identity.user_name is not None:
            identity = replace(identity, user_name=f"{identity.user_name}{number}")
        return user(
            f"u{number}",
            name=name,
            identity=identity,
            scim={PROVIDER: {"external_id": external_id}, "other": {"external_id": f"o{number}"}},
            oauth={PROVIDER: {"sub": subject}},
            **more,
        )

    return st.builds(
        build,
        TEXTS,
        IDENTITIES,
        st.tuples(st.none() | TEXTS, st.none() | TEXTS),
        role=st.sampled_from(Role),
        active=st.booleans(),
        created_at=SECONDS,
        modified_us=MOMENTS.filter(lambda moment: -(2**63) <= moment < 2**63),
    )


def one_group(number: str) -> SearchStrategy[Group]:
    def build(name: str, external_id: str | None, **more: Any) -> Group:
        scim = None if external_id is None else {PROVIDER: {"external_id": f"{external_id}{number}"}}
        return group(f"g{number}", name=f"{name}{number}", scim=scim, **more)

    return st.builds(build, TEXTS, st.none() | TEXTS, created_at=SECONDS, modified_us=SECONDS)


PAIRS = st.frozensets(st.tuples(st.sampled_from(["g1", "g2"]), st.sampled_from(["u1", "u2", "u3"])))
WORLDS = st.builds(
    World,
    st.tuples(one_user("1"), one_user("2"), one_user("3")),
    st.tuples(one_group("1"), one_group("2")),
    PAIRS,
    PAIRS,
)


async def fill(world: World) -> None:
    users, groups = TortoiseUsers(), TortoiseGroups()
    for each in world.users:
        await users.add(each, None)
    for one in world.groups:
        await groups.add(one)
    for source, pairs in ((MembershipSource.SCIM, world.scim), (MembershipSource.MANUAL, world.manual)):
        for group_id, user_id in sorted(pairs):
            await groups.add_members(group_id, [user_id], source=source, at=0)


async def users_by(condition: Condition, **more: Any) -> list[str]:
    query = ResourceQuery(condition=condition, provider=PROVIDER, limit=1000, **more)
    return [each.id for each in (await TortoiseDirectory().list_users(query)).items]


async def groups_by(condition: Condition) -> list[str]:
    query = ResourceQuery(condition=condition, provider=PROVIDER, limit=1000)
    return [each.id for each in (await TortoiseDirectory().list_groups(query)).items]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORLDS, st.lists(USER_CONDITIONS, min_size=1, max_size=8), st.booleans())
async def test_users_are_those_for_whom_the_condition_holds(
    database: Database, world: World, conditions: list[Condition], by_subject: bool
) -> None:
    async with database.rehearsal():
        await fill(world)
        for condition in conditions:
            expected = [
                each.user.id
                for each in world.entries()
                if evaluate(condition, each, PROVIDER, by_subject=by_subject)
            ]
            assert await users_by(condition, by_subject=by_subject) == expected, condition


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORLDS, st.lists(GROUP_CONDITIONS, min_size=1, max_size=8))
async def test_groups_are_those_for_which_the_condition_holds(
    database: Database, world: World, conditions: list[Condition]
) -> None:
    async with database.rehearsal():
        await fill(world)
        for condition in conditions:
            expected = [
                each.group.id for each in world.group_entries() if evaluate(condition, each, PROVIDER)
            ]
            assert await groups_by(condition) == expected, condition


MADE = [
    user("u1", identity=ProviderIdentity(user_name="ab")),
    user("u2", identity=ProviderIdentity(user_name="a\U0010ffffb")),
    user("u3", identity=ProviderIdentity(user_name="a\ud7ff")),
    user("u4", identity=ProviderIdentity(user_name="a\ue000")),
    user("u5", identity=ProviderIdentity(user_name="\U0010ffff\U0010ffff")),
    user("u6", identity=ProviderIdentity(user_name="100%_\\'\"")),
]


async def add(*users: User) -> None:
    for each in users:
        await TortoiseUsers().add(each, None)


PREFIXES = {
    "a": ["u1", "u2", "u3", "u4"],
    "A": ["u1", "u2", "u3", "u4"],
    "a\U0010ffff": ["u2"],
    "a\ud7ff": ["u3"],
    "a\ue000": ["u4"],
    "\U0010ffff": ["u5"],
    "100%": ["u6"],
    "100_": [],
    "": ["u1", "u2", "u3", "u4", "u5", "u6"],
}


async def test_a_prefix_is_a_range_up_to_the_next_text(database: Database) -> None:
    await add(*MADE)
    found = {prefix: await users_by(CompareCondition("userName", Operator.SW, prefix)) for prefix in PREFIXES}
    assert found == PREFIXES


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "b\udfff"], ids=ascii)
async def test_a_text_that_nothing_can_hold_never_reaches_the_database(database: Database, text: str) -> None:
    await add(*MADE)
    everybody = [each.id for each in MADE]
    for attribute in ("userName", "externalId", "emails.value", "groups.value", "meta.resourceType"):
        for operator in Operator:
            expected = everybody if operator is Operator.NE else []
            assert await users_by(CompareCondition(attribute, operator, text)) == expected, operator


async def test_other_sources_and_other_providers_are_not_seen(database: Database) -> None:
    await add(user("u1", scim={"other": {"external_id": "x"}}))
    groups = TortoiseGroups()
    await groups.add(group("g1", scim={"other": {"external_id": "x"}}))
    await groups.add_members("g1", ["u1"], source=MembershipSource.MANUAL, at=0)
    external_id = CompareCondition("externalId", Operator.EQ, "x")
    assert await users_by(external_id) == []
    assert await groups_by(external_id) == []
    assert await users_by(CompareCondition("groups.value", Operator.EQ, "g1")) == []
    assert await groups_by(CompareCondition("members.value", Operator.EQ, "u1")) == []
    assert [
        each.id for each in (await TortoiseDirectory().list_users(ResourceQuery(external_id, "other"))).items
    ] == ["u1"]


EQ = Operator.EQ
EITHER = CompareCondition("emails.value", Operator.NE, "nobody@example.org")


def nested(levels: int, leaf: Condition, width: int = 2) -> Condition:
    """Return a condition that every user satisfies, in which each level holds the next and some leaves."""
    condition = leaf
    for level in range(levels):
        beside = (leaf,) * (width - 1)
        condition = AllCondition((*beside, condition)) if level % 2 else AnyCondition((*beside, condition))
    return condition


LARGE = (
    AnyCondition((EITHER,) * 500),
    AllCondition((EITHER,) * 500),
    AllCondition((CompareCondition("userName", Operator.SW, "u"),) * 500),
    nested(99, EITHER, 5),
    nested(99, NotCondition(NotCondition(EITHER)), 5),
    ElementCondition("emails", nested(98, CompareCondition("emails.value", Operator.SW, "u"), 5)),
    AllCondition(
        (ElementCondition("emails", AllCondition((CompareCondition("emails.type", EQ, "work"),) * 250)),) * 2
    ),
    nested(40, ElementCondition("emails", nested(50, CompareCondition("emails.type", EQ, "work")))),
    nested(50, NotCondition(NotCondition(nested(45, EITHER, 3)))),
)


async def test_large_conditions_stay_within_the_limits_of_the_engines(database: Database) -> None:
    await add(user("u1"), user("u2"))
    for number, condition in enumerate(LARGE):
        assert await users_by(condition) == ["u1", "u2"], number
        assert await users_by(NotCondition(condition)) == [], number


async def test_a_chain_of_pairs_is_as_good_as_one_of_many(database: Database) -> None:
    await add(user("u1"))
    condition: Condition = EITHER
    for _ in range(499):
        condition = NotCondition(NotCondition(AllCondition((condition, EITHER))))
    for _ in range(1000):
        condition = NotCondition(NotCondition(condition))
    assert await users_by(condition) == ["u1"]


def refused(condition: Condition, resource: ResourceType = ResourceType.USER) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        compile_condition(condition, ConditionContext(resource, "sqlite", lambda value: "?"))
    assert (caught.value.kind, caught.value.code) == (ErrorKind.INVALID_REQUEST, "invalidFilter")
    return caught.value


@pytest.mark.parametrize(
    "condition",
    [
        CompareCondition("title", EQ, "x"),
        PresentCondition("title"),
        ElementCondition("name", PresentCondition("name.givenName")),
        ElementCondition("title", PresentCondition("title")),
        ElementCondition("emails", PresentCondition("userName")),
        ElementCondition("emails", PresentCondition("emails")),
        ElementCondition("emails", ElementCondition("emails", PresentCondition("emails.value"))),
        CompareCondition("emails", EQ, "x"),
        CompareCondition("userName", EQ, True),
        CompareCondition("userName", EQ, 1),
        CompareCondition("active", EQ, "true"),
        CompareCondition("active", EQ, 1),
        CompareCondition("active", Operator.GT, True),
        CompareCondition("meta.created", EQ, True),
        CompareCondition("meta.created", EQ, "x"),
        CompareCondition("meta.created", Operator.CO, 1),
        CompareCondition("meta.lastModified", Operator.SW, 1),
        CompareCondition("members.value", EQ, "x"),
        CompareCondition("u.id = '' OR u.id", EQ, "x"),
        nested(101, PresentCondition("id")),
    ],
    ids=lambda condition: repr(condition)[:60],
)
def test_what_has_no_meaning_is_refused(condition: Condition) -> None:
    refused(condition)


def test_a_refusal_names_the_attribute() -> None:
    assert "'title'" in refused(CompareCondition("title", EQ, "x")).message
    assert "Group" in refused(CompareCondition("userName", EQ, "x"), ResourceType.GROUP).message


@pytest.mark.parametrize("resource", ResourceType)
@pytest.mark.parametrize("attribute", ["title", "emails", "groups", "meta.resourceType", "u.id; --"])
def test_only_what_is_in_the_tables_is_sorted_by(resource: ResourceType, attribute: str) -> None:
    with pytest.raises(GatewayError) as caught:
        compile_order(attribute, ConditionContext(resource, "sqlite", lambda value: "?"))
    assert (caught.value.code, caught.value.param) == ("invalidValue", "sortBy")


def test_no_value_is_part_of_the_text() -> None:
    bound: list[Any] = []

    def bind(value: Any) -> str:
        bound.append(value)
        return "?"

    condition = AllCondition(
        (
            CompareCondition("userName", EQ, "SECRET"),
            CompareCondition("externalId", Operator.CO, "SECRET"),
            ElementCondition("emails", CompareCondition("emails.value", Operator.EW, "SECRET")),
            CompareCondition("meta.created", EQ, 4711),
        )
    )
    text = compile_condition(
        condition, ConditionContext(ResourceType.USER, "postgres", bind, provider="SECRET")
    )
    assert "secret" not in text.lower()
    assert "4711" not in text
    assert sorted(each for each in bound if isinstance(each, str)) == ["SECRET", "SECRET", "secret", "secret"]
