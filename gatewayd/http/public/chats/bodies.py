"""Models of the request bodies for stored chats."""

from typing import Any

from pydantic import ConfigDict, Field

from gatewayd.http.body import RequestBody


class ChatBody(RequestBody):
    """A `chat` object, or its changed members."""

    chat: Any


class NewChatBody(ChatBody):
    """A new chat."""

    folder_id: str | None = None


class ImportBody(RequestBody):
    """Records to import."""

    chats: Any


class MessageBody(RequestBody):
    """A message, or its changed members."""

    model_config = ConfigDict(extra="allow")

    content: Any


class CloneBody(RequestBody):
    """The title of a copy."""

    title: str | None = None


class TagBody(RequestBody):
    """A tag by its name."""

    name: str


class TaggedBody(TagBody):
    """A page of the chats with a tag."""

    skip: int = Field(default=0, ge=0, le=10**9)
    limit: int = Field(default=50, ge=1, le=1000)


class FolderBody(RequestBody):
    """A new folder."""

    name: str
    parent_id: str | None = None
    meta: dict[str, Any] | None = None
    data: dict[str, Any] | None = None


class FolderChangeBody(RequestBody):
    """The changed fields of a folder; `meta` and `data` are merged."""

    name: str | None = None
    meta: dict[str, Any] | None = None
    data: dict[str, Any] | None = None


class FolderParentBody(RequestBody):
    """The folder above a folder."""

    parent_id: str | None = None


class FolderExpandedBody(RequestBody):
    """Whether clients show the contents of a folder."""

    is_expanded: bool


class ChatFolderBody(RequestBody):
    """The folder of a chat."""

    folder_id: str | None = None
