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
