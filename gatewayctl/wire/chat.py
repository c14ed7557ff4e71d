"""Chat requests on the wire.

With `resumable` the answer goes on when the connection breaks, and the first line of the stream has `stream`,
an object with the `id` that `/v1/chat/streams/{id}` takes.

The reply is an OpenAI chat completion, or its stream (`data:` lines that end with `[DONE]`). A failure in the
middle of a stream is a line whose object has `error`. The reply, or the first line of a stream, has `sources`
when passages of documents were used, and `warnings` when a part of the request could not be honoured.
"""

from typing import Annotated, Literal

from pydantic import FailFast, Field

from gatewayctl.wire.base import Reply, Request


class Message(Request):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Reference(Request):
    """Documents to answer from: a file by its id, or a collection by its id or name."""

    type: Literal["file", "collection"]
    id: str


class Chat(Request):
    """A question; `model` None takes the first model there is, `user` (id or e-mail) asks in their name."""

    model: str | None = None
    user: str | None = None
    messages: Annotated[list[Message], FailFast()]
    stream: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
    resumable: bool = False
    files: Annotated[list[Reference], FailFast()] = Field(default_factory=list)


class AnswerStopped(Reply):
    """The answer that was stopped and deleted."""

    id: str
