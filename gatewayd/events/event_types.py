"""Table of the event types, in the order of gatewayd-plugins(7), EVENTS."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from gatewayd.events.records import Effect, EventHelper

UNSTORED_PREFIX: Final = "chat:"
"""Events whose name has this prefix are delivered and never stored; their short names are stored."""


class PayloadFault(NamedTuple):
    """Fault of a payload: the field, for example `data.content`, and the expected type."""

    field: str
    expected: str


PayloadCheck = Callable[[Any], PayloadFault | None]


@dataclass(frozen=True, slots=True)
class EventType:
    """One row of gatewayd-plugins(7), EVENTS: names, payload, sender and effect of an event type.

    `check` returns the fault of a payload. `effect` applies to the names without the prefix `chat:`.
    `external` says that external tools may send the event.
    """

    name: str
    aliases: tuple[str, ...]
    check: PayloadCheck
    helper: EventHelper = EventHelper.EMITTER
    effect: Effect = Effect.NONE
    external: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of the type."""
        return (self.name, *self.aliases)

    def effect_of(self, name: str) -> Effect:
        """Return the effect of an event that is sent with one of the names of the type."""
        return Effect.NONE if name.startswith(UNSTORED_PREFIX) else self.effect


def check_object(data: Any) -> PayloadFault | None:
    """Accept any object."""
    return None if isinstance(data, Mapping) else PayloadFault("data", "an object")


def check_title(data: Any) -> PayloadFault | None:
    """Accept `{"title"}` or the bare title."""
    return None if isinstance(data, str | Mapping) else PayloadFault("data", "an object or a string")


def check_tags(data: Any) -> PayloadFault | None:
    """Accept a list or an object of tags."""
    return None if isinstance(data, list | Mapping) else PayloadFault("data", "an object or a list")


def text_check(field: str) -> PayloadCheck:
    """Accept an object with a text in a field."""
    return _member(field, str, "a string")


def list_check(field: str) -> PayloadCheck:
    """Accept an object with a list in a field."""
    return _member(field, list, "a list")


def _member(field: str, kind: type, expected: str) -> PayloadCheck:
    def check(data: Any) -> PayloadFault | None:
        fault = check_object(data)
        if fault is None and not isinstance(data.get(field), kind):
            fault = PayloadFault(f"data.{field}", expected)
        return fault

    return check


EVENT_TYPES: Final = (
    EventType("status", (), check_object, effect=Effect.APPEND_STATUS, external=True),
    EventType("chat:completion", (), check_object),
    EventType(
        "chat:message:delta",
        ("message",),
        text_check("content"),
        effect=Effect.APPEND_CONTENT,
        external=True,
    ),
    EventType(
        "chat:message", ("replace",), text_check("content"), effect=Effect.REPLACE_CONTENT, external=True
    ),
    EventType(
        "chat:message:files", ("files",), list_check("files"), effect=Effect.APPEND_FILES, external=True
    ),
    EventType("chat:title", (), check_title),
    EventType("chat:tags", (), check_tags),
    EventType("source", ("citation",), check_object, effect=Effect.APPEND_SOURCES, external=True),
    EventType("notification", (), check_object, external=True),
    EventType("chat:message:favorite", (), check_object),
    EventType("chat:message:embeds", ("embeds",), list_check("embeds"), effect=Effect.APPEND_EMBEDS),
    EventType("chat:message:error", (), check_object),
    EventType("chat:message:follow_ups", (), check_object),
    # Events of the gateway itself about a chat.
    EventType("chat:active", (), check_object),
    EventType("chat:list", (), check_object),
    EventType("chat:reload", (), check_object),
    EventType("chat:outlet", (), check_object),
    EventType("chat:tasks:cancel", (), check_object),
    # Calls.
    EventType("confirmation", (), check_object, EventHelper.CALL),
    EventType("input", (), check_object, EventHelper.CALL),
    EventType("execute", (), text_check("code"), EventHelper.CALL),
)
"""All known types. Events of other types are delivered unchanged and never stored."""

_BY_NAME: Final = {name: row for row in EVENT_TYPES for name in row.names}


def find_type(name: str) -> EventType | None:
    """Return the row of a name or alias; None for an unknown type."""
    return _BY_NAME.get(name)


def names_of(helper: EventHelper) -> tuple[str, ...]:
    """Return the names of all types that a helper sends, in the order of the table."""
    return tuple(name for row in EVENT_TYPES if row.helper is helper for name in row.names)


def external_names() -> tuple[str, ...]:
    """Return the names of all types that external tools may send."""
    return tuple(name for row in EVENT_TYPES if row.external for name in row.names)
