"""The hook points of the pipeline: what filters, documents and tools plug into."""

from typing import Any, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model
from gatewayd.catalog.replies import Chunk, Completion
from gatewayd.chat.records import ChatRequest


class ChatFilter(Protocol):
    """A filter for one request (4.2). A failure is raised as plugin_failed or invalid_request."""

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        """Read and change the request before the source sees it."""
        ...

    async def stream(self, chunk: Chunk) -> Chunk:
        """Return the chunk to pass on: the same one, a changed one, or another."""
        ...

    async def outlet(self, completion: Completion, actor: Actor) -> None:
        """Read and change a finished answer."""
        ...


class ChatFilters(Protocol):
    """Chooses the filters of a request."""

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> "FilterChain":
        """Return the filters for the request, by priority."""
        ...


class FilterChain(Protocol):
    """The chosen filters; a chain without stream filters lets bytes pass undecoded."""

    @property
    def inlets(self) -> tuple[ChatFilter, ...]:
        """The filters with an inlet."""
        ...

    @property
    def streams(self) -> tuple[ChatFilter, ...]:
        """The filters that look at stream chunks."""
        ...

    @property
    def outlets(self) -> tuple[ChatFilter, ...]:
        """The filters that run on finished answers of direct calls, when the settings ask for it."""
        ...


class Attachments(Protocol):
    """Turns file and collection references into context."""

    async def attach(self, request: ChatRequest, actor: Actor) -> list[dict[str, Any]]:
        """Put the passages into the request's messages and return the sources (2.3).

        A reference that cannot be used adds a sentence to `request.warnings`; it is never dropped silently.
        """
        ...


class ToolBox(Protocol):
    """Puts the gateway's own tools into a request and runs the calls that the model makes."""

    async def offer(self, request: ChatRequest, model: Model, actor: Actor) -> "ToolLoop | None":
        """Return the loop that answers this request, None when the caller gets tool calls as they are."""
        ...


class ToolLoop(Protocol):
    """Answers tool calls until the model has no more."""

    async def follow_up(self, completion: Completion, request: ChatRequest) -> bool:
        """Run the calls in the completion and extend the request's messages; False when there were none."""
        ...
