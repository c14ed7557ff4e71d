"""The hook points of the pipeline: what filters, documents and tools plug into."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.pipeline.records import ChatRequest, ToolStep


class RunLimiter(Protocol):
    """Knows how many answers an account may have that no request waits for."""

    def begin_run(self, account: str) -> Callable[[], None]:
        """Count an answer; what is returned is to be called at its end.

        Raises rate_limited over a bound of the account, unavailable when there is no room.
        """
        ...


class ChatFilter(Protocol):
    """A filter for one request (4.2). A failure is raised as plugin_failed or invalid_request."""

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        """Read and change the request before the source sees it."""
        ...

    async def stream(self, chunk: CompletionChunk) -> CompletionChunk:
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

    async def are_on(self, model_id: str) -> bool:
        """Tell whether filters run for requests to a model that switch none on."""
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

    @property
    def handles_files(self) -> bool:
        """Whether one of the filters reads the files of the request itself, so that they are not attached."""
        ...


class Attachments(Protocol):
    """Turns file and collection references into context."""

    async def attach(
        self, request: ChatRequest, actor: Actor, found: Sequence[dict[str, Any]] = ()
    ) -> list[dict[str, Any]]:
        """Put the passages into the request's messages and return the sources (2.3), those in `found` first.

        A reference that cannot be used adds a sentence to `request.warnings`; it is never dropped silently.
        """
        ...


class ToolRunner(Protocol):
    """Runs the calls of tools that a model makes."""

    async def run(self, calls: Sequence[Body], messages: list[Any]) -> Sequence[ToolStep]:
        """Run the calls of one round at the same time and return what came of them, in their order.

        A call is `{"id", "type", "function": {"name", "arguments": JSON text}}`; `messages` are those that
        the model has seen. What goes wrong in a call is its result. When cancelled, all are stopped.
        """
        ...


@dataclass(slots=True)
class ToolUse:
    """What the gateway's own tools do for one request.

    `runner` runs the calls that the model makes, `iterations` rounds at most; it is None when the caller gets
    them as they are. `sources` are what came of calls that were run before the model is asked. With
    `handles_files` one of the tools reads the files of the request itself.
    """

    runner: ToolRunner | None = None
    iterations: int = 256
    sources: list[dict[str, Any]] = field(default_factory=list)
    handles_files: bool = False


class ToolBox(Protocol):
    """Puts the gateway's own tools into a request: one with options, or to a model with a record."""

    async def offer(self, request: ChatRequest, model: Model, actor: Actor) -> ToolUse | None:
        """Offer the model the tools that the request or its model names; None when there are none.

        A tool that cannot be used adds a sentence to `request.warnings`.
        """
        ...


class ResponseIdStore(Protocol):
    """Who received the ids of a provider's responses, by the digests of the ids."""

    async def add(self, digests: Sequence[str], user_id: str, at: int) -> None:
        """Remember who received ids; one that somebody received before stays theirs."""
        ...

    async def owners(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Return the users who received ids, by digest; those of nobody are left out."""
        ...

    async def prune(self, before: int, most: int) -> int:
        """Forget ids received before a time, and of each user all but the `most` newest; return how many."""
        ...
