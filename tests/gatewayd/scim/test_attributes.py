import pytest

from gatewayd.scim.attributes import (
    CORE,
    ENTERPRISE,
    GROUP,
    PASSED_OVER,
    SCHEMAS,
    USER,
    Attribute,
    AttributeType,
    Mutability,
    attributes_by_path,
    find_attribute,
)
from gatewayd.scim.records import ResourceType

ATTRIBUTES = {
    ResourceType.USER: {
        *(
            "id",
            "externalId",
            "meta",
            "meta.resourceType",
            "meta.created",
            "meta.lastModified",
            "meta.location",
        ),
        *("userName", "name", "name.formatted", "name.familyName", "name.givenName", "displayName", "active"),
        *("emails", "emails.value", "emails.type", "emails.primary"),
        *("roles", "roles.value", "roles.display", "roles.type", "roles.primary"),
        *("groups", "groups.value", "groups.$ref", "groups.display", "groups.type"),
    },
    ResourceType.GROUP: {
        *(
            "id",
            "externalId",
            "meta",
            "meta.resourceType",
            "meta.created",
            "meta.lastModified",
            "meta.location",
        ),
        *("displayName", "members", "members.value", "members.$ref", "members.display", "members.type"),
    },
}


@pytest.mark.parametrize("resource", list(ResourceType))
def test_each_resource_has_the_attributes_of_the_specification(resource: ResourceType) -> None:
    found = attributes_by_path(resource)

    assert {place.name for place in found.values()} == ATTRIBUTES[resource]
    assert all(key == place.name.lower() for key, place in found.items())


@pytest.mark.parametrize(
    ("resource", "text", "name"),
    [
        (ResourceType.USER, "userName", "userName"),
        (ResourceType.USER, "USERNAME", "userName"),
        (ResourceType.USER, "emails.TYPE", "emails.type"),
        (ResourceType.USER, f"{USER.urn}:name.givenName", "name.givenName"),
        (ResourceType.USER, f"{USER.urn.upper()}:Active", "active"),
        (ResourceType.GROUP, f"{GROUP.urn}:members.$REF", "members.$ref"),
        (ResourceType.GROUP, "displayname", "displayName"),
    ],
)
def test_a_name_is_found_in_any_case_and_with_the_schema_before_it(
    resource: ResourceType, text: str, name: str
) -> None:
    place = find_attribute(resource, text)

    assert place is not None
    assert place.name == name
    assert place.attribute.name == name.split(".")[-1]
    assert (place.parent.name if place.parent else None) == (name.split(".")[0] if "." in name else None)


@pytest.mark.parametrize(
    "text",
    [
        *("", "nickName", "emails.display", "name.", ".value", "userName.value", "members", " userName"),
        *(USER.urn, f"{USER.urn}:", f"{GROUP.urn}:displayName", f"{ENTERPRISE}:department"),
        *(f"{USER.urn}:{USER.urn}:userName", f"{CORE}:userName"),
    ],
)
def test_other_names_are_not_found(text: str) -> None:
    assert find_attribute(ResourceType.USER, text) is None


@pytest.mark.parametrize(
    ("resource", "name", "is_writable"),
    [
        (ResourceType.USER, "userName", True),
        (ResourceType.USER, "emails.value", True),
        (ResourceType.USER, "externalId", True),
        (ResourceType.USER, "id", False),
        (ResourceType.USER, "meta", False),
        (ResourceType.USER, "meta.created", False),
        (ResourceType.USER, "groups", False),
        (ResourceType.USER, "groups.value", False),
        (ResourceType.GROUP, "members", True),
        (ResourceType.GROUP, "members.value", True),
        (ResourceType.GROUP, "members.display", True),
    ],
)
def test_what_a_client_may_write(resource: ResourceType, name: str, is_writable: bool) -> None:
    place = find_attribute(resource, name)

    assert place is not None
    assert place.is_writable is is_writable


def every_attribute() -> list[Attribute]:
    return [place.attribute for resource in ResourceType for place in attributes_by_path(resource).values()]


def test_complex_attributes_alone_have_parts() -> None:
    for attribute in every_attribute():
        assert bool(attribute.parts) is (attribute.kind is AttributeType.COMPLEX), attribute.name
        assert not any(part.parts for part in attribute.parts), "parts have no parts"


def test_references_say_what_they_refer_to() -> None:
    for attribute in every_attribute():
        assert bool(attribute.refers_to) is (attribute.kind is AttributeType.REFERENCE), attribute.name


def test_nothing_that_is_required_is_read_only() -> None:
    assert [one.name for one in every_attribute() if one.is_required] == ["userName", "active", "displayName"]
    assert not any(one.is_required and one.mutability is Mutability.READ_ONLY for one in every_attribute()), (
        "nobody could give it"
    )


def test_of_a_member_what_it_is_called_changes() -> None:
    members = find_attribute(ResourceType.GROUP, "members")
    assert members is not None
    changing = [part.name for part in members.attribute.parts if part.mutability is Mutability.READ_WRITE]
    assert changing == ["display"]


def test_what_is_passed_over_is_no_attribute() -> None:
    kept = {name.split(".")[-1].lower() for resource in ResourceType for name in attributes_by_path(resource)}

    assert not kept & {name.lower() for name in PASSED_OVER}


def test_each_schema_has_its_urn() -> None:
    assert {resource: schema.urn for resource, schema in SCHEMAS.items()} == {
        ResourceType.USER: "urn:ietf:params:scim:schemas:core:2.0:User",
        ResourceType.GROUP: "urn:ietf:params:scim:schemas:core:2.0:Group",
    }
