"""Events, where they go, and what listeners get."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class EventTarget:
    """Whose event it is, and of which message.

    `chat_id` and `message_id` are empty where nothing is stored. `session_id` is any text. `request_id` is
    for the log alone, empty where no request is known.
    """

    user_id: str
    chat_id: str = ""
    message_id: str = ""
    session_id: str = ""
    request_id: str = field(default="", compare=False)

    @property
    def log_fields(self) -> dict[str, str]:
        """What a line of the log says about it."""
        named = {"request_id": self.request_id, "chat_id": self.chat_id, "message_id": self.message_id}
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True, slots=True)
class Event:
    """One event (2.9). `data` is an object for every type but `chat:title` and `chat:tags`."""

    type: str
    data: Any


class Effect(StrEnum):
    """What an event does to the stored message (6.5)."""

    NONE = "none"
    APPEND_STATUS = "statusHistory"
    APPEND_CONTENT = "append"
    REPLACE_CONTENT = "replace"
    APPEND_EMBEDS = "embeds"
    APPEND_FILES = "files"
    APPEND_SOURCES = "sources"


class EventHelper(StrEnum):
    """Which helper sends an event (6.1)."""

    EMITTER = "emitter"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class EventFrame:
    """An event as listeners get it.

    `payload` is the JSON of `{"chat_id", "message_id", "data": {"type", "data"}}`, and `chat_id` what
    listeners of one chat are chosen by. Of the frames that are `about` the same, whoever comes back needs
    the newest alone; "" is about nothing else's.
    """

    chat_id: str
    payload: bytes
    about: str = ""


@dataclass(frozen=True, slots=True)
class EventCall:
    """A question to a user that waits for its answer."""

    id: str
    target: EventTarget
    event: Event
    created_at: int


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What a listener is told first: its session, and from where it goes on; `gap` when frames are lost."""

    session_id: str
    user_id: str
    resume_from: str | None
    gap: bool


Payload = Mapping[str, Any]
