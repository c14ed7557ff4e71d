"""Interfaces of the pipeline to filters, attachments, tools and response ids."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.pipeline.records import ChatRequest, ToolStep


class RunLimiter(Protocol):
    """Limits the number of concurrent runs of an account."""

    def begin_run(self, account: str) -> Callable[[], None]:
        """Count a run; the returned function must be called at its end.

        Raises rate_limited over the limit of the account, unavailable if the gateway is full.
        """
        ...


class ChatFilter(Protocol):
    """A filter of one request. Failures raise plugin_failed or invalid_request."""

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        """Read and change the request before the source gets it."""
        ...

    async def stream(self, chunk: CompletionChunk) -> CompletionChunk:
        """Return the chunk to pass on: the same, a changed or another one."""
        ...

    async def outlet(self, completion: Completion, actor: Actor) -> None:
        """Read and change a finished answer."""
        ...


class ChatFilters(Protocol):
    """Selects the filters of a request."""

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> "FilterChain":
        """Return the filters of the request, by priority."""
        ...

    def may_apply(self, model_id: str) -> bool:
        """Return False if no filter can apply to the requests to a model."""
        ...

    async def are_on(self, model_id: str) -> bool:
        """Return True if filters apply to requests that enable no toggle filter."""
        ...


class FilterChain(Protocol):
    """The selected filters; without stream filters, chunks pass undecoded."""

    @property
    def inlets(self) -> tuple[ChatFilter, ...]:
        """Filters with an inlet."""
        ...

    @property
    def streams(self) -> tuple[ChatFilter, ...]:
        """Filters of stream chunks."""
        ...

    @property
    def outlets(self) -> tuple[ChatFilter, ...]:
        """Filters of finished answers to direct calls, if the settings enable them."""
        ...

    @property
    def handles_files(self) -> bool:
        """Whether a filter handles the files of the request itself, so that they are not attached."""
        ...


class Attachments(Protocol):
    """Turns references to files and collections into context."""

    async def attach(
        self, request: ChatRequest, actor: Actor, found: Sequence[dict[str, Any]] = ()
    ) -> list[dict[str, Any]]:
        """Add the passages to the request's messages and return the sources, those in `found` first.

        An unusable reference adds a warning to `request.warnings`; it is never dropped silently.
        """
        ...


class ToolRunner(Protocol):
    """Runs the tool calls of a model."""

    async def run(self, calls: Sequence[Body], messages: list[Any]) -> Sequence[ToolStep]:
        """Run the calls of one round concurrently and return their steps in order.

        A call is `{"id", "type", "function": {"name", "arguments": JSON text}}`; `messages` are those that
        the model has seen. An error of a call becomes its result. Cancellation stops all calls.
        """
        ...


@dataclass(slots=True)
class ToolUse:
    """The gateway's own tools in one request.

    `runner` runs the calls of the model, in at most `iterations` rounds; None passes the calls to the caller.
    `sources` are results of calls that ran before the model was called. `handles_files` is set if a tool
    handles the files of the request itself.
    """

    runner: ToolRunner | None = None
    iterations: int = 256
    sources: list[dict[str, Any]] = field(default_factory=list)
    handles_files: bool = False


class ToolBox(Protocol):
    """Adds the gateway's own tools to requests that name tools, or whose model's record does."""

    async def offer(self, request: ChatRequest, model: Model, actor: Actor) -> ToolUse | None:
        """Offer the tools of the request or of its model's record; return None if there are none.

        An unusable tool adds a warning to `request.warnings`.
        """
        ...


class ResponseIdStore(Protocol):
    """Recipients of the ids of a provider's responses, by the digests of the ids."""

    async def add(self, digests: Sequence[str], user_id: str, at: int) -> None:
        """Store the recipient of ids; an id keeps its first recipient."""
        ...

    async def owners(self, digests: Sequence[str]) -> Mapping[str, str]:
        """Return the recipients by digest; unknown ids are omitted."""
        ...

    async def prune(self, before: int, most: int) -> int:
        """Delete ids older than `before`, and each user's ids beyond the `most` newest; return the count."""
        ...
