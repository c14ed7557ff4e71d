"""What a client wants a resource to be, once its message is understood."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gatewayd.accounts.records import ProviderIdentity
from gatewayd.scim.filters.syntax import FilterExpression


@dataclass(frozen=True, slots=True)
class UserDraft:
    """A user as a client describes it.

    `identity` has what was sent and nothing made up. `active` is None when it was not sent. An
    `external_id` of None takes the external id away when `has_external_id`, and says nothing otherwise.
    """

    identity: ProviderIdentity
    active: bool | None = None
    external_id: str | None = None
    has_external_id: bool = False


@dataclass(frozen=True, slots=True)
class GroupDraft:
    """A group as a client describes it; `members` are ids of users, None when they were not sent.

    `displays` is what the client calls some of them, by user id.
    """

    display_name: str
    external_id: str | None = None
    has_external_id: bool = False
    members: tuple[str, ...] | None = None
    displays: Mapping[str, str] = field(default_factory=dict)


class PatchVerb(StrEnum):
    """What an operation does (RFC 7644 section 3.5.2)."""

    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """One operation of a PATCH request, as it was sent; `has_value` tells a null from no value."""

    verb: PatchVerb
    path: str | None = None
    value: Any = None
    has_value: bool = False


@dataclass(frozen=True, slots=True)
class MemberChange:
    """One change of a group's members: ADD or REMOVE these, or REPLACE all by these.

    A REMOVE with `where` removes the members for which it holds; its names are the parts of a member.
    `displays` is what the client calls some of those whom it adds, by user id.

    When `is_naming`, the members stay: those for which `where` holds, None all, are called `display` from now
    on, None as their accounts are.
    """

    verb: PatchVerb
    user_ids: tuple[str, ...] = ()
    where: FilterExpression | None = None
    displays: Mapping[str, str] = field(default_factory=dict)
    is_naming: bool = False
    display: str | None = None
