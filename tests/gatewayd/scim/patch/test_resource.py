from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.filters.grammar import parse_path
from gatewayd.scim.input_records import MemberChange, PatchVerb
from gatewayd.scim.parser import read_group, read_operations, read_user
from gatewayd.scim.patch.resource import patched_user, plan_group
from gatewayd.scim.patch.steps import PatchStep, parse_steps
from gatewayd.scim.records import Resource, ResourceType
from gatewayd.scim.values import MAX_MEMBERS

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
WORK = {"value": "ada@work.org", "type": "work", "primary": True}
HOME = {"value": "ada@home.org", "type": "home", "primary": False}
ADA: Resource = {
    "userName": "ada@example.org",
    "externalId": "00u1",
    "name": {"formatted": "Ada King", "givenName": "Ada", "familyName": "King"},
    "displayName": "Ada",
    "emails": [WORK, HOME],
    "active": True,
}
BARE: Resource = {"userName": "ada@example.org", "active": True}
TEAM: Resource = {"displayName": "Team"}
CODES = {
    *("invalidFilter", "invalidPath", "noTarget", "invalidValue", "invalidSyntax", "mutability"),
    "tooMany",
}


def op(verb: str, path: str | None = None, value: Any = ...) -> dict[str, Any]:
    return {
        "op": verb,
        **({} if path is None else {"path": path}),
        **({} if value is ... else {"value": value}),
    }


def read_steps(operations: Sequence[Any], resource: ResourceType) -> Iterator[PatchStep]:
    return parse_steps(read_operations({"Operations": list(operations)}), resource)


def patched(resource: Resource, *operations: Any) -> Resource:
    before = deepcopy(resource)
    try:
        after = patched_user(resource, read_steps(operations, ResourceType.USER))
    finally:
        assert resource == before
    read_user(after)
    return after


def planned(*operations: Any) -> tuple[Resource, tuple[MemberChange, ...]]:
    before = deepcopy(TEAM)
    after, changes = plan_group(TEAM, read_steps(operations, ResourceType.GROUP))
    assert before == TEAM
    read_group(after)
    return after, changes


def members(*operations: Any) -> tuple[MemberChange, ...]:
    resource, changes = planned(*operations)
    assert resource == TEAM
    return changes


def refusal(*operations: Any, resource: Resource = ADA) -> str | None:
    with pytest.raises(GatewayError) as caught:
        patched(resource, *operations)
    return caught.value.code


def group_refusal(*operations: Any) -> str | None:
    with pytest.raises(GatewayError) as caught:
        planned(*operations)
    return caught.value.code


# Users ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "changes"),
    [
        (op("Replace", "active", "False"), {"active": False}),
        (op("Replace", "active", [{"$ref": None, "value": "False"}]), {"active": False}),
        (op("replace", None, {"active": False}), {"active": False}),
        (op("add", "ACTIVE", "FALSE"), {"active": False}),
        (op("replace", None, {f"{USER}:active": "false"}), {"active": False}),
        (op("Add", "displayName", "Countess"), {"displayName": "Countess"}),
        (op("replace", "displayName", [{"value": "Countess"}]), {"displayName": "Countess"}),
        (op("replace", f"{USER}:userName", " B@x.org "), {"userName": "B@x.org"}),
        (op("replace", "externalId", "x"), {"externalId": "x"}),
        (op("replace", "externalId", ""), {"externalId": None}),
        (op("replace", "externalId", None), {"externalId": None}),
        (op("remove", "externalId"), {"externalId": None}),
        (
            op("Replace", "name.givenName", "Augusta"),
            {"name": {"formatted": "Ada King", "givenName": "Augusta", "familyName": "King"}},
        ),
        (
            op("replace", "name", {"GivenName": "Augusta", "familyName": None, "middleName": "A"}),
            {"name": {"formatted": "Ada King", "givenName": "Augusta"}},
        ),
        (
            op("replace", None, {"name.familyName": "Byron", "name.formatted": ""}),
            {"name": {"givenName": "Ada", "familyName": "Byron"}},
        ),
        (op("remove", "name.formatted"), {"name": {"givenName": "Ada", "familyName": "King"}}),
        (op("add", "name", None), {}),
        (op("replace", "name", {}), {}),
        (
            op("Replace", 'emails[type eq "work"].value', "new@x.org"),
            {"emails": [{**WORK, "value": "new@x.org"}, HOME]},
        ),
        (
            op("replace", None, {'emails[type eq "home"].value': "new@x.org"}),
            {"emails": [WORK, {**HOME, "value": "new@x.org"}]},
        ),
        (op("add", "emails", [WORK]), {}),
        (op("replace", "emails", "ada@x.org"), {"emails": [{**WORK, "value": "ada@x.org"}]}),
        (op("add", "title", "Countess"), {}),
        (op("add", f"{ENTERPRISE}:manager", {"value": "x"}), {}),
        (
            op("replace", None, {"id": "other", "groups": [], ENTERPRISE: {"department": "x"}, "colour": 1}),
            {},
        ),
        (op("remove", "password"), {}),
        (op("remove", 'emails[type eq "nothing"]'), {}),
    ],
)
def test_what_providers_send(operation: Any, changes: dict[str, Any]) -> None:
    assert patched(ADA, operation) == {**ADA, **changes}


@pytest.mark.parametrize(
    ("operation", "gone"),
    [
        (op("remove", "displayName"), "displayName"),
        (op("replace", "displayName", None), "displayName"),
        (op("replace", "displayName", " "), "displayName"),
        (op("remove", "name"), "name"),
        (op("replace", "name", None), "name"),
        (op("remove", "emails"), "emails"),
        (op("replace", "emails", []), "emails"),
        (op("remove", "emails[value pr]"), "emails"),
    ],
)
def test_what_is_removed_vanishes(operation: Any, gone: str) -> None:
    assert patched(ADA, operation) == {name: value for name, value in ADA.items() if name != gone}


def test_the_last_part_takes_the_name_with_it() -> None:
    assert "name" not in patched(ADA, *(op("remove", f"name.{part}") for part in ADA["name"]))


def test_an_empty_user_is_filled() -> None:
    operations = [
        op("Add", "name.givenName", "Ada"),
        op("Add", 'emails[type eq "work"].value', WORK["value"]),
        op("Add", 'emails[type eq "home"].value', HOME["value"]),
        op("Add", None, {"name.familyName": "King", "name": {"formatted": "Ada King"}, "displayName": "Ada"}),
        op("Add", "externalId", "00u1"),
    ]
    assert patched(BARE, *operations) == ADA


def test_operations_apply_in_their_order() -> None:
    renamed = [op("replace", "displayName", "A"), op("remove", "displayName"), op("add", "displayName", "B")]
    assert patched(ADA, *renamed)["displayName"] == "B"
    assert patched(ADA) == ADA


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (op("remove", "userName"), "invalidValue"),
        (op("replace", "userName", None), "invalidValue"),
        (op("replace", "userName", "ada"), "invalidValue"),
        (op("remove", "active"), "invalidValue"),
        (op("replace", "active", None), "invalidValue"),
        (op("replace", "active", "perhaps"), "invalidValue"),
        (op("replace", "displayName", 5), "invalidValue"),
        (op("replace", "displayName", ["a", "b"]), "invalidValue"),
        (op("replace", "name", "Ada"), "invalidValue"),
        (op("replace", "name.givenName", {}), "invalidValue"),
        (op("replace", "externalId", 5), "invalidValue"),
        (op("replace", None, "x"), "invalidValue"),
        (op("replace", None, {"active": True, "Active": True}), "invalidSyntax"),
        (op("replace", "id", "x"), "mutability"),
        (op("add", "groups", [{"value": "g"}]), "mutability"),
        (op("remove", "meta.created"), "mutability"),
        (op("replace", "colour", "red"), "invalidPath"),
        (op("replace", "members", []), "invalidPath"),
        (op("replace", "emails[type eq", "x"), "invalidPath"),
        (op("remove", 'emails[colour eq "x"]'), "invalidFilter"),
        (op("replace", 'emails[type sw "o"].value', "a@b.c"), "noTarget"),
        (op("add", "emails", ["a@b.c"] * 101), "tooMany"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_changes(operation: Any, code: str) -> None:
    assert refusal(op("replace", "displayName", "Changed"), operation) == code


ORDERS = list(
    permutations(
        (
            op("Add", 'emails[type eq "other"].value', "other@example.org"),
            op("Add", 'emails[type eq "other"].primary', "True"),
            op("Replace", "name.givenName", "Zed"),
        )
    )
)


@pytest.mark.parametrize("operations", ORDERS)
def test_the_parts_of_a_new_address_come_in_any_order(operations: Any) -> None:
    changed = patched(ADA, *operations)
    made = {"value": "other@example.org", "type": "other", "primary": True}
    assert [email for email in changed["emails"] if email["primary"]] == [made]
    assert changed["name"]["givenName"] == "Zed"


def test_a_part_whose_address_never_comes_has_no_target() -> None:
    part = op("replace", 'emails[type eq "other"].primary', True)
    assert refusal(part, op("add", 'emails[type eq "third"].value', "a@b.c")) == "noTarget"


# Groups ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation",
    [
        op("Add", "members", [{"value": "a"}, {"value": "b"}]),
        op("add", "members", [{"value": "a", "type": "User"}, {"value": "b", "$ref": "x"}, {"value": "a"}]),
        op("add", "members", ["a", "b"]),
        op("add", None, {"members": [{"value": "a"}, {"value": "b"}]}),
        op("add", "urn:ietf:params:scim:schemas:core:2.0:Group:members", ["a", "b"]),
        op("add", "members.value", ["a", "b"]),
    ],
)
def test_members_are_added(operation: Any) -> None:
    assert members(operation) == (MemberChange(PatchVerb.ADD, ("a", "b")),)


@pytest.mark.parametrize("value", [{"value": "a"}, "a", [{"value": "a"}]])
def test_one_member_needs_no_list(value: Any) -> None:
    assert members(op("add", "members", value)) == (MemberChange(PatchVerb.ADD, ("a",)),)
    assert members(op("remove", "members", value)) == (MemberChange(PatchVerb.REMOVE, ("a",)),)
    assert members(op("replace", "members", value)) == (MemberChange(PatchVerb.REPLACE, ("a",)),)


@pytest.mark.parametrize(
    "operation",
    [
        op("Remove", "members", [{"$ref": None, "value": "a"}]),
        op("remove", 'members[value eq "a"]'),
        op("remove", 'members[VALUE EQ "a"].value'),
        op("remove", 'members[value eq "a" or value eq "a"]'),
        op("remove", 'members[value eq "a" or value eq ""]'),
        op("replace", 'members[value eq "a"]', None),
    ],
)
def test_members_are_removed(operation: Any) -> None:
    assert members(operation) == (MemberChange(PatchVerb.REMOVE, ("a",)),)


def test_a_filter_may_list_ids() -> None:
    listed = 'members[value eq "a" or (value eq "b" or members.value eq "c")]'
    assert members(op("remove", listed)) == (MemberChange(PatchVerb.REMOVE, ("a", "b", "c")),)


@pytest.mark.parametrize(
    "where",
    [
        'value sw "a"',
        'display eq "Ada"',
        'value eq "a" and type eq "User"',
        'value eq "a" or display pr',
        "not (value pr)",
    ],
)
def test_other_filters_stay_filters(where: str) -> None:
    (change,) = members(op("remove", f"members[{where}]"))
    path = parse_path(f"members[{where}]")
    assert change == MemberChange(PatchVerb.REMOVE, where=path.inner)


@pytest.mark.parametrize(
    "operation",
    [
        op("remove", "members"),
        op("remove", "members", None),
        op("remove", "members.value"),
        op("replace", "members", []),
        op("replace", "members", None),
        op("replace", None, {"members": []}),
    ],
)
def test_a_group_is_emptied(operation: Any) -> None:
    assert members(operation) == (MemberChange(PatchVerb.REPLACE),)


@pytest.mark.parametrize(
    "operation",
    [
        op("remove", "members", []),
        op("add", "members", []),
        op("add", "members", None),
        op("replace", None, {"id": "g1", "members": None}),
        op("remove", 'members[value eq ""]'),
        op("replace", "schemas", []),
    ],
)
def test_nothing_is_done(operation: Any) -> None:
    assert members(operation) == ()


def test_a_member_is_replaced_by_another() -> None:
    assert members(op("replace", 'members[value eq "a"]', {"value": "b"})) == (
        MemberChange(PatchVerb.REMOVE, ("a",)),
        MemberChange(PatchVerb.ADD, ("b",)),
    )


def test_one_operation_for_each_member_is_one_change() -> None:
    added = [op("add", "members", [{"value": str(number)}]) for number in range(300)]
    assert members(*added) == (MemberChange(PatchVerb.ADD, tuple(str(number) for number in range(300))),)


def test_changes_keep_their_order() -> None:
    found = members(
        op("add", "members", "a"),
        op("remove", "members", "a"),
        op("replace", "members", "b"),
        op("add", "members", "c"),
        op("remove", 'members[display eq "c"]'),
        op("add", "members", "d"),
    )
    assert [change.verb for change in found] == [
        PatchVerb.REPLACE,
        PatchVerb.ADD,
        PatchVerb.REMOVE,
        PatchVerb.ADD,
    ]


@pytest.mark.parametrize(
    "operation",
    [
        op("replace", "displayName", "Crew"),
        op("Replace", None, {"id": "g1", "displayName": "Crew"}),
        op("add", None, {"schemas": [], "DISPLAYNAME": "Crew", "meta": {}}),
    ],
)
def test_a_rename_leaves_the_members_alone(operation: Any) -> None:
    assert planned(operation) == ({"displayName": "Crew"}, ())


@pytest.mark.parametrize("path", ["members", None])
def test_the_members_of_all_operations_are_counted_together(path: str | None) -> None:
    some = [{"value": f"id-{number}"} for number in range(MAX_MEMBERS // 2)]
    value: Any = some if path else {"members": some}
    half = op("add", path, value)
    assert len(members(half, op("remove", "members", some))[0].user_ids) == len(some)
    assert group_refusal(half, half, op("add", "members", "one more")) == "tooMany"


def test_a_group_has_an_external_id() -> None:
    assert planned(op("add", "externalId", "x"))[0] == {**TEAM, "externalId": "x"}
    assert planned(op("remove", "externalId"))[0] == {**TEAM, "externalId": None}


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (op("remove", "displayName"), "invalidValue"),
        (op("replace", "displayName", None), "invalidValue"),
        (op("replace", None, {"displayName": " "}), "invalidValue"),
        (op("add", "members", [{"value": "g", "type": "Group"}]), "invalidValue"),
        (op("add", "members", [{}]), "invalidValue"),
        (op("add", "members", 5), "invalidValue"),
        (op("add", "members", ["a"] * 10_001), "tooMany"),
        (op("add", 'members[value eq "a"]', {"value": "a"}), "mutability"),
        (op("replace", 'members[value eq "a"].type', "User"), "mutability"),
        (op("replace", "members.$ref", "x"), "mutability"),
        (op("remove", 'members[colour eq "a"]'), "invalidFilter"),
        (op("remove", "members[value eq]"), "invalidPath"),
        (op("replace", "userName", "a@b.c"), "invalidPath"),
        (op("replace", "id", "g2"), "mutability"),
    ],
)
def test_what_cannot_be_done_to_a_group_is_refused(operation: Any, code: str) -> None:
    assert group_refusal(op("add", "members", "a"), operation) == code


# Anything at all ------------------------------------------------------------------------------------------

texts = st.sampled_from(["", " ", "Ada", "ß", "x" * 300, "a\0", "E\u0301", "true", "work"])
addresses = st.sampled_from(
    ["a@x.org", "A@X.org", "b@x.org", "c@x.org", "straße@x.org", "ada", "", " d@x.org "]
)
kinds = st.sampled_from(["work", "Work", "home", "other", "", None])
flags = st.sampled_from([True, False, "True", "false", None, "perhaps", 1])
emails = st.one_of(
    addresses,
    st.fixed_dictionaries(
        {},
        optional={"value": addresses, "type": kinds, "primary": flags, "display": texts, "Value": addresses},
    ),
)
lists = st.one_of(st.none(), emails, st.lists(emails, max_size=3))
names = st.one_of(
    st.none(),
    texts,
    st.fixed_dictionaries({}, optional={"givenName": texts, "familyname": st.none() | texts, "x": texts}),
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
wheres = st.sampled_from(
    [
        'type eq "work"',
        'type eq "home"',
        'TYPE eq "other" and primary eq false',
        "primary eq true",
        'primary eq "False"',
        'value eq "a@x.org"',
        'value co "x"',
        'not (type eq "work")',
        'type eq "home" or primary eq true',
        "type pr",
        'colour eq "red"',
        "type eq",
        'type eq ""',
    ]
)
parts = st.sampled_from(["", ".value", ".type", ".primary", ".display", ".colour"])
paths: dict[str, st.SearchStrategy[Any]] = {
    "userName": addresses,
    "displayName": texts,
    "externalId": texts,
    "active": flags,
    "name": names,
    "name.givenName": texts,
    f"{USER}:name.familyName": texts,
    "emails": lists,
    "emails.value": addresses,
    "emails.type": kinds,
    "emails.primary": flags,
    "title": junk,
    "id": junk,
    "meta.created": junk,
    "colour": junk,
    f"{ENTERPRISE}:department": junk,
    "": junk,
}


@st.composite
def selections(draw: st.DrawFn) -> tuple[str, Any]:
    part = draw(parts)
    values = {"": emails, ".value": addresses, ".type": kinds, ".primary": flags}
    return f"emails[{draw(wheres)}]{part}", draw(values.get(part, texts) | junk)


@st.composite
def targets(draw: st.DrawFn) -> tuple[str, Any]:
    path = draw(st.sampled_from(sorted(paths)))
    return path, draw(paths[path] | junk if draw(st.booleans()) else paths[path])


@st.composite
def fitting(draw: st.DrawFn) -> dict[str, Any]:
    """Return an operation that a user can take: most of those, so that long sequences of them succeed."""
    part = draw(st.sampled_from(["", ".value", ".type", ".primary"]))
    email = st.fixed_dictionaries({"value": GOOD_ADDRESSES}, optional={"type": GOOD_KINDS})
    marked = st.builds(lambda each: {**each, "primary": True}, email)
    values: dict[str, st.SearchStrategy[Any]] = {
        "": email | marked,
        ".value": GOOD_ADDRESSES,
        ".type": GOOD_KINDS,
        ".primary": st.booleans(),
    }
    where = draw(st.sampled_from(['type eq "work"', 'type eq "home"', "primary eq true", 'value sw "a"']))
    path, value = draw(
        st.sampled_from(
            [
                (f"emails[{where}]{part}", values[part]),
                (f"emails{part}", values[part]),
                ("emails", st.lists(email, max_size=3)),
                ("name.givenName", st.sampled_from(["Ada", ""])),
                ("displayName", st.sampled_from(["Ada", None])),
                ("active", st.booleans()),
            ]
        )
    )
    verbs = ["add", "replace"] if path == "active" else ["add", "replace", "remove"]
    return op(draw(st.sampled_from(verbs)), path, draw(value))


@st.composite
def operations(draw: st.DrawFn) -> dict[str, Any]:
    verb = draw(st.sampled_from(["add", "Replace", "REMOVE", "replace", "add"]))
    if verb != "REMOVE" and draw(st.integers(0, 4)) == 0:
        pairs = draw(st.lists(targets() | selections(), max_size=3))
        return op(verb, None, dict(pairs))
    path, value = draw(targets() | selections())
    return op(verb, path, value) if draw(st.integers(0, 5)) else op(verb, path)


@st.composite
def users(draw: st.DrawFn) -> Resource:
    found = {
        (value.lower(), kind)
        for value, kind in draw(st.sets(st.tuples(GOOD_ADDRESSES, GOOD_KINDS), max_size=4))
    }
    listed = [{"value": value, "type": kind, "primary": False} for value, kind in sorted(found)]
    if listed:
        draw(st.sampled_from(listed))["primary"] = True
    optional: dict[str, Any] = {
        "displayName": "Ada",
        "externalId": "x",
        "name": {"givenName": "Ada"},
        **({"emails": listed} if listed else {}),
    }
    kept = draw(st.sets(st.sampled_from(sorted(optional))))
    return {**BARE, "active": draw(st.booleans()), **{name: optional[name] for name in sorted(kept)}}


GOOD_ADDRESSES = st.sampled_from(["a@x.org", "b@x.org", "c@x.org"])
GOOD_KINDS = st.sampled_from(["work", "home", "other"])


def check_sound(resource: Resource) -> None:
    """Fail unless a resource is one that a client can be shown."""
    read_user(resource)
    assert set(resource) <= {"userName", "externalId", "displayName", "name", "emails", "active"}
    assert isinstance(resource["active"], bool)
    assert resource.get("displayName", "x")
    assert set(resource.get("name", {"givenName": "x"})) <= {"formatted", "givenName", "familyName"}
    assert all(resource.get("name", {"givenName": "x"}).values())
    listed = resource.get("emails")
    if listed is None:
        return
    assert [email["primary"] for email in listed].count(True) <= 1
    assert all(set(email) == {"value", "type", "primary"} for email in listed)
    assert all(isinstance(email["primary"], bool) and email["type"] and email["value"] for email in listed)
    pairs = {(email["value"].casefold(), email["type"].casefold()) for email in listed}
    assert len(pairs) == len(listed)


def outcome(resource: Resource, listed: Sequence[Any]) -> Resource | None:
    """Return what operations make of a user, None when they are refused as they should be."""
    try:
        return patched_user(resource, read_steps(listed, ResourceType.USER))
    except GatewayError as error:
        found = (
            error.kind in {ErrorKind.INVALID_REQUEST, ErrorKind.TOO_LARGE},
            error.code,
            error.message[:7],
        )
    assert found in {(True, code, "cannot ") for code in CODES}
    return None


@given(users(), st.lists(fitting(), max_size=8) | st.lists(operations() | fitting(), max_size=4))
def test_any_operations_leave_a_sound_user_or_none(resource: Resource, listed: list[Any]) -> None:
    before = deepcopy(resource)
    after = outcome(resource, listed)
    assert resource == before
    if after is not None:
        check_sound(after)


@given(users(), operations())
def test_one_operation_at_a_time_is_the_same(resource: Resource, first: Any) -> None:
    after = outcome(resource, [first])
    if after is not None:
        other = op("replace", "displayName", "Last")
        assert outcome(resource, [first, other]) == outcome(after, [other])


@given(users(), lists)
def test_adding_addresses_twice_is_adding_them_once(resource: Resource, value: Any) -> None:
    once = outcome(resource, [op("add", "emails", value)])
    if once is not None:
        assert outcome(once, [op("add", "emails", value)]) == once
        assert outcome(resource, [op("add", "emails", value)] * 3) == once


@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "replace"]), st.lists(st.sampled_from("abcd")))))
def test_merged_changes_do_what_single_ones_do(listed: list[tuple[str, list[str]]]) -> None:
    def applied(changes: Sequence[MemberChange]) -> set[str]:
        there = {"a", "z"}
        for change in changes:
            ids = set(change.user_ids)
            match change.verb:
                case PatchVerb.ADD:
                    there |= ids
                case PatchVerb.REMOVE:
                    there -= ids
                case PatchVerb.REPLACE:
                    there = ids
        return there

    sent = [op(verb, "members", ids) for verb, ids in listed]
    single = [change for each in sent for change in members(each)]
    assert applied(members(*sent)) == applied(single)
