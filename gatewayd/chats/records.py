"""Records of chats, messages, tags and shared snapshots."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from gatewayd.completions.limits import MAX_KEPT_CHARACTERS
from gatewayd.errors import ErrorKind, GatewayError

ITEM_KINDS: Final = ("statusHistory", "embeds", "files", "sources")
"""Lists of a message that events append to, one row a value (gatewayd-plugins(7), EVENTS)."""

MAX_CONTENT_CHARACTERS: Final = MAX_KEPT_CHARACTERS
"""Maximum length of a message text; each appended character makes the database write all of the text."""

MAX_CHAT_BYTES: Final = 128 * 2**20
"""Maximum size of the messages of a chat in bytes; a larger chat stays readable but accepts no writes."""

MAX_ITEMS: Final = 5_000
MAX_ITEMS_BYTES: Final = 16 * 2**20
"""Maximum number of values in one list of a message, and of bytes of these values together as JSON."""


def chat_too_large(chat_id: str) -> GatewayError:
    """Return the error for a chat whose messages exceed MAX_CHAT_BYTES."""
    return GatewayError(
        ErrorKind.TOO_LARGE,
        f"cannot add to chat {chat_id!r}: its messages hold over {MAX_CHAT_BYTES} bytes",
        param="messages",
    )


class MessageState(StrEnum):
    """Whether a run is writing the message at this moment."""

    IDLE = ""
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    `content` is the text. `parts` is the list of content parts, in which case `content` is empty.
    `attributes` holds every other member of the client's object (`model`, `usage`, `error`, `followUps`,
    `favorite`, ...) except `childrenIds`, which is derived from `parent_id`. `items` holds the non-empty
    lists of ITEM_KINDS.
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


class MessageLink(NamedTuple):
    """The place of a message in the tree of its chat."""

    id: str
    parent_id: str | None


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat without its messages.

    `head` holds every member of the client's `chat` object except `title`, `history` and `messages`. `tags`
    holds tag ids: names in lower case with `_` for blanks.
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
    """Changes to a message; None leaves a field as it is.

    `attributes` are merged at their first level; None as a value removes the attribute. `items` replaces the
    lists that it names. `content` and `parts` exclude each other.
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

    With `is_copy` the messages may exceed the message limits, because they are copies of stored ones.
    """

    chat: Chat
    messages: Sequence[Message]
    tags: Sequence[Tag] = ()
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class SharedChat:
    """A snapshot of a chat at the time of sharing; `document` is the whole record as clients get it."""

    id: str
    chat_id: str
    user_id: str
    document: dict[str, Any]
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class ChatQuery:
    """A query for chats of a user; None means any. `text` is searched in titles and contents.

    `folder_ids` finds the chats of these folders, `folder_name` those of the user's folders with this name in
    the form of `folders.name_key`. With `is_loose` only chats outside folders are found.
    """

    user_id: str | None = None
    text: str = ""
    archived: bool | None = None
    pinned: bool | None = None
    shared: bool | None = None
    tags: tuple[str, ...] = ()
    folder_ids: tuple[str, ...] | None = None
    folder_name: str | None = None
    is_loose: bool = False
    sort_by: str = "updated_at"
    descending: bool = True
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ChatChange:
    """Changes to a chat; None leaves a field as it is.

    `head` and `meta` are replaced whole. An empty `folder_id` or `current_id` clears the field.
    """

    title: str | None = None
    head: dict[str, Any] | None = None
    current_id: str | None = None
    archived: bool | None = None
    pinned: bool | None = None
    folder_id: str | None = None
    meta: dict[str, Any] | None = None
    last_read_at: int | None = None


@dataclass(frozen=True, slots=True)
class ChatFolder:
    """A folder of chats of a user.

    `meta` and `data` belong to clients (`{"icon"}`, `{"system_prompt", "files"}`). Lists leave `data` out.
    """

    id: str
    user_id: str
    name: str
    parent_id: str | None = None
    is_expanded: bool = False
    meta: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    updated_at: int = 0
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class FavouriteMessage:
    """A message that its user marked as a favourite; `text` is the beginning of its content."""

    chat_id: str
    title: str
    folder_id: str | None
    message_id: str
    role: str
    model: str
    text: str
    timestamp: int


@dataclass(frozen=True, slots=True)
class MatchedMessage:
    """The newest message of a chat that contains a searched text, with the text around the first match."""

    chat_id: str
    message_id: str
    snippet: str
