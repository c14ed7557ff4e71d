"""External ids, which a provider assigns to users and groups (gatewayd-scim(7), External ids)."""

from collections.abc import Iterable
from typing import Any, Final

from gatewayd.accounts.records import Group, User
from gatewayd.accounts.texts import object_or_empty
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.scim.input_records import GroupDraft, PatchVerb, UserDraft
from gatewayd.scim.patch.steps import PatchStep

EXTERNAL_ID: Final = "externalId"
_FIELD: Final = "external_id"


def external_id(item: User | Group, provider: str) -> str | None:
    """Return the external id of a user or group at a provider, None without one."""
    found = object_or_empty(object_or_empty(item.scim).get(provider)).get(_FIELD) if provider else None
    return found if isinstance(found, str) else None


def changed_store(item: User | Group, draft: UserDraft | GroupDraft, provider: str) -> dict[str, Any] | None:
    """Return the field `scim` of an item with the external id of a draft; None without a change.

    The entries of other providers stay.
    """
    if not provider or not draft.has_external_id or draft.external_id == external_id(item, provider):
        return None
    others = {name: entry for name, entry in object_or_empty(item.scim).items() if name != provider}
    return {**others, **new_store(draft, provider)}


def new_store(draft: UserDraft | GroupDraft, provider: str) -> dict[str, Any]:
    """Return the field `scim` of a new item; empty without an external id."""
    return {} if draft.external_id is None else {provider: {_FIELD: draft.external_id}}


def check_draft(draft: UserDraft | GroupDraft, provider: str) -> None:
    """Raise not_configured if a draft has an external id and no provider is configured."""
    if draft.external_id is not None:
        check_provider(provider)


def check_provider(provider: str) -> None:
    """Raise not_configured if no provider is configured (gatewayd-scim(7), External ids)."""
    if not provider:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            "cannot store externalId: SCIM_AUTH_PROVIDER is not set",
            param=EXTERNAL_ID,
        )


def check_steps(steps: Iterable[PatchStep], provider: str) -> None:
    """Raise not_configured if a PATCH changes an external id and no provider is configured.

    Writing a blank external id is allowed.
    """
    for step in steps:
        is_blank = step.value is None or (isinstance(step.value, str) and not step.value.strip())
        if step.attribute == EXTERNAL_ID and (step.verb is PatchVerb.REMOVE or not is_blank):
            check_provider(provider)
