"""What runs need of the rest of the gateway, and what they are set to do."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.chats.records import Chat
from gatewayd.events.records import EventTarget
from gatewayd.pipeline.records import ChatAnswer, ChatRequest


class ChatPipeline(Protocol):
    """Answers chat requests: the pipeline."""

    async def run(self, request: ChatRequest, actor: Actor) -> ChatAnswer:
        """Answer a request; a failure before the first chunk raises, one after it raises from `chunks`."""
        ...


class EventEmitter(Protocol):
    """Tells a user's listeners what happens."""

    async def emit(self, target: EventTarget, event: Any) -> bool:
        """Apply what the event does to the stored message, and publish it."""
        ...


class OwnedChats(Protocol):
    """Stored chats, for those who may have them."""

    async def owned(self, actor: Actor, chat_id: str) -> Chat:
        """Return a chat of the actor, or any for an administrator; not_found otherwise."""
        ...

    async def branch(self, chat_id: str, message_id: str) -> list[dict[str, Any]]:
        """Return the messages from the first one to this one, as clients see them."""
        ...


class MessageWriter(Protocol):
    """Writes the messages that runs answer."""

    async def begin(
        self,
        chat_id: str,
        message_id: str,
        parent_id: str | None,
        model: str,
        user_message: Mapping[str, Any] | None,
    ) -> object:
        """Keep the question, when there is one, and an empty answer that is being written."""
        ...

    async def save(self, chat_id: str, message_id: str, content: str) -> object:
        """Make the content what there is so far."""
        ...

    async def finish(
        self, chat_id: str, message_id: str, *, content: str | None, attributes: Mapping[str, Any]
    ) -> object:
        """Make the answer done; without a content, what is there stays."""
        ...


LoadConversation = Callable[[], Awaitable[Sequence[dict[str, Any]]]]
"""Reads the messages of a branch, `{"id", "role", "content", ...}`, the answer last."""


class RunOutlets(Protocol):
    """The outlet filters of answers to chats."""

    async def run_for_run(
        self, request: ChatRequest, actor: Actor, conversation: LoadConversation
    ) -> list[dict[str, Any]] | None:
        """Return the messages as the filters leave them, the answer last; None when no filter runs.

        `conversation` is read only when one does. A filter that fails is logged, never raised.
        """
        ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What an administrator sets for runs.

    With `is_saved_often` the content is kept while it comes, not only at its end.
    """

    is_saved_often: bool = False
    makes_titles: bool = True
    makes_tags: bool = True
    makes_follow_ups: bool = True


@dataclass(frozen=True, slots=True)
class RunContext:
    """One answer to be made: for whom, to which message of which chat; `chat` is None when none is kept."""

    request: ChatRequest
    actor: Actor
    target: EventTarget
    chat: Chat | None
    background: frozenset[str] = frozenset()
