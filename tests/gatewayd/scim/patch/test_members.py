import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.attributes import find_attribute
from gatewayd.scim.filters.syntax import AttributeName, AttributePresence, FilterExpression
from gatewayd.scim.input_records import MemberChange, PatchVerb
from gatewayd.scim.patch.members import MAX_CHANGES, MAX_FILTERS, Changes, member_changes, merge_changes
from gatewayd.scim.patch.steps import PatchStep
from gatewayd.scim.records import ResourceType

WHERE = MemberChange(PatchVerb.REMOVE, where=AttributePresence(AttributeName("value")))
NAMING = MemberChange(PatchVerb.REPLACE, is_naming=True, display="x")


def added(*ids: str, **displays: str) -> MemberChange:
    return MemberChange(PatchVerb.ADD, ids, displays=displays)


def removed(*ids: str) -> MemberChange:
    return MemberChange(PatchVerb.REMOVE, ids)


def replaced(*ids: str, **displays: str) -> MemberChange:
    return MemberChange(PatchVerb.REPLACE, ids, displays=displays)


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ((), ()),
        ((added("a", "b"), added("b", "c")), (added("a", "b", "c"),)),
        ((removed("a", "b"), removed("b", "c")), (removed("a", "b", "c"),)),
        ((added("a"), removed("b"), added("c"), removed("d")), (removed("b", "d"), added("a", "c"))),
        ((added("a", "b"), removed("a")), (removed("a"), added("b"))),
        ((added("a"), removed("a")), (removed("a"),)),
        ((removed("a"), added("a")), (removed("a"), added("a"))),
        ((added("a"), replaced("x"), removed("x"), added("y")), (replaced("x"), removed("x"), added("y"))),
        ((replaced("x"), WHERE, replaced("y", y="Y"), added("z")), (replaced("y", y="Y"), added("z"))),
        ((WHERE, WHERE, replaced()), (replaced(),)),
        ((added("a"), NAMING, replaced()), (replaced(),)),
    ],
)
def test_many_changes_come_to_few(changes: Changes, left: Changes) -> None:
    assert merge_changes(changes) == left


@pytest.mark.parametrize("between", [WHERE, NAMING])
def test_what_reads_members_keeps_its_place(between: MemberChange) -> None:
    changes = (added("a"), removed("b"), between, removed("a"), between, added("b"), removed("c"))
    assert merge_changes(changes) == (
        *(removed("b"), added("a"), between),
        *(removed("a"), between),
        *(removed("c"), added("b")),
    )


def test_a_thousand_operations_by_turns_are_two_changes() -> None:
    changes = [change for number in range(500) for change in (added(f"a{number}"), removed(f"r{number}"))]
    assert merge_changes(changes) == (
        removed(*(f"r{number}" for number in range(500))),
        added(*(f"a{number}" for number in range(500))),
    )


def test_the_last_name_that_is_said_is_kept() -> None:
    assert merge_changes([added("a", "b", a="A", b="B"), removed("c"), added("b", "a", b="Bea")]) == (
        removed("c"),
        added("a", "b", a="A", b="Bea"),
    )
    assert merge_changes([added("a", a="A"), removed("a"), added("a")]) == (removed("a"), added("a"))


def test_few_changes_may_be_left() -> None:
    turns = [removed("a"), added("a"), WHERE] * 17
    assert len(merge_changes(turns[:MAX_CHANGES])) == MAX_CHANGES
    with pytest.raises(GatewayError, match="more than 50") as caught:
        merge_changes(turns[: MAX_CHANGES + 1])
    assert (caught.value.kind, caught.value.code) == (ErrorKind.TOO_LARGE, "tooMany")


def test_members_are_read_for_a_few_filters_only() -> None:
    other = added("a")
    assert len(merge_changes([WHERE, other] * MAX_FILTERS)) == 2 * MAX_FILTERS
    with pytest.raises(GatewayError, match="more than 20") as caught:
        merge_changes([WHERE, other, NAMING, other] * (MAX_FILTERS // 2) + [NAMING])
    assert (caught.value.kind, caught.value.code) == (ErrorKind.TOO_LARGE, "tooMany")


def test_one_step_is_one_change_or_none() -> None:
    members = find_attribute(ResourceType.GROUP, "members")
    assert members is not None
    assert member_changes(PatchStep(PatchVerb.ADD, members, ["u1"])) == (
        MemberChange(PatchVerb.ADD, ("u1",)),
    )
    named = [{"value": "u1", "display": "Ada"}]
    for verb in (PatchVerb.ADD, PatchVerb.REPLACE):
        change = MemberChange(verb, ("u1",), displays={"u1": "Ada"})
        assert member_changes(PatchStep(verb, members, named)) == (change,)
    assert member_changes(PatchStep(PatchVerb.REMOVE, members, named)) == (
        MemberChange(PatchVerb.REMOVE, ("u1",)),
    )
    assert member_changes(PatchStep(PatchVerb.ADD, members, [])) == ()
    assert member_changes(PatchStep(PatchVerb.REPLACE, members, [])) == (MemberChange(PatchVerb.REPLACE),)


@pytest.mark.parametrize("path", ["members.$ref", "members.type"])
@pytest.mark.parametrize("where", [None, AttributePresence(AttributeName("value"))])
def test_a_member_is_not_changed(path: str, where: FilterExpression | None) -> None:
    part = find_attribute(ResourceType.GROUP, path)
    assert part is not None
    with pytest.raises(GatewayError) as caught:
        member_changes(PatchStep(PatchVerb.REPLACE, part, "x", where))
    assert caught.value.code == "mutability"


def test_a_member_is_called_otherwise() -> None:
    display = find_attribute(ResourceType.GROUP, "members.display")
    where = AttributePresence(AttributeName("value"))
    assert display is not None
    for verb in (PatchVerb.ADD, PatchVerb.REPLACE):
        named = MemberChange(verb, where=where, is_naming=True, display="Ada")
        assert member_changes(PatchStep(verb, display, " Ada ", where)) == (named,)
    assert member_changes(PatchStep(PatchVerb.REPLACE, display, "x")) == (NAMING,)
    assert member_changes(PatchStep(PatchVerb.ADD, display, " ")) == ()
    for step in (
        PatchStep(PatchVerb.REMOVE, display, "x", where),
        PatchStep(PatchVerb.REPLACE, display, None, where),
    ):
        (change,) = member_changes(step)
        assert (change.where, change.is_naming, change.display) == (where, True, None)


@pytest.mark.parametrize(
    ("value", "where", "code"),
    [(1, None, "invalidValue"), ("x", AttributePresence(AttributeName("colour")), "invalidFilter")],
)
def test_a_bad_name_for_a_member_is_refused(value: object, where: FilterExpression | None, code: str) -> None:
    display = find_attribute(ResourceType.GROUP, "members.display")
    assert display is not None
    with pytest.raises(GatewayError) as caught:
        member_changes(PatchStep(PatchVerb.REPLACE, display, value, where))
    assert caught.value.code == code
