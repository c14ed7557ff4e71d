"""Discovery resources: configuration, resource types, schemas (RFC 7643, 5, 6 and 7; RFC 7644, 4).

Their content comes from the table in `attributes`.
"""

from collections.abc import Sequence
from typing import Any, Final

from gatewayd.scim.attributes import CORE, SCHEMAS, Attribute, AttributeType, ResourceSchema
from gatewayd.scim.filters.list_query import MAX_COUNT
from gatewayd.scim.records import Resource
from gatewayd.scim.renderer import ROOT

_META_URN: Final = f"{CORE}:Schema"
# Only texts have the characteristic `caseExact`.
_WITH_CASE: Final = frozenset({AttributeType.STRING, AttributeType.REFERENCE})


def service_provider_config(base: str) -> Resource:
    """Return the supported features: PATCH, filters and sorting; no bulk, passwords or ETags."""
    return {
        "schemas": [f"{CORE}:ServiceProviderConfig"],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MAX_COUNT},
        "changePassword": {"supported": False},
        "sort": {"supported": True},
        "etag": {"supported": False},
        "authenticationSchemes": [
            {
                "type": "oauthbearertoken",
                "name": "OAuth Bearer Token",
                "description": "The SCIM token of the gateway in the header Authorization: Bearer <token>",
                "specUri": "https://www.rfc-editor.org/rfc/rfc6750",
                "primary": True,
            }
        ],
        "meta": _meta("ServiceProviderConfig", "/ServiceProviderConfig", base),
    }


def resource_types(base: str) -> Sequence[Resource]:
    """Return the resource types with their endpoints."""
    return [_resource_type(schema, base) for schema in SCHEMAS.values()]


def schemas(base: str) -> Sequence[Resource]:
    """Return the schemas of the resource types.

    `id`, `externalId` and `meta` are common attributes and belong to no schema (RFC 7643 section 3.1).
    """
    return [_schema(schema, base) for schema in SCHEMAS.values()]


def _resource_type(schema: ResourceSchema, base: str) -> Resource:
    name = schema.resource.value
    return {
        "schemas": [f"{CORE}:ResourceType"],
        "id": name,
        "name": name,
        "description": schema.description,
        "endpoint": schema.endpoint,
        "schema": schema.urn,
        "schemaExtensions": [],
        "meta": _meta("ResourceType", f"/ResourceTypes/{name}", base),
    }


def _schema(schema: ResourceSchema, base: str) -> Resource:
    return {
        "schemas": [_META_URN],
        "id": schema.urn,
        "name": schema.resource.value,
        "description": schema.description,
        "attributes": [_attribute(attribute) for attribute in schema.attributes],
        "meta": _meta("Schema", f"/Schemas/{schema.urn}", base),
    }


def _attribute(attribute: Attribute) -> dict[str, Any]:
    about: dict[str, Any] = {
        "name": attribute.name,
        "type": attribute.kind.value,
        "multiValued": attribute.is_multiple,
        "description": attribute.description,
        "required": attribute.is_required,
        "mutability": attribute.mutability.value,
        "returned": "always" if attribute.is_always_returned else "default",
        "uniqueness": "server" if attribute.is_unique else "none",
    }
    if attribute.kind in _WITH_CASE:
        about["caseExact"] = attribute.is_case_exact
    if attribute.canonical:
        about["canonicalValues"] = list(attribute.canonical)
    if attribute.refers_to:
        about["referenceTypes"] = list(attribute.refers_to)
    if attribute.parts:
        about["subAttributes"] = [_attribute(part) for part in attribute.parts]
    return about


def _meta(kind: str, path: str, base: str) -> dict[str, str]:
    return {"resourceType": kind, "location": f"{base}{ROOT}{path}"}
