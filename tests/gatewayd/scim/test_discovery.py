"""The documents, also as an independent library of the standard reads them."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from scim2_models import Context, Resource, ResourceType, Schema, ServiceProviderConfig

from gatewayd.accounts.records import Email, Group, ProviderIdentity, Role, User
from gatewayd.scim import attributes, discovery
from gatewayd.scim.records import GroupEntry, MembershipReference, UserEntry
from gatewayd.scim.renderer import render_group, render_user

BASE = "https://ai.example.org"
ROOT = f"{BASE}/api/v1/scim/v2"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
ADA = User(
    "u1",
    "ada@x.org",
    "Ada",
    Role.USER,
    scim={"okta": {"external_id": "7"}},
    identity=ProviderIdentity("ada@x.org", "Ada", "Ada L", "Ada", "L", (Email("ada@x.org", primary=True),)),
    created_at=1,
    modified_us=1,
)


def every(found: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for attribute in found:
        yield attribute
        yield from every(attribute.get("subAttributes", ()))


def described(urn: str) -> dict[str, Any]:
    return next(schema for schema in discovery.schemas(BASE) if schema["id"] == urn)


def attribute(urn: str, name: str, part: str | None = None) -> dict[str, Any]:
    found = next(each for each in described(urn)["attributes"] if each["name"] == name)
    if part is None:
        return dict(found)
    return next(each for each in found["subAttributes"] if each["name"] == part)


def test_what_is_supported() -> None:
    config = discovery.service_provider_config(BASE)
    assert {name: config[name] for name in ("patch", "bulk", "filter", "changePassword", "sort", "etag")} == {
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": 200},
        "changePassword": {"supported": False},
        "sort": {"supported": True},
        "etag": {"supported": False},
    }
    (scheme,) = config["authenticationSchemes"]
    assert (scheme["type"], scheme["primary"]) == ("oauthbearertoken", True)
    assert all(scheme[name] for name in ("name", "description", "specUri"))
    assert config["meta"] == {
        "resourceType": "ServiceProviderConfig",
        "location": f"{ROOT}/ServiceProviderConfig",
    }
    read = ServiceProviderConfig.model_validate(config, scim_ctx=Context.RESOURCE_QUERY_RESPONSE)
    assert read.bulk is not None
    assert read.bulk.max_operations == 0


def test_resource_types() -> None:
    users, groups = discovery.resource_types(BASE)
    assert users == {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],
        "id": "User",
        "name": "User",
        "description": "An account",
        "endpoint": "/Users",
        "schema": USER,
        "schemaExtensions": [],
        "meta": {"resourceType": "ResourceType", "location": f"{ROOT}/ResourceTypes/User"},
    }
    assert (groups["id"], groups["endpoint"], groups["schema"]) == ("Group", "/Groups", GROUP)
    for each in (users, groups):
        assert ResourceType.model_validate(each, scim_ctx=Context.RESOURCE_QUERY_RESPONSE).id == each["id"]


def test_schemas_have_the_attributes_of_the_table() -> None:
    assert [schema["id"] for schema in discovery.schemas(BASE)] == [USER, GROUP]
    for resource, schema in attributes.SCHEMAS.items():
        found = described(schema.urn)
        assert [each["name"] for each in found["attributes"]] == [each.name for each in schema.attributes]
        assert found["schemas"] == ["urn:ietf:params:scim:schemas:core:2.0:Schema"]
        assert (found["name"], bool(found["description"])) == (resource.value, True)
        assert found["meta"] == {"resourceType": "Schema", "location": f"{ROOT}/Schemas/{schema.urn}"}


def test_common_attributes_are_in_no_schema() -> None:
    for schema in discovery.schemas(BASE):
        names = {each["name"] for each in schema["attributes"]}
        assert not names & {"id", "externalId", "meta", "schemas"}


def test_every_attribute_has_every_characteristic() -> None:
    wanted = {
        "name",
        "type",
        "multiValued",
        "description",
        "required",
        "mutability",
        "returned",
        "uniqueness",
    }
    for schema in discovery.schemas(BASE):
        for each in every(schema["attributes"]):
            assert wanted <= each.keys()
            assert ("caseExact" in each) is (each["type"] in {"string", "reference"})
            assert ("referenceTypes" in each) is (each["type"] == "reference")
            assert ("subAttributes" in each) is (each["type"] == "complex")


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (attribute(USER, "userName"), {"required": True, "uniqueness": "server", "caseExact": False}),
        (attribute(USER, "active"), {"type": "boolean", "required": True, "mutability": "readWrite"}),
        (attribute(USER, "groups"), {"mutability": "readOnly", "multiValued": True, "type": "complex"}),
        (attribute(USER, "groups", "$ref"), {"type": "reference", "referenceTypes": ["Group"]}),
        (attribute(USER, "emails", "type"), {"canonicalValues": ["work", "home", "other"]}),
        (attribute(GROUP, "displayName"), {"required": True, "uniqueness": "server", "returned": "default"}),
        (attribute(GROUP, "members", "value"), {"mutability": "immutable", "caseExact": True}),
        (attribute(GROUP, "members", "type"), {"canonicalValues": ["User"]}),
    ],
)
def test_characteristics(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    "shown",
    [
        render_user(UserEntry(ADA, [MembershipReference("g1", "Staff")]), "okta", BASE),
        render_user(UserEntry(ADA), "", BASE),
        render_group(GroupEntry(Group("g1", "Staff"), [MembershipReference("u1", "Ada")]), "okta", BASE),
    ],
)
def test_resources_are_what_the_schemas_say(shown: dict[str, Any]) -> None:
    """Nothing is shown that is not described, and all of it comes back from a model of the description."""
    schema = Schema.model_validate(described(shown["schemas"][0]), scim_ctx=Context.RESOURCE_QUERY_RESPONSE)
    model: type[Resource[Any]] = Resource.from_schema(schema)
    read = model.model_validate(shown, scim_ctx=Context.RESOURCE_QUERY_RESPONSE)
    again = read.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE)
    assert again.keys() == shown.keys()
    for name in shown.keys() - {"meta"}:
        assert again[name] == shown[name]
