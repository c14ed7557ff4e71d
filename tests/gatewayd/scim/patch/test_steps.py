from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.input_records import PatchOperation, PatchVerb
from gatewayd.scim.patch.steps import MAX_PATHS, PatchStep, parse_steps
from gatewayd.scim.records import ResourceType

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


def read(path: str | None, value: Any = None, resource: ResourceType = ResourceType.USER) -> list[PatchStep]:
    return list(parse_steps([PatchOperation(PatchVerb.REPLACE, path, value, True)], resource))


def refusal(path: str | None, value: Any = None, resource: ResourceType = ResourceType.USER) -> str | None:
    with pytest.raises(GatewayError) as caught:
        read(path, value, resource)
    return caught.value.code


@pytest.mark.parametrize(
    ("path", "attribute", "part"),
    [
        ("userName", "userName", None),
        ("USERNAME", "userName", None),
        (f"{USER}:userName", "userName", None),
        (f"{USER.upper()}:NAME.givenname", "name", "givenName"),
        ("name.familyName", "name", "familyName"),
        ("emails", "emails", None),
        ("emails.value", "emails", "value"),
        ("externalid", "externalId", None),
    ],
)
def test_a_path_names_an_attribute_or_a_part(path: str, attribute: str, part: str | None) -> None:
    (step,) = read(path, "x")
    assert (step.attribute, step.part, step.where, step.value) == (attribute, part, None, "x")


@pytest.mark.parametrize("prefix", ["", f"{USER}:"])
def test_a_path_may_select_values(prefix: str) -> None:
    (step,) = read(f'{prefix}emails[type eq "work"].value', "x")
    assert (step.attribute, step.part) == ("emails", "value")
    assert step.where is not None
    (step,) = read('EMAILS[type eq "work"]', {})
    assert (step.attribute, step.part) == ("emails", None)


@pytest.mark.parametrize(
    "path",
    [
        "title",
        "PASSWORD",
        "schemas",
        "name.middleName",
        "name.honorificPrefix",
        "emails.display",
        'emails[type eq "work"].display',
        'phoneNumbers[type eq "mobile"].value',
        'entitlements[primary eq "True"].value',
        "addresses.locality",
        f"{USER}:title",
        ENTERPRISE,
        f"{ENTERPRISE}:department",
        f"{ENTERPRISE.upper()}:manager.value",
        f"{ENTERPRISE}:colour",
        "manager",
    ],
)
def test_what_the_gateway_does_not_keep_is_passed_over(path: str) -> None:
    assert read(path, "x") == []


@pytest.mark.parametrize(
    "path",
    [
        "colour",
        "userName.value",
        "name.colour",
        "active.title",
        "emails.colour",
        'emails[type eq "work"].colour',
        'userName[type eq "work"]',
        'name[givenName eq "x"]',
        "emails[type eq",
        "emails[]",
        "emails.value.x",
        "a b",
        "[",
        ".",
        "urn:example:2.0:User:userName",
        "urn:example:2.0:User:title",
        "urn:ietf:params:scim:schemas:core:2.0:Group:displayName",
        f"{ENTERPRISE}x:department",
        USER,
        "members",
        "\0",
        "x" * 10_000,
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    assert refusal(path, "x") == "invalidPath"


@pytest.mark.parametrize(
    "path",
    ["id", "ID", "meta", "meta.created", "meta.colour", "groups", "groups.value", 'groups[value eq "g"]'],
)
def test_what_is_read_only_is_refused(path: str) -> None:
    assert refusal(path, "x") == "mutability"


def test_without_a_path_an_object_names_several() -> None:
    found = read(
        None,
        {
            "id": "o1",
            "schemas": [USER],
            "displayName": "Ada",
            "NAME.givenName": "A",
            f"{USER}:active": "False",
            'emails[type eq "work"].value': "a@b.c",
            'phoneNumbers[type eq "work"].value': "1",
            "phoneNumbers[": "1",
            ENTERPRISE: {"department": "x"},
            f"{ENTERPRISE}:department": "x",
            "title": "x",
            "colour": "red",
            "meta": {},
            USER.lower(): {"userName": "a@b.c"},
        },
    )
    assert [step.target.name for step in found] == [
        "displayName",
        "name.givenName",
        "active",
        "emails.value",
        "userName",
    ]
    assert found[3].where is not None


@pytest.mark.parametrize("value", [None, "x", 1, [], [{"active": False}]])
def test_without_a_path_there_is_an_object(value: Any) -> None:
    assert refusal(None, value) == "invalidValue"


def test_an_object_names_each_attribute_once() -> None:
    assert refusal(None, {"active": True, "Active": False}) == "invalidSyntax"


def test_a_malformed_name_in_an_object_is_refused() -> None:
    assert refusal(None, {"emails[type eq": "a@b.c"}) == "invalidPath"


def test_a_null_in_an_object_says_nothing_about_members() -> None:
    assert read(None, {"members": None}, ResourceType.GROUP) == []
    assert len(read(None, {"members": []}, ResourceType.GROUP)) == 1
    assert len(read("members", None, ResourceType.GROUP)) == 1


def test_paths_have_a_longest_length_together() -> None:
    path = f"emails[{' or '.join(['type pr'] * 100)}]"
    few = [PatchOperation(PatchVerb.REMOVE, path)] * (MAX_PATHS // len(path))
    assert len(list(parse_steps(few, ResourceType.USER))) == len(few)
    with pytest.raises(GatewayError, match="cannot accept paths") as caught:
        list(parse_steps([*few, few[0]], ResourceType.USER))
    assert (caught.value.kind, caught.value.code) == (ErrorKind.TOO_LARGE, "tooMany")


def test_plain_names_are_not_counted() -> None:
    many = [PatchOperation(PatchVerb.REPLACE, f"{USER}:displayName", "x", True)] * (MAX_PATHS // 40)
    assert len(list(parse_steps(many, ResourceType.USER))) == len(many)
