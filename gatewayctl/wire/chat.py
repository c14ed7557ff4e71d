"""A question to a model on the wire.

The reply is an OpenAI chat completion, or its stream (`data:` lines that end with `[DONE]`). A failure in the
middle of a stream is a line whose object has `error`.
"""

from typing import Literal

from gatewayctl.wire.base import Request


class Message(Request):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Chat(Request):
    """A question; `model` None takes the first model there is, `user` (id or e-mail) asks in their name."""

    model: str | None = None
    user: str | None = None
    messages: list[Message]
    stream: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
