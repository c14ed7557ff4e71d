"""Stored chats on the wire.

An export is a stream (`data:` lines that end with `[DONE]`) of whole chats, each in the shape in which
clients of the public API get it; `ChatImport` takes such chats again. A failure in the middle of it is a line
whose object has `error`.
"""

from typing import Any

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written


class StoredChat(Reply):
    """A chat without its messages; `user` is the owner's e-mail, "" when the account is gone."""

    id: str
    title: str
    user_id: str
    user: str = ""
    archived: bool = False
    pinned: bool = False
    tags: list[str] = Field(default_factory=list)
    updated_at: str | None = None
    created_at: str | None = None


class StoredChatList(Reply):
    """Chats, last changed first; `total` counts those on other pages, too."""

    chats: list[StoredChat]
    total: int = 0


class StoredMessage(Reply):
    """One message; `content` is its text, that of all text parts when it has several parts.

    `current` tells whether it belongs to the branch that is shown. `status` has what was reported while it
    was made (`{"description", "done", ...}`), `sources` what it cites, `error` why it failed.
    """

    id: str
    parent_id: str | None = None
    role: str
    content: str = ""
    model: str | None = None
    done: bool | None = None
    current: bool = True
    error: str | None = None
    status: list[Any] = Field(default_factory=list)
    sources: list[Any] = Field(default_factory=list)
    files: list[Any] = Field(default_factory=list)
    embeds: list[Any] = Field(default_factory=list)
    created_at: str | None = None


class StoredChatDetail(StoredChat):
    """A chat with the messages of its current branch, or with all, each after its parent."""

    current_id: str | None = None
    messages: list[StoredMessage] = Field(default_factory=list)


class StoredChatWritten(Written, StoredChat):
    """A chat after a write, or as it was before it was removed."""


class ChatExport(Request):
    """Which chats to give out: one by its id, else those of a user (id or e-mail), else all."""

    id: str | None = None
    user: str | None = None


class ChatImport(Request):
    """Whole chats to keep for a user (id or e-mail), all or none; they get new ids."""

    user: str
    chats: list[dict[str, Any]]


class ChatsImported(Written):
    """The chats that were made, in the order in which they were given."""

    chats: list[StoredChat]
