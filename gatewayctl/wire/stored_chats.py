"""Stored chats on the wire.

An export is a stream (`data:` lines that end with `[DONE]`) of whole chats in the format of the public API;
`ChatImport` accepts such chats. A failure within the stream is a line with an object that has `error`.
"""

from typing import Any

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written


class StoredChat(Reply):
    """A chat without its messages; `user` is the e-mail of the owner, "" if the account is removed."""

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
    """One message; `content` is its text, that of all text parts if it has several parts.

    `current`: it belongs to the current branch. `status` has the reports during its generation
    (`{"description", "done", ...}`), `sources` its citations, `error` the reason of a failure.
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
    """Chats to export: one by its id, else those of a user (id or e-mail), else all."""

    id: str | None = None
    user: str | None = None


class ChatImport(Request):
    """Whole chats to store for a user (id or e-mail), all or none; they get new ids."""

    user: str
    chats: list[dict[str, Any]]


class ChatsImported(Written):
    """The created chats, in the order of the request."""

    chats: list[StoredChat]
