"""Parsed input of clients: user and group drafts, PATCH operations, member changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gatewayd.accounts.records import ProviderIdentity
from gatewayd.scim.filters.syntax import FilterExpression


@dataclass(frozen=True, slots=True)
class UserDraft:
    """A user as a client describes it.

    `identity` holds only sent values. `active` is None if it was not sent. An `external_id` of None removes
    the external id if `has_external_id`; otherwise it was not sent.
    """

    identity: ProviderIdentity
    active: bool | None = None
    external_id: str | None = None
    has_external_id: bool = False


@dataclass(frozen=True, slots=True)
class GroupDraft:
    """A group as a client describes it; `members` are user ids, None if they were not sent.

    `displays` holds the sent display names of members, by user id.
    """

    display_name: str
    external_id: str | None = None
    has_external_id: bool = False
    members: tuple[str, ...] | None = None
    displays: Mapping[str, str] = field(default_factory=dict)


class PatchVerb(StrEnum):
    """The kind of an operation (RFC 7644 section 3.5.2)."""

    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """One operation of a PATCH request; `has_value` distinguishes a null from an absent value."""

    verb: PatchVerb
    path: str | None = None
    value: Any = None
    has_value: bool = False


@dataclass(frozen=True, slots=True)
class MemberChange:
    """One change of the members of a group: ADD or REMOVE these, or REPLACE all by these.

    A REMOVE with `where` removes the members that the filter selects; its names are sub-attributes of a
    member. `displays` holds the sent display names of added members, by user id.

    With `is_naming` the change sets the display name of the members that `where` selects (None: all) to
    `display`; None restores the display name of the account.
    """

    verb: PatchVerb
    user_ids: tuple[str, ...] = ()
    where: FilterExpression | None = None
    displays: Mapping[str, str] = field(default_factory=dict)
    is_naming: bool = False
    display: str | None = None
