from typing import Any

import pytest

from gatewayd.accounts.records import Email, ProviderIdentity
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.input_records import GroupDraft, PatchOperation, PatchVerb, UserDraft
from gatewayd.scim.parser import PATCH_OP, read_group, read_operations, read_user

ADA = "ada@example.org"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


def refusal(read: Any, body: Any) -> tuple[str | None, str | None]:
    """Return the code of a refusal and what it names."""
    with pytest.raises(GatewayError) as caught:
        read(body)
    assert caught.value.message.startswith("cannot ")
    return caught.value.code, caught.value.param


# Users ----------------------------------------------------------------------------------------------------


def test_a_user_needs_no_more_than_a_user_name() -> None:
    assert read_user({"userName": ADA}) == UserDraft(ProviderIdentity(user_name=ADA))


def test_a_whole_user() -> None:
    body = {
        "schemas": [USER, ENTERPRISE],
        "id": "not-mine-to-choose",
        "externalId": "00u1",
        "userName": f" {ADA} ",
        "name": {"givenName": "Ada", "familyName": "King", "formatted": "Ada King", "middleName": 7},
        "displayName": "Ada",
        "emails": [
            {"value": "ada@work.org", "type": "work"},
            {"value": ADA, "type": "home", "primary": True},
        ],
        "active": "True",
        "password": {"never": "looked at"},
        "groups": [],
        "meta": "ignored",
        "title": 1,
        "phoneNumbers": None,
        ENTERPRISE: {"department": "x"},
        "urn:example:2.0:User": {"badge": 1},
        "colour": "red",
    }
    identity = ProviderIdentity(
        user_name=ADA,
        display_name="Ada",
        formatted_name="Ada King",
        given_name="Ada",
        family_name="King",
        emails=(Email("ada@work.org"), Email(ADA, "home", primary=True)),
    )
    assert read_user(body) == UserDraft(identity, active=True, external_id="00u1", has_external_id=True)


def test_names_are_taken_in_any_case_and_with_their_urn() -> None:
    body = {
        "SCHEMAS": [USER.upper()],
        "USERNAME": ADA,
        f"{USER}:displayName": "Ada",
        "Name": {"GIVENNAME": "A"},
        "EMAILS": {"VALUE": ADA, "Primary": True},
        "Active": False,
    }
    draft = read_user(body)
    identity = ProviderIdentity(ADA, display_name="Ada", given_name="A", emails=(Email(ADA, primary=True),))
    assert draft == UserDraft(identity, active=False)


def test_null_and_blank_are_absent() -> None:
    nothing = dict.fromkeys(("schemas", "name", "displayName", "emails", "active"))
    assert read_user({"userName": ADA, **nothing}) == read_user({"userName": ADA})
    blank = {"displayName": " ", "name": {"givenName": "", "familyName": None}, "emails": []}
    assert read_user({"userName": ADA, **blank}) == read_user({"userName": ADA})


@pytest.mark.parametrize("value", [None, "", "  "])
def test_an_empty_external_id_takes_it_away(value: Any) -> None:
    draft = read_user({"userName": ADA, "externalId": value})
    assert (draft.external_id, draft.has_external_id) == (None, True)


def test_an_address_may_stand_for_a_list_of_it() -> None:
    assert read_user({"userName": ADA, "emails": ADA}).identity.emails == (Email(ADA, primary=True),)
    assert len(read_user({"userName": ADA, "emails": [ADA, "b@x.org"]}).identity.emails) == 2


@pytest.mark.parametrize(
    ("changes", "code", "param"),
    [
        ({"userName": None}, "invalidValue", "userName"),
        ({"userName": ""}, "invalidValue", "userName"),
        ({"userName": "ada"}, "invalidValue", "userName"),
        ({"userName": 5}, "invalidValue", "userName"),
        ({"userName": "a\0@x.org"}, "invalidValue", "userName"),
        ({"USERNAME": ADA}, "invalidSyntax", "userName"),
        ({f"{USER}:userName": ADA}, "invalidSyntax", "userName"),
        ({"displayName": {}}, "invalidValue", "displayName"),
        ({"displayName": "x" * 256}, "invalidValue", "displayName"),
        ({"name": "Ada King"}, "invalidValue", "name"),
        ({"name": []}, "invalidValue", "name"),
        ({"name": {"givenName": 1}}, "invalidValue", "name.givenName"),
        ({"name": {"givenName": "a", "GivenName": "b"}}, "invalidSyntax", "name.givenName"),
        ({"active": "maybe"}, "invalidValue", "active"),
        ({"active": 1}, "invalidValue", "active"),
        ({"externalId": 5}, "invalidValue", "externalId"),
        ({"externalId": "x" * 513}, "invalidValue", "externalId"),
        ({"emails": [{"value": ADA}, {"value": 1}]}, "invalidValue", "emails[1].value"),
        ({"emails": [ADA] * 101}, "tooMany", "emails"),
        ({"schemas": []}, "invalidSyntax", "schemas"),
        ({"schemas": USER}, "invalidSyntax", "schemas"),
        ({"schemas": [1]}, "invalidSyntax", "schemas"),
        ({"schemas": [GROUP]}, "invalidSyntax", "schemas"),
        ({"schemas": ["urn:scim:schemas:core:2.0:Group"]}, "invalidSyntax", "schemas"),
        ({"schemas": [USER], "Schemas": [USER]}, "invalidSyntax", "schemas"),
    ],
)
def test_bad_users_are_refused_by_name(changes: dict[str, Any], code: str, param: str) -> None:
    assert refusal(read_user, {"userName": ADA, **changes}) == (code, param)


def test_a_body_is_an_object() -> None:
    for read in (read_user, read_group, read_operations):
        assert refusal(read, [])[0] == "invalidSyntax"


# Groups ---------------------------------------------------------------------------------------------------


def test_a_group_needs_no_more_than_a_name() -> None:
    assert read_group({"displayName": " Engineers "}) == GroupDraft("Engineers")


def test_a_whole_group() -> None:
    body = {
        "schemas": [GROUP],
        "id": "x",
        "displayname": "Engineers",
        "externalId": "g-1",
        "members": [{"value": "u1", "type": "User", "$ref": None, "display": "Ada"}, {"value": "u1"}, "u2"],
    }
    assert read_group(body) == GroupDraft("Engineers", "g-1", True, ("u1", "u2"), {"u1": "Ada"})


def test_no_members_are_something_else_than_members_not_sent() -> None:
    assert read_group({"displayName": "x", "members": []}).members == ()
    assert read_group({"displayName": "x", "members": None}).members is None


@pytest.mark.parametrize(
    ("changes", "code", "param"),
    [
        ({"displayName": None}, "invalidValue", "displayName"),
        ({"displayName": " "}, "invalidValue", "displayName"),
        ({"members": 1}, "invalidValue", "members"),
        ({"members": [{}]}, "invalidValue", "members[0].value"),
        ({"members": [{"value": "g", "type": "Group"}]}, "invalidValue", "members[0].type"),
        ({"members": ["u"] * 10_001}, "tooMany", "members"),
        ({"schemas": [USER]}, "invalidSyntax", "schemas"),
    ],
)
def test_bad_groups_are_refused_by_name(changes: dict[str, Any], code: str, param: str) -> None:
    assert refusal(read_group, {"displayName": "x", **changes}) == (code, param)


# Operations -----------------------------------------------------------------------------------------------


def test_operations_are_read_in_order() -> None:
    body = {
        "schemas": [PATCH_OP],
        "Operations": [
            {"op": "Add", "path": "emails", "value": [ADA]},
            {"OP": "REMOVE", "Path": " displayName "},
            {"op": "replace", "path": " ", "value": {"active": False}, "other": 1},
            {"op": "replace", "path": "externalId", "value": None},
        ],
    }
    assert read_operations(body) == (
        PatchOperation(PatchVerb.ADD, "emails", [ADA], has_value=True),
        PatchOperation(PatchVerb.REMOVE, "displayName"),
        PatchOperation(PatchVerb.REPLACE, None, {"active": False}, has_value=True),
        PatchOperation(PatchVerb.REPLACE, "externalId", None, has_value=True),
    )


def test_there_may_be_no_operations() -> None:
    assert read_operations({"operations": []}) == ()


@pytest.mark.parametrize(
    ("operation", "code", "param"),
    [
        ("add", "invalidSyntax", "Operations[0]"),
        ({}, "invalidSyntax", "Operations[0].op"),
        ({"op": "move", "path": "x", "value": 1}, "invalidSyntax", "Operations[0].op"),
        ({"op": 1, "path": "x", "value": 1}, "invalidSyntax", "Operations[0].op"),
        ({"op": [], "path": "x", "value": 1}, "invalidSyntax", "Operations[0].op"),
        ({"op": "add", "Op": "add", "value": {}}, "invalidSyntax", "Operations[0].op"),
        ({"op": "add", "path": ["x"], "value": 1}, "invalidPath", "Operations[0].path"),
        ({"op": "add", "path": "displayName"}, "invalidValue", "Operations[0].value"),
        ({"op": "replace"}, "invalidValue", "Operations[0].value"),
        ({"op": "remove"}, "noTarget", "Operations[0]"),
        ({"op": "remove", "path": "", "value": {"members": []}}, "noTarget", "Operations[0]"),
    ],
)
def test_bad_operations_are_refused_by_place(operation: Any, code: str, param: str) -> None:
    assert refusal(read_operations, {"Operations": [operation]}) == (code, param)


@pytest.mark.parametrize("body", [{}, {"Operations": None}, {"Operations": {"op": "add"}}])
def test_operations_are_a_list(body: Any) -> None:
    assert refusal(read_operations, body) == ("invalidSyntax", "Operations")


@pytest.mark.parametrize("draft", ["urn:scim:schemas:core:1.0", "URN:SCIM:schemas:core:2.0"])
def test_schemas_may_have_the_names_of_drafts(draft: str) -> None:
    assert read_user({"schemas": [draft], "userName": ADA}).identity.user_name == ADA
    assert read_group({"schemas": [draft], "displayName": "G"}).display_name == "G"
    named = "urn:scim:schemas:core:2.0:USER"
    assert read_user({"schemas": [named], "userName": ADA}).identity.user_name == ADA
    assert refusal(read_operations, {"schemas": [draft], "Operations": []}) == ("invalidSyntax", "schemas")


def test_the_schemas_of_a_patch_are_its_own() -> None:
    assert refusal(read_operations, {"schemas": [USER], "Operations": []}) == ("invalidSyntax", "schemas")


def test_there_are_at_most_a_thousand_operations() -> None:
    operation = {"op": "replace", "value": {"active": True}}
    assert len(read_operations({"Operations": [operation] * 1000})) == 1000
    with pytest.raises(GatewayError) as caught:
        read_operations({"Operations": [operation] * 1001})
    assert (caught.value.kind, caught.value.code) == (ErrorKind.TOO_LARGE, "tooMany")
