from gatewayd.scim.attributes import find
from gatewayd.scim.drafts import MemberChange, Verb
from gatewayd.scim.memberplan import member_changes, merged
from gatewayd.scim.records import ResourceType
from gatewayd.scim.syntax import Name, Presence
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


def test_one_step_is_one_change_or_none() -> None:
    members = find(ResourceType.GROUP, "members")
    assert members is not None
    assert member_changes(Step(Verb.ADD, members, ["u1"])) == (MemberChange(Verb.ADD, ("u1",)),)
    assert member_changes(Step(Verb.ADD, members, [])) == ()
    assert member_changes(Step(Verb.REPLACE, members, [])) == (MemberChange(Verb.REPLACE),)
