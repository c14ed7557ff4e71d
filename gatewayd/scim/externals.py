"""The identifiers that a provider gives to users and groups (interface specification 2.3 and 4.10)."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gatewayd.accounts.records import Group, User
from gatewayd.errors import GatewayError, Kind
from gatewayd.scim.attributes import SCHEMAS, find
from gatewayd.scim.drafts import GroupDraft, Operation, UserDraft
from gatewayd.scim.records import ResourceType

EXTERNAL_ID: Final = "externalId"
_FIELD: Final = "external_id"


def external_id(item: User | Group, provider: str) -> str | None:
    """Return the identifier that a provider gave a user or a group."""
    entry = (item.scim or {}).get(provider) if provider else None
    found = entry.get(_FIELD) if isinstance(entry, Mapping) else None
    return found if isinstance(found, str) else None


def changed_store(item: User | Group, draft: UserDraft | GroupDraft, provider: str) -> dict[str, Any] | None:
    """Return the per-provider store of an item as a draft wants it; None when it stays as it is.

    What other providers have in it stays.
    """
    if not provider or not draft.has_external_id or draft.external_id == external_id(item, provider):
        return None
    others = {name: entry for name, entry in (item.scim or {}).items() if name != provider}
    return {**others, **new_store(draft, provider)}


def new_store(draft: UserDraft | GroupDraft, provider: str) -> dict[str, Any]:
    """Return the per-provider store of what is new; empty without an identifier."""
    return {} if draft.external_id is None else {provider: {_FIELD: draft.external_id}}


def check_draft(draft: UserDraft | GroupDraft, provider: str) -> None:
    """Raise not_configured when a draft has an identifier and nobody says whose (4.10, rule 4)."""
    if draft.external_id is not None:
        check_provider(provider)


def check_provider(provider: str) -> None:
    """Raise not_configured when nobody says whose the identifiers are (4.10, rule 4)."""
    if not provider:
        raise GatewayError(
            Kind.NOT_CONFIGURED, "cannot keep externalId: SCIM_AUTH_PROVIDER is not set", param=EXTERNAL_ID
        )


def mentions(operations: Iterable[Operation], resource: ResourceType, name: str) -> bool:
    """Tell whether PATCH operations are about an attribute, by path or by a key of a value."""
    return any(_is_about(operation, resource, name) for operation in operations)


def _is_about(operation: Operation, resource: ResourceType, name: str) -> bool:
    urn = SCHEMAS[resource].urn.lower()
    if operation.path is not None and operation.path.strip().lower() != urn:
        return _is_named(operation.path, resource, name)
    return _has_key(operation.value, resource, name)


def _has_key(value: Any, resource: ResourceType, name: str) -> bool:
    if not isinstance(value, Mapping):
        return False
    urn = SCHEMAS[resource].urn.lower()
    return any(
        _is_named(key, resource, name) or (key.lower() == urn and _has_key(inner, resource, name))
        for key, inner in value.items()
    )


def _is_named(text: str, resource: ResourceType, name: str) -> bool:
    place = find(resource, text.strip())
    return place is not None and place.name == name
