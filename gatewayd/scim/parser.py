"""Parser of messages from clients: users, groups and PATCH requests (RFC 7644 sections 3.3 and 3.5).

Names may be in any case and have the URN of the schema. Attributes that the gateway does not store, those of
schema extensions and read-only ones are ignored (RFC 7644 section 3.3). Errors are invalid_request, code
`invalidSyntax` or `invalidValue`, and too_large; they name the attribute.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from gatewayd.accounts.records import ProviderIdentity
from gatewayd.errors import invalid, shorten
from gatewayd.scim.attributes import SCHEMAS, find_attribute
from gatewayd.scim.input_records import GroupDraft, PatchOperation, PatchVerb, UserDraft
from gatewayd.scim.records import ResourceType
from gatewayd.scim.roles import read_roles
from gatewayd.scim.values import (
    check_attributes,
    invalid_value,
    members_by_name,
    read_emails,
    read_external_id,
    read_flag,
    read_members,
    read_text,
    read_user_name,
    require_text,
    settle_primary,
    too_many,
)

PATCH_OP: Final = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
MAX_OPERATIONS: Final = 1000
DRAFT_SCHEMAS: Final = ("urn:scim:schemas:core:1.0", "urn:scim:schemas:core:2.0")
"""Schema URNs of drafts of the standard, which OneLogin still sends."""
NAME_PARTS: Final = ("formatted", "familyName", "givenName")


def read_user(body: Mapping[str, Any], exempt: Collection[str] = ()) -> UserDraft:
    """Return the user that a resource describes; absent, null and blank values are equivalent.

    A null or blank `externalId` removes it. A password is ignored. Addresses in `exempt` are not checked.
    """
    fields = _fields(body, ResourceType.USER)
    active = fields.get("active")
    return UserDraft(
        identity=_identity(fields, exempt),
        active=None if active is None else read_flag(active, "active"),
        external_id=read_external_id(fields.get("externalId")),
        has_external_id="externalId" in fields,
    )


def read_group(body: Mapping[str, Any]) -> GroupDraft:
    """Return the group that a resource describes; null `members` count as absent, [] as no members."""
    fields = _fields(body, ResourceType.GROUP)
    members = fields.get("members")
    sent = read_members(members)
    return GroupDraft(
        display_name=require_text(read_text(fields.get("displayName"), "displayName"), "displayName"),
        external_id=read_external_id(fields.get("externalId")),
        has_external_id="externalId" in fields,
        members=None if members is None else sent.user_ids,
        displays=sent.displays,
    )


def read_operations(body: Mapping[str, Any]) -> tuple[PatchOperation, ...]:
    """Return the operations of a PATCH request in order, none to 1000 of them.

    A blank path counts as absent. Raises invalid_request, code `invalidSyntax`, `invalidPath`, `invalidValue`
    (an add or replace without a value) or `noTarget` (a remove without a path), and too_large, code
    `tooMany`.
    """
    _check_object(body)
    check_schemas(body, PATCH_OP)
    listed = members_by_name(body, ("Operations",)).get("Operations")
    if not isinstance(listed, list):
        raise _invalid_syntax("Operations", "it is not a list of operations")
    if len(listed) > MAX_OPERATIONS:
        raise too_many("Operations", MAX_OPERATIONS)
    return tuple(_operation(item, f"Operations[{index}]") for index, item in enumerate(listed))


def check_schemas(body: Mapping[str, Any], *urns: str) -> None:
    """Raise invalid_request if `schemas` is present and contains none of `urns`."""
    schemas = members_by_name(body, ("schemas",)).get("schemas")
    if schemas is None:
        return
    if not isinstance(schemas, list) or not all(isinstance(each, str) for each in schemas):
        raise _invalid_syntax("schemas", "it is not a list of texts")
    if {urn.lower() for urn in urns}.isdisjoint(each.lower() for each in schemas):
        raise _invalid_syntax("schemas", f"{urns[0]} is not in it")


def _fields(body: Mapping[str, Any], resource: ResourceType) -> dict[str, Any]:
    """Return the writable attributes of a resource, by name in the case of the attribute table."""
    _check_object(body)
    check_schemas(body, SCHEMAS[resource].urn, *DRAFT_SCHEMAS, f"{DRAFT_SCHEMAS[-1]}:{resource}")
    check_attributes(body)
    fields: dict[str, Any] = {}
    for key, value in body.items():
        target = find_attribute(resource, key)
        if target is None or target.parent is not None or not target.is_writable:
            continue
        if target.name in fields:
            raise _invalid_syntax(target.name, "it occurs twice")
        fields[target.name] = value
    return fields


def _identity(fields: Mapping[str, Any], exempt: Collection[str]) -> ProviderIdentity:
    names = read_name(fields.get("name"))
    return ProviderIdentity(
        user_name=read_user_name(fields.get("userName"), exempt),
        display_name=read_text(fields.get("displayName"), "displayName"),
        formatted_name=names.get("formatted"),
        given_name=names.get("givenName"),
        family_name=names.get("familyName"),
        emails=settle_primary(read_emails(fields.get("emails"), exempt)),
        roles=read_roles(fields.get("roles")),
    )


def read_name(value: Any) -> dict[str, str | None]:
    """Return the sent sub-attributes of a name; null and blank ones are None."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid_value("name", "it is not an object")
    parts = members_by_name(value, NAME_PARTS, "name")
    return {part: read_text(item, f"name.{part}") for part, item in parts.items()}


def _operation(value: Any, name: str) -> PatchOperation:
    if not isinstance(value, dict):
        raise _invalid_syntax(name, "it is not an object")
    fields = members_by_name(value, ("op", "path", "value"), name)
    verb = _verb(fields.get("op"), f"{name}.op")
    path = fields.get("path")
    if path is not None and not isinstance(path, str):
        raise invalid(
            f"cannot accept {name}.path: it is not a text", param=f"{name}.path", code="invalidPath"
        )
    operation = PatchOperation(verb, (path or "").strip() or None, fields.get("value"), "value" in fields)
    if verb is PatchVerb.REMOVE and operation.path is None:
        raise invalid(f"cannot accept {name}: a remove needs a path", param=name, code="noTarget")
    if verb is not PatchVerb.REMOVE and not operation.has_value:
        raise invalid_value(f"{name}.value", "it is required")
    return operation


def _verb(value: Any, name: str) -> PatchVerb:
    try:
        return PatchVerb(value.strip().lower() if isinstance(value, str) else value)
    except ValueError as error:
        shown = repr(shorten(value)) if isinstance(value, str) else "it"
        raise _invalid_syntax(name, f"{shown} is neither add, remove nor replace") from error


def _check_object(body: Any) -> None:
    if not isinstance(body, Mapping):
        raise _invalid_syntax("the body", "it is not an object")


def _invalid_syntax(name: str, reason: str) -> Exception:
    return invalid(f"cannot accept {name}: {reason}", param=name, code="invalidSyntax")
