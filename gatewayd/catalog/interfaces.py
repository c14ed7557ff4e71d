"""What gives models, what keeps records of them, and who looks at them."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.errors import GatewayError


class Viewer(Protocol):
    """Who asks for models; an `accounts.records.Actor` is one."""

    @property
    def user_id(self) -> str:
        """The id of the user."""
        ...

    @property
    def group_ids(self) -> tuple[str, ...]:
        """The ids of the user's groups."""
        ...

    @property
    def is_admin(self) -> bool:
        """Whether the user administers the gateway."""
        ...


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a source may know about a call beside its body; the user is named only where a setting says so.

    `is_converted` tells that the body was made from another dialect and may hold what only that one knows
    (`cache_control`, `thinking_blocks`): a source that does not speak it must leave that out. `scope` is what
    a function model may know beside that, and nobody else looks at it. `chat_id` is empty where no chat is
    named.
    """

    request_id: str
    user_id: str
    user_name: str = ""
    user_email: str = ""
    user_role: str = ""
    is_converted: bool = False
    scope: object | None = None
    chat_id: str = ""


class RuntimeRefusalError(GatewayError):
    """A refusal that a local runtime wrote itself, which its own clients get as it is (4.5)."""

    def __init__(self, error: GatewayError, answer: "RefusedAnswer") -> None:
        super().__init__(
            error.kind,
            error.message,
            param=error.param,
            code=error.code,
            provider_code=error.provider_code,
            retry_after=error.retry_after,
        )
        self.answer = answer


@dataclass(frozen=True, slots=True)
class RefusedAnswer:
    """Status, media type and body of a runtime's refusal, without the gateway's key."""

    status: int
    content_type: str
    body: bytes


class ChunkStream(Protocol):
    """Chunks of an answer, read once; `aclose` ends the source's work at once."""

    def __aiter__(self) -> AsyncIterator[CompletionChunk]:
        """Return itself."""
        ...

    def __anext__(self) -> Awaitable[CompletionChunk]:
        """Return the next chunk; a failure raises `GatewayError` here."""
        ...

    async def aclose(self) -> None:
        """Release the source."""
        ...


class ModelSource(Protocol):
    """A provider, a runtime, the built-in model or function models.

    Failures are raised as `GatewayError` whose message names the source: upstream_unreachable (not reached,
    or 503/529), upstream_failed (401, 403, 5xx, or an answer that is not one), rate_limited with
    `retry_after` (429), invalid_request (400, 413, 422: the provider's own sentence), not_found (404),
    timeout. No message holds a key.
    """

    @property
    def name(self) -> str:
        """The name in messages and logs, unique among the sources."""
        ...

    async def list_models(self) -> Sequence[Model]:
        """Ask the source for its models; the caller sets the deadline."""
        ...

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Answer a chat request at once; `body["model"]` is already `model.upstream_id`."""
        ...

    def stream(self, body: Body, model: Model, context: CallContext) -> ChunkStream:
        """Answer in chunks.

        Failing before the first chunk raises. A stream that ends without a finish reason or `[DONE]`, or
        breaks after the first chunk, raises then. Closing the iterator (`aclose`) closes the upstream
        connection at once.
        """
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...


@runtime_checkable
class EmbeddingSource(Protocol):
    """A source that also turns texts into vectors; failures as in `ModelSource`."""

    async def embed(self, body: Body, model: Model, context: CallContext) -> Body:
        """Answer an OpenAI embeddings request whose `input` is a list of texts or of token lists.

        Returns `{"object": "list", "data": [{"object": "embedding", "index", "embedding": [float]}], "model",
        "usage"?}` with one vector per input, in their order; `encoding_format` is not looked at.
        """
        ...


@runtime_checkable
class LoadingSource(Protocol):
    """A source that lists some of its models only once it has loaded them."""

    async def load_model(self, model_id: str) -> bool:
        """Wait, but not long, for a model that is being loaded; tell whether it has been.

        False at once for any other model.
        """
        ...


@runtime_checkable
class MessagesSource(Protocol):
    """A source that itself speaks the messages protocol (4.3), for requests that need no conversion."""

    async def complete_message(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Answer a messages request at once; the completion's body is a message."""
        ...

    def stream_message(self, body: Body, model: Model, context: CallContext) -> ChunkStream:
        """Answer in chunks whose `raw` holds whole `event:` + `data:` events of the messages protocol."""
        ...


class ForwardedAnswer(Protocol):
    """A provider's good answer passed on as it is: its head is here, its body still to be read."""

    @property
    def status(self) -> int:
        """The HTTP status, below 300."""
        ...

    @property
    def content_type(self) -> str:
        """The media type with its parameters, empty when none was named."""
        ...

    def __aiter__(self) -> Self:
        """Return itself: a body is read once."""
        ...

    async def __anext__(self) -> bytes:
        """Return what came since, never b"": of a stream whole events or lines, of all else any bytes.

        Raises GatewayError when the answer breaks off, is not what it says, or reports an error.
        """
        ...

    async def aclose(self) -> None:
        """Close the provider's connection at once unless the body was read to its end."""
        ...


@runtime_checkable
class ForwardingSource(Protocol):
    """A source whose other endpoints can be reached through the gateway; failures as in `ModelSource`."""

    async def forward(
        self, method: str, path: str, body: Body | None, context: CallContext | None = None
    ) -> ForwardedAnswer:
        """Send a request to `path` below the provider's address; an answer over 299 raises.

        `context` is who asks, None for what the gateway itself asks.
        """
        ...


@runtime_checkable
class RuntimeSource(ForwardingSource, Protocol):
    """A local model runtime whose native API is passed through (4.5); paths start with `/api/`.

    What it refuses in words of its own is raised as `RuntimeRefusalError`.
    """

    @property
    def name(self) -> str:
        """The name in messages and logs."""
        ...

    @property
    def prefix(self) -> str:
        """What stands before the runtime's own ids in the ids that callers send."""
        ...


class ModelRecordStore(Protocol):
    """Model records with their grants; all changes are committed on return."""

    async def list(self) -> Sequence[ModelRecord]:
        """Return all records."""
        ...

    async def find(self, model_id: str) -> ModelRecord | None:
        """Return one record."""
        ...

    async def put(self, record: ModelRecord) -> None:
        """Insert or replace a record and its grants."""
        ...

    async def remove(self, model_id: str) -> bool:
        """Delete a record and its grants."""
        ...
