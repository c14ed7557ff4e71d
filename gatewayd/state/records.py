"""Records of declarative state: objects, planned changes and plans, and the paths that errors name."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError

MASK: Final = "********"
"""Replacement for a secret value in a plan."""

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_LOCATED: Final = "state"
"""Code of an error whose message names the path already."""

Fields = Mapping[str, Any]
"""The fields of one object by name; an absent field stays as it is."""


class StateAction(StrEnum):
    """What a plan does with an object; `report` names a difference that applying does not settle."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class StateObject:
    """An object as it is. `secrets` are the fields whose values no export and no plan shows.

    An object that is not the document's `own` to hold, such as a plugin from a file, is neither exported nor
    deleted.
    """

    fields: Fields
    secrets: frozenset[str] = frozenset()
    is_own: bool = True


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field before and after the change."""

    name: str
    before: Any
    after: Any
    is_secret: bool = False

    @property
    def shown(self) -> tuple[Any, Any]:
        """The two values without secrets."""
        if not self.is_secret:
            return self.before, self.after
        return (None if self.before in (None, "", {}) else MASK), MASK


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """A planned change of one object; `path` is the place of the object in the document."""

    table: str
    name: str
    action: StateAction
    path: str
    fields: tuple[FieldChange, ...] = ()

    @property
    def values(self) -> dict[str, Any]:
        """The new values by field."""
        return {each.name: each.after for each in self.fields}


@dataclass(frozen=True, slots=True)
class StatePlan:
    """The changes in the order in which they are made, and the digest that names them.

    `notes` are sentences about what the plan leaves out.
    """

    changes: tuple[ObjectChange, ...] = ()
    notes: tuple[str, ...] = ()
    digest: str = ""

    @property
    def writes(self) -> tuple[ObjectChange, ...]:
        """The changes that applying makes."""
        return tuple(each for each in self.changes if each.action is not StateAction.REPORT)


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """The objects of one table, before and after, by their names in the document."""

    held: Mapping[str, StateObject] = field(default_factory=dict)
    wanted: Mapping[str, Fields] = field(default_factory=dict)
    leaving: tuple[str, ...] = ()


def join_path(*parts: str) -> str:
    """Return a path of the document as a dotted key of TOML, for example `users."a@example.com".role`."""
    return ".".join(part if _BARE_KEY.fullmatch(part) else _quoted(part) for part in parts)


def refused(path: str, reason: str) -> GatewayError:
    """Return the error for a part of the document."""
    return GatewayError(
        ErrorKind.INVALID_REQUEST, f"cannot apply {path}: {reason}", param=path, code=_LOCATED
    )


@contextmanager
def located(path: str, fields: Mapping[str, str] | None = None) -> Iterator[None]:
    """Name the path of the document in each GatewayError of the block, once.

    `fields` are the fields of the document by the parameters that errors of a service name.
    """
    try:
        yield
    except GatewayError as error:
        if error.code == _LOCATED:
            raise
        name = (fields or {}).get(error.param or "")
        place = f"{path}.{name}" if name else path
        # A name that the document refers to is no object that the caller asked for.
        kind = ErrorKind.INVALID_REQUEST if error.kind is ErrorKind.NOT_FOUND else error.kind
        raise GatewayError(
            kind, f"cannot apply {place}: {error.full_message}", param=place, code=_LOCATED
        ) from error


def _quoted(part: str) -> str:
    return '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'
