"""Models of the request bodies for stored chats."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class ChatBody(BaseModel):
    """A `chat` object, or its changed members."""

    model_config = ConfigDict(extra="ignore")

    chat: Any


class NewChatBody(ChatBody):
    """A new chat."""

    folder_id: str | None = None


class ImportBody(BaseModel):
    """Records to import."""

    model_config = ConfigDict(extra="ignore")

    chats: Any


class MessageBody(BaseModel):
    """A message, or its changed members."""

    model_config = ConfigDict(extra="allow")

    content: Any


class CloneBody(BaseModel):
    """The title of a copy."""

    model_config = ConfigDict(extra="ignore")

    title: str | None = None


class TagBody(BaseModel):
    """A tag by its name."""

    model_config = ConfigDict(extra="ignore")

    name: str


class TaggedBody(TagBody):
    """A page of the chats with a tag."""

    skip: int = Field(default=0, ge=0, le=10**9)
    limit: int = Field(default=50, ge=1, le=1000)


class FolderBody(BaseModel):
    """A new folder."""

    model_config = ConfigDict(extra="ignore")

    name: str
    parent_id: str | None = None
    meta: dict[str, Any] | None = None
    data: dict[str, Any] | None = None


class FolderChangeBody(BaseModel):
    """The changed fields of a folder; `meta` and `data` are merged."""

    model_config = ConfigDict(extra="ignore")

    name: str | None = None
    meta: dict[str, Any] | None = None
    data: dict[str, Any] | None = None


class FolderParentBody(BaseModel):
    """The folder above a folder."""

    model_config = ConfigDict(extra="ignore")

    parent_id: str | None = None


class FolderExpandedBody(BaseModel):
    """Whether clients show the contents of a folder."""

    model_config = ConfigDict(extra="ignore")

    is_expanded: bool


class ChatFolderBody(BaseModel):
    """The folder of a chat."""

    model_config = ConfigDict(extra="ignore")

    folder_id: str | None = None
