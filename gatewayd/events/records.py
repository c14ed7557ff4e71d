"""Events, their targets, and the frames that subscribers get."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class EventTarget:
    """The user, chat, message and session of an event.

    `chat_id` and `message_id` are empty if nothing is stored. `session_id` is any text. `request_id` is for
    the log only, empty without a request.
    """

    user_id: str
    chat_id: str = ""
    message_id: str = ""
    session_id: str = ""
    request_id: str = field(default="", compare=False)

    @property
    def log_fields(self) -> dict[str, str]:
        """The fields of a log line about an event of this target."""
        named = {"request_id": self.request_id, "chat_id": self.chat_id, "message_id": self.message_id}
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `data` is an object for every type but `chat:title` and `chat:tags`."""

    type: str
    data: Any


class Effect(StrEnum):
    """Effect of an event on the stored message; the values name the changed list or operation."""

    NONE = "none"
    APPEND_STATUS = "statusHistory"
    APPEND_CONTENT = "append"
    REPLACE_CONTENT = "replace"
    APPEND_EMBEDS = "embeds"
    APPEND_FILES = "files"
    APPEND_SOURCES = "sources"


class EventHelper(StrEnum):
    """The plugin helper that sends an event: `__event_emitter__` or `__event_call__`."""

    EMITTER = "emitter"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class EventFrame:
    """An event for subscribers.

    `payload` is the JSON of `{"chat_id", "message_id", "data": {"type", "data"}}`; `chat_id` selects the
    subscribers of one chat. A reconnecting subscriber needs only the newest frame of each `about`; frames
    with an empty `about` are all needed.
    """

    chat_id: str
    payload: bytes
    about: str = ""


@dataclass(frozen=True, slots=True)
class FramePlace:
    """Place of a frame in the one order of all processes; orders of different epochs cannot be compared."""

    epoch: str
    order: tuple[int, int]

    @property
    def id(self) -> str:
        """The id of the frame for subscribers."""
        return f"{self.epoch}-{self.order[0]}-{self.order[1]}"


@dataclass(frozen=True, slots=True)
class MissedFrames:
    """The kept frames after a position, in order, and whether any is lost."""

    frames: Sequence[tuple[FramePlace, EventFrame]]
    is_gap: bool


@dataclass(frozen=True, slots=True)
class EventCall:
    """A call to a user that waits for its answer."""

    id: str
    target: EventTarget
    event: Event
    created_at: int


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """First message to a subscriber: its session, its resume position, `gap` for lost frames."""

    session_id: str
    user_id: str
    resume_from: str | None
    gap: bool


Payload = Mapping[str, Any]
