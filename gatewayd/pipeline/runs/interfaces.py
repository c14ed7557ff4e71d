"""Interfaces that runs need from the rest of the gateway, and the options of runs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.chats.records import Chat
from gatewayd.events.records import EventTarget
from gatewayd.nodes.records import RunClaim
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.tasks import TaskInfo, TaskOwner


class ChatPipeline(Protocol):
    """The pipeline as runs call it."""

    async def run(self, request: ChatRequest, actor: Actor) -> ChatAnswer:
        """Answer a request; an error before the first chunk raises here, a later one raises from `chunks`."""
        ...


class EventEmitter(Protocol):
    """Sends events to a user's subscribers."""

    async def emit(self, target: EventTarget, event: Any) -> bool:
        """Apply the effect of the event to the stored message, and publish the event."""
        ...

    def withdraw_calls(self, target: EventTarget) -> None:
        """Cancel the unanswered calls of a message whose answer has been stopped."""
        ...


class RunRegister(Protocol):
    """Claims of messages, which the runs of all nodes respect."""

    async def claim(self, owners: Sequence[TaskOwner]) -> Sequence[RunClaim]:
        """Claim messages for new runs of this node, in order; earlier runs of other nodes are over."""
        ...

    async def end(self, claim: RunClaim) -> None:
        """Give a message back after the end of its run; never raises GatewayError."""
        ...

    def fenced(self, claim: RunClaim) -> AbstractAsyncContextManager[None]:
        """Run a block that writes the answer; conflict when another run has claimed the message."""
        ...


class RemoteRuns(Protocol):
    """The tasks of other nodes."""

    async def elsewhere(
        self, *, chat_id: str | None = None, task_id: str | None = None
    ) -> Sequence[TaskInfo]:
        """Return the tasks of other nodes, oldest first: all, those of one chat, or one."""
        ...

    async def stop_elsewhere(self, task_id: str) -> bool:
        """Have another node stop a task, and wait for its end; False without the task."""
        ...


class OwnedChats(Protocol):
    """Stored chats with access checks."""

    async def owned(self, actor: Actor, chat_id: str) -> Chat:
        """Return a chat of the actor, or any chat for an administrator; raise not_found otherwise."""
        ...

    async def branch(self, chat_id: str, message_id: str) -> list[dict[str, Any]]:
        """Return the messages from the root to this message, as clients see them."""
        ...


class MessageWriter(Protocol):
    """Writes the answers of runs to their messages."""

    async def begin(
        self,
        chat_id: str,
        message_id: str,
        parent_id: str | None,
        model: str,
        user_message: Mapping[str, Any] | None,
    ) -> object:
        """Store the question, if there is one, and an empty answer in the state RUNNING."""
        ...

    async def save(self, chat_id: str, message_id: str, content: str) -> object:
        """Store the partial content."""
        ...

    async def finish(
        self, chat_id: str, message_id: str, *, content: str | None, attributes: Mapping[str, Any]
    ) -> object:
        """Mark the answer as done; without `content` the stored text stays."""
        ...


LoadConversation = Callable[[], Awaitable[Sequence[dict[str, Any]]]]
"""Reads the messages of a branch, `{"id", "role", "content", ...}`, the answer last."""


class RunOutlets(Protocol):
    """Runs the outlet filters of chat answers."""

    async def run_for_run(
        self, request: ChatRequest, actor: Actor, conversation: LoadConversation
    ) -> list[dict[str, Any]] | None:
        """Return the messages after the filters, the answer last; None if no filter runs.

        `conversation` is read only if a filter runs. A failing filter is logged and raises nothing.
        """
        ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of runs that an administrator sets.

    With `is_saved_often` the content is saved during the stream, not only at its end.
    """

    is_saved_often: bool = False
    makes_titles: bool = True
    makes_tags: bool = True
    makes_follow_ups: bool = True


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run: its request, its user, its target message and the claim of it.

    `chat` is None if the chat is not stored.
    """

    request: ChatRequest
    actor: Actor
    target: EventTarget
    chat: Chat | None
    claim: RunClaim
    background: frozenset[str] = frozenset()
