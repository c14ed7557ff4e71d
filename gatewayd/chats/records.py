"""Chats and their messages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from gatewayd.completions.limits import MAX_KEPT_CHARACTERS
from gatewayd.errors import ErrorKind, GatewayError

ITEM_KINDS: Final = ("statusHistory", "embeds", "files", "sources")
"""The lists of a message that events append to (2.5), each value kept as a row."""

MAX_CONTENT_CHARACTERS: Final = MAX_KEPT_CHARACTERS
"""Characters of the text of a message; one more costs the database as much as writing all of them."""

MAX_CHAT_BYTES: Final = 128 * 2**20
"""Bytes of the messages of a chat: one that holds more is read as before, and takes nothing more."""

MAX_ITEMS: Final = 5_000
MAX_ITEMS_BYTES: Final = 16 * 2**20
"""Values of one list of a message, and bytes of all of them as JSON."""


def chat_too_large(chat_id: str) -> GatewayError:
    """Return the error for a chat that holds more than MAX_CHAT_BYTES."""
    return GatewayError(
        ErrorKind.TOO_LARGE,
        f"cannot add to chat {chat_id!r}: its messages hold over {MAX_CHAT_BYTES} bytes",
        param="messages",
    )


class MessageState(StrEnum):
    """Whether somebody writes a message at this moment."""

    IDLE = ""
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    `content` is its text, `parts` the list when the content is one (`content` is then empty). `attributes`
    holds every other member of the client's object (`model`, `usage`, `error`, `followUps`, `favorite`, ...)
    but `childrenIds`, which is made of `parent_id`. `items` holds the lists of ITEM_KINDS that are not empty.
    """

    id: str
    parent_id: str | None
    role: str
    content: str = ""
    parts: list[Any] | None = None
    done: bool | None = None
    state: MessageState = MessageState.IDLE
    attributes: dict[str, Any] = field(default_factory=dict)
    items: dict[str, list[Any]] = field(default_factory=dict)
    timestamp: int = 0


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat without its messages.

    `head` holds every member of the client's `chat` object but `title`, `history` and `messages`. `tags` are
    ids: names in lower case with `_` for blanks.
    """

    id: str
    user_id: str
    title: str
    head: dict[str, Any] = field(default_factory=dict)
    current_id: str | None = None
    archived: bool = False
    pinned: bool = False
    folder_id: str | None = None
    share_id: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    last_read_at: int | None = None
    updated_at: int = 0
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class MessageChange:
    """What to change in a message; None leaves a field as it is.

    `attributes` are merged at their first level, and a None in them takes one away. `items` replace the lists
    that they name. `content` and `parts` exclude each other.
    """

    role: str | None = None
    content: str | None = None
    parts: list[Any] | None = None
    done: bool | None = None
    state: MessageState | None = None
    attributes: dict[str, Any] | None = None
    items: dict[str, list[Any]] | None = None


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag of a user's chats."""

    id: str
    name: str
    user_id: str


@dataclass(frozen=True, slots=True)
class NewChat:
    """A chat to store with its messages and tags.

    Copies of messages that are stored already may be over the limits of a message.
    """

    chat: Chat
    messages: Sequence[Message]
    tags: Sequence[Tag] = ()
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class SharedChat:
    """A chat as it was when it was shared: `document` is the whole record as clients get it."""

    id: str
    chat_id: str
    user_id: str
    document: dict[str, Any]
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class ChatQuery:
    """Which chats of a user to list: None means any. `text` is looked for in titles and contents."""

    user_id: str | None = None
    text: str = ""
    archived: bool | None = None
    pinned: bool | None = None
    shared: bool | None = None
    tags: tuple[str, ...] = ()
    folder_id: str | None = None
    sort_by: str = "updated_at"
    descending: bool = True
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ChatChange:
    """What to change in a chat; None leaves a field as it is.

    `head` and `meta` replace what is there. An empty `folder_id` or `current_id` takes it away.
    """

    title: str | None = None
    head: dict[str, Any] | None = None
    current_id: str | None = None
    archived: bool | None = None
    pinned: bool | None = None
    folder_id: str | None = None
    meta: dict[str, Any] | None = None
    last_read_at: int | None = None
