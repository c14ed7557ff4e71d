import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.scim.attributes import find
from gatewayd.scim.drafts import MemberChange, Verb
from gatewayd.scim.memberplan import MAX_FILTERS, member_changes, merged
from gatewayd.scim.records import ResourceType
from gatewayd.scim.syntax import Name, Node, Presence
from gatewayd.scim.targets import Step


def test_neighbours_that_do_the_same_become_one() -> None:
    where = MemberChange(Verb.REMOVE, where=Presence(Name("value")))
    changes = (
        MemberChange(Verb.ADD, ("a", "b")),
        MemberChange(Verb.ADD, ("b", "c")),
        MemberChange(Verb.REMOVE, ("a",)),
        MemberChange(Verb.REMOVE, ("d",)),
        where,
        where,
        MemberChange(Verb.REMOVE, ("e",)),
        MemberChange(Verb.REPLACE, ("x",)),
        MemberChange(Verb.REPLACE, ("y",)),
        MemberChange(Verb.ADD, ("z",)),
    )
    assert merged(changes) == (
        MemberChange(Verb.ADD, ("a", "b", "c")),
        MemberChange(Verb.REMOVE, ("a", "d")),
        where,
        where,
        MemberChange(Verb.REMOVE, ("e",)),
        MemberChange(Verb.REPLACE, ("y",)),
        MemberChange(Verb.ADD, ("z",)),
    )


def test_neighbours_keep_the_last_names_that_they_say() -> None:
    changes = (
        MemberChange(Verb.ADD, ("a", "b"), displays={"a": "A", "b": "B"}),
        MemberChange(Verb.ADD, ("b", "a"), displays={"b": "Bea"}),
        MemberChange(Verb.REPLACE, ("a",), displays={"a": "A"}),
        MemberChange(Verb.REPLACE, ("b",), displays={"b": "B"}),
    )
    assert merged(changes) == (
        MemberChange(Verb.ADD, ("a", "b"), displays={"a": "A", "b": "Bea"}),
        MemberChange(Verb.REPLACE, ("b",), displays={"b": "B"}),
    )


def test_members_are_read_for_a_few_filters_only() -> None:
    where = MemberChange(Verb.REMOVE, where=Presence(Name("value")))
    other = MemberChange(Verb.ADD, ("a",))
    assert len(merged([where, other] * MAX_FILTERS)) == 2 * MAX_FILTERS
    with pytest.raises(GatewayError, match="more than 20") as caught:
        merged([where, other] * (MAX_FILTERS + 1))
    assert (caught.value.kind, caught.value.code) == (Kind.TOO_LARGE, "tooMany")


def test_one_step_is_one_change_or_none() -> None:
    members = find(ResourceType.GROUP, "members")
    assert members is not None
    assert member_changes(Step(Verb.ADD, members, ["u1"])) == (MemberChange(Verb.ADD, ("u1",)),)
    named = [{"value": "u1", "display": "Ada"}]
    for verb in (Verb.ADD, Verb.REPLACE):
        change = MemberChange(verb, ("u1",), displays={"u1": "Ada"})
        assert member_changes(Step(verb, members, named)) == (change,)
    assert member_changes(Step(Verb.REMOVE, members, named)) == (MemberChange(Verb.REMOVE, ("u1",)),)
    assert member_changes(Step(Verb.ADD, members, [])) == ()
    assert member_changes(Step(Verb.REPLACE, members, [])) == (MemberChange(Verb.REPLACE),)


@pytest.mark.parametrize("path", ["members.display", "members.type"])
@pytest.mark.parametrize("where", [None, Presence(Name("value"))])
def test_a_member_is_not_changed(path: str, where: Node | None) -> None:
    part = find(ResourceType.GROUP, path)
    assert part is not None
    with pytest.raises(GatewayError) as caught:
        member_changes(Step(Verb.REPLACE, part, "x", where))
    assert caught.value.code == "mutability"
