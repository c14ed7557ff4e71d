"""Schemas of SCIM resources and lists (RFC 7643, RFC 7644)."""

from typing import Any

from gatewayd.http.schemas import BOOLEAN, INTEGER, OBJECT, TEXT, Schema, listed, record


def scim_meta() -> dict[str, Any]:
    """Return the schema of `meta`."""
    return record({"resourceType": TEXT, "created": TEXT, "lastModified": TEXT, "location": TEXT})


def scim_reference() -> dict[str, Any]:
    """Return the schema of a member of a group, or of a group of a user."""
    return record({"value": TEXT, "$ref": TEXT, "display": TEXT, "type": TEXT})


def scim_user() -> dict[str, Any]:
    """Return the schema of a User; attributes that the query excludes are absent."""
    return record(
        {
            "externalId": TEXT,
            "userName": TEXT,
            "name": record({"formatted": TEXT, "familyName": TEXT, "givenName": TEXT}),
            "displayName": TEXT,
            "emails": listed(record({"value": TEXT, "type": TEXT, "primary": BOOLEAN})),
            "roles": listed(record({"value": TEXT, "display": TEXT, "type": TEXT, "primary": BOOLEAN})),
            "active": BOOLEAN,
            "groups": listed(scim_reference),
            "meta": scim_meta,
        },
        schemas=listed(TEXT),
        id=TEXT,
    )


def scim_group() -> dict[str, Any]:
    """Return the schema of a Group; attributes that the query excludes are absent."""
    return record(
        {"externalId": TEXT, "displayName": TEXT, "members": listed(scim_reference), "meta": scim_meta},
        schemas=listed(TEXT),
        id=TEXT,
    )


def scim_users() -> dict[str, Any]:
    """Return the schema of a page of users."""
    return _list_response(scim_user)


def scim_groups() -> dict[str, Any]:
    """Return the schema of a page of groups."""
    return _list_response(scim_group)


def scim_abilities() -> dict[str, Any]:
    """Return the schema of a ServiceProviderConfig."""
    supported = record(supported=BOOLEAN)
    scheme = record({"specUri": TEXT, "primary": BOOLEAN}, type=TEXT, name=TEXT, description=TEXT)
    return record(
        schemas=listed(TEXT),
        patch=supported,
        bulk=record(supported=BOOLEAN, maxOperations=INTEGER, maxPayloadSize=INTEGER),
        filter=record(supported=BOOLEAN, maxResults=INTEGER),
        changePassword=supported,
        sort=supported,
        etag=supported,
        authenticationSchemes=listed(scheme),
        meta=scim_meta,
    )


def scim_resource_type() -> dict[str, Any]:
    """Return the schema of a ResourceType."""
    return record(
        schemas=listed(TEXT),
        id=TEXT,
        name=TEXT,
        description=TEXT,
        endpoint=TEXT,
        schema=TEXT,
        schemaExtensions=listed(OBJECT),
        meta=scim_meta,
    )


def scim_resource_types() -> dict[str, Any]:
    """Return the schema of the list of resource types."""
    return _list_response(scim_resource_type)


def scim_schema() -> dict[str, Any]:
    """Return the schema of a Schema resource."""
    return record(
        schemas=listed(TEXT), id=TEXT, name=TEXT, description=TEXT, attributes=listed(OBJECT), meta=scim_meta
    )


def scim_schemas() -> dict[str, Any]:
    """Return the schema of the list of schemas."""
    return _list_response(scim_schema)


def _list_response(resource: Schema) -> dict[str, Any]:
    return record(
        schemas=listed(TEXT),
        totalResults=INTEGER,
        startIndex=INTEGER,
        itemsPerPage=INTEGER,
        Resources=listed(resource),
    )
