"""The identifiers that a provider gives to users and groups (gatewayd-scim(7), External ids)."""

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
    """Return the identifier that a provider gave a user or a group."""
    found = object_or_empty(object_or_empty(item.scim).get(provider)).get(_FIELD) if provider else None
    return found if isinstance(found, str) else None


def changed_store(item: User | Group, draft: UserDraft | GroupDraft, provider: str) -> dict[str, Any] | None:
    """Return the per-provider store of an item as a draft wants it; None when it stays as it is.

    What other providers have in it stays.
    """
    if not provider or not draft.has_external_id or draft.external_id == external_id(item, provider):
        return None
    others = {name: entry for name, entry in object_or_empty(item.scim).items() if name != provider}
    return {**others, **new_store(draft, provider)}


def new_store(draft: UserDraft | GroupDraft, provider: str) -> dict[str, Any]:
    """Return the per-provider store of what is new; empty without an identifier."""
    return {} if draft.external_id is None else {provider: {_FIELD: draft.external_id}}


def check_draft(draft: UserDraft | GroupDraft, provider: str) -> None:
    """Raise not_configured when a draft has an identifier and no provider is set."""
    if draft.external_id is not None:
        check_provider(provider)


def check_provider(provider: str) -> None:
    """Raise not_configured when no provider is set (gatewayd-scim(7), External ids)."""
    if not provider:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            "cannot keep externalId: SCIM_AUTH_PROVIDER is not set",
            param=EXTERNAL_ID,
        )


def check_steps(steps: Iterable[PatchStep], provider: str) -> None:
    """Raise not_configured when a PATCH is about an identifier and no provider is set.

    To write nothing where there can be nothing is no matter.
    """
    for step in steps:
        is_blank = step.value is None or (isinstance(step.value, str) and not step.value.strip())
        if step.attribute == EXTERNAL_ID and (step.verb is PatchVerb.REMOVE or not is_blank):
            check_provider(provider)
