"""Records of the change log."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class ChangeKind(StrEnum):
    """Kinds of changes that nodes apply, with the subject of each.

    A subject of two parts is joined by "/". The subject "" stands for all subjects of the kind.
    """

    USER = "user"
    """Anything of an account that a request sees; the id of the user."""

    USER_OUT = "user_out"
    """An account that was deactivated or made pending; the id of the user."""

    USER_SIGNED_OUT = "user_signed_out"
    """An account whose sessions have all ended; the id of the user."""

    USER_REMOVED = "user_removed"
    """A removed account; the id of the user."""

    KEY = "key"
    """A key that was revoked or changed; the id of its user."""

    SESSION = "session"
    """A session that was ended; the id of its user and its own."""

    GROUP = "group"
    """The permissions of a group, or its removal; the id of the group."""

    MEMBER = "member"
    """A membership; the id of the user."""

    SETTING = "setting"
    """A stored value; its name."""

    MODEL = "model"
    """The record of a model; its id."""

    GRANT = "grant"
    """The access list of a resource; its type and its id."""

    PLUGIN = "plugin"
    """A tool or function; its family and its id."""

    TOOL_SERVER = "tool_server"
    """A tool server; its id."""

    LIMIT = "limit"
    """A limit of calls; its id."""

    SCIM_TOKEN = "scim_token"  # noqa: S105 - a name
    """A token of SCIM clients; the id of its row."""


@dataclass(frozen=True, slots=True)
class Change:
    """One row of the log. `kind` may be one that a newer version writes."""

    version: int
    kind: str
    subject: str


@dataclass(frozen=True, slots=True)
class LogReading:
    """What one query has read of the log, in one snapshot.

    `identity` names the database server, its timeline and the database: another one may have other rows under
    the same versions. `version` is the last one; `changes` are the first rows after the version that was
    asked for. `contraction` is the name of the last migration after which earlier versions cannot work, ""
    for none.
    """

    identity: str
    version: int
    contraction: str
    changes: Sequence[Change]
