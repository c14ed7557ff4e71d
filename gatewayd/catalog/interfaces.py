"""Interfaces of model sources, of the store of model records, and of viewers."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Protocol, Self, TypeVar, runtime_checkable

from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.errors import NO_HEADERS, GatewayError
from gatewayd.metering.records import MeteredCall


class Viewer(Protocol):
    """A user who asks for models; an `accounts.records.Actor` is one."""

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


class AnswerWatch(Protocol):
    """Reads the answer of a source before anybody else."""

    call_ids: Mapping[str, str]
    """The caller's id of each tool call whose id the source changed in its request."""

    def feed(self, chunk: CompletionChunk) -> CompletionChunk:
        """Return the next chunk as the caller gets it."""
        ...

    def whole(self, completion: Completion) -> Completion:
        """Return a whole answer as the caller gets it."""
        ...


@dataclass(slots=True)
class CallContext:
    """Facts of a call that a source may use; user fields are set only if a setting allows it.

    Its fields are not set again; frozen, it would take four times as long to make.

    `is_converted` marks a body made from another dialect, which may hold fields of that dialect only
    (`cache_control`, `thinking_blocks`); a source that does not speak it must remove them. `scope` is the
    plugin context, read only by function models. `chat_id` is empty if the request names no chat. `warnings`
    belong to the request: a source adds a sentence, before its first chunk, for each part of the request that
    it leaves out or changes. A source passes each chunk of a streamed answer to `watch`.
    `client_headers` are the caller's headers for a source of the messages protocol, with names in lower case.
    A source puts the headers of its answer that the caller gets into `reply_headers`
    (`completions.rate_limits`). `call` meters the current call of a source; None meters nothing.
    """

    request_id: str
    user_id: str
    user_name: str = ""
    user_email: str = ""
    user_role: str = ""
    is_converted: bool = False
    scope: object | None = None
    chat_id: str = ""
    warnings: list[str] = field(default_factory=list, compare=False)
    client_headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    reply_headers: dict[str, str] = field(default_factory=dict, compare=False)
    watch: AnswerWatch | None = field(default=None, compare=False)
    call: MeteredCall | None = field(default=None, compare=False)


class NativeRefusalError(GatewayError):
    """A refusal in the provider's own words; callers of the same protocol get it unchanged."""

    def __init__(self, error: GatewayError, answer: "RefusedAnswer") -> None:
        super().__init__(
            error.kind,
            error.message,
            param=error.param,
            code=error.code,
            provider_code=error.provider_code,
            retry_after=error.retry_after,
            place=error.place,
            headers=error.headers,
        )
        self.answer = answer


class NativeProtocol(StrEnum):
    """A protocol whose refusals are passed on unchanged to callers of the same protocol."""

    # Local runtimes.
    OLLAMA = "ollama"
    # Messages.
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class RefusedAnswer:
    """Protocol, status, media type and body of a provider's refusal, with the gateway's key removed."""

    protocol: NativeProtocol
    status: int
    content_type: str
    body: bytes


class ChunkStream(Protocol):
    """Chunks of an answer, read once; `aclose` cancels the source's work immediately."""

    def __aiter__(self) -> AsyncIterator[CompletionChunk]:
        """Return itself."""
        ...

    def __anext__(self) -> Awaitable[CompletionChunk]:
        """Return the next chunk; a failure raises `GatewayError` here."""
        ...

    async def aclose(self) -> None:
        """Release the source."""
        ...


class FollowedChunks(Protocol):
    """Chunks of an answer that are taken when they arrive."""

    @property
    def is_quiet(self) -> bool:
        """Whether the chunk that `take` has returned is the last one until `arrived` is called."""
        ...

    def follow(self, arrived: Callable[[], None]) -> bool:
        """Call `arrived` from now on when `take` may return something; return False if that is not possible.

        `take` then replaces the iteration.
        """
        ...

    def take(self) -> CompletionChunk | None:
        """Return the next chunk, None before it has come; a failure raises GatewayError, the end
        StopAsyncIteration."""
        ...

    def hold(self) -> None:
        """Stop the clock of silence: nothing is taken for now."""
        ...

    def close(self) -> None:
        """Release the source at once; may be called again."""
        ...


class ImmediateChunks(FollowedChunks, ChunkStream, Protocol):
    """The answer to a request that was sent at once; until `follow` is called, it can be handed back."""

    @property
    def sent(self) -> tuple[str, Mapping[str, str], bytes]:
        """URL, headers and body of the request."""
        ...

    @property
    def response(self) -> "ClosableResponse":
        """The response to the request."""
        ...

    def is_forwardable(self) -> bool:
        """Return whether the answer is one of chunks, as far as it has arrived."""
        ...

    def hand_back(self) -> None:
        """Give the response with all its bytes to another reader."""
        ...


class ModelSource(Protocol):
    """A provider, a runtime, the built-in model or function models.

    Failures are raised as `GatewayError` whose message names the source: upstream_unreachable (not reached,
    or 503/529), upstream_failed (401, 403, 5xx, or an invalid reply), rate_limited with `retry_after` (429),
    invalid_request (400, 413, 422: the provider's own sentence), not_found (404), timeout. No message holds a
    key.
    """

    @property
    def name(self) -> str:
        """Name in messages and logs, unique among the sources."""
        ...

    async def list_models(self) -> Sequence[Model]:
        """Fetch the models of the source; the caller sets the deadline."""
        ...

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Answer a chat request as a whole; `body["model"]` is already `model.upstream_id`."""
        ...

    def stream(self, body: Body, model: Model, context: CallContext) -> ChunkStream:
        """Answer a chat request in chunks.

        An error before the first chunk raises. A stream that ends without a finish reason or `[DONE]`, or
        breaks after the first chunk, raises at that point. `aclose` closes the upstream connection
        immediately.
        """
        ...

    async def close(self) -> None:
        """Release connections and processes."""
        ...


Taken = TypeVar("Taken", covariant=True)


class BegunRequest(Protocol[Taken]):
    """A request that was sent at once, and the response to it."""

    @property
    def sent(self) -> tuple[str, Mapping[str, str], bytes]:
        """URL, headers and body of the request."""
        ...

    @property
    def response(self) -> "ClosableResponse":
        """The response to the request."""
        ...

    def take(self) -> Taken | None:
        """Return the answer once it has arrived; the response stays, and is to be closed.

        Returns None, or raises GatewayError, for an answer that the other way of its source has to read.
        """
        ...


BegunCompletion = BegunRequest[Completion]
BegunVectors = BegunRequest[Body]


class ClosableResponse(Protocol):
    """The response of a provider."""

    def close(self) -> None:
        """Close its connection at once unless it is complete; may be called again."""
        ...


@runtime_checkable
class ImmediateSource(Protocol):
    """A source that can send a light request (`json_decoder.is_light`) without a wait."""

    def complete_at_once(
        self, body: Body, model: Model, context: CallContext, arrived: Callable[[], None]
    ) -> BegunCompletion | None:
        """Send the request of `ModelSource.complete`; None if that needs a wait, and nothing was sent.

        `arrived` is called once, when the answer can be taken.
        """
        ...

    def stream_at_once(
        self, body: Body, model: Model, context: CallContext, arrived: Callable[[], None]
    ) -> ImmediateChunks | None:
        """Send the request of `ModelSource.stream`; None if that needs a wait, and nothing was sent.

        `arrived` is called whenever a part of the answer has come, and once when nothing more comes.
        """
        ...


@runtime_checkable
class ImmediateEmbedder(Protocol):
    """A source that can send a light request for embeddings without a wait."""

    def embed_at_once(
        self, body: Body, model: Model, context: CallContext, arrived: Callable[[], None]
    ) -> BegunVectors | None:
        """Send the request of `EmbeddingSource.embed`; None if that needs a wait, and nothing was sent.

        `arrived` is called once, when the answer can be taken. Raises as `embed` does before it sends.
        """
        ...


@runtime_checkable
class PreparingSource(Protocol):
    """A source that changes the messages of a chat request before `complete` or `stream` gets it."""

    def prepares(self, model: Model) -> bool:
        """Return False if the messages of a model's requests stay as they are."""
        ...

    async def prepare(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return the request as the model takes it, itself if nothing changes; it is never modified.

        A long history lets other tasks run. Adds to the warnings of `context`; raises invalid_request.
        """
        ...


@runtime_checkable
class EmbeddingSource(Protocol):
    """A source that also embeds texts; failures as in `ModelSource`."""

    async def embed(self, body: Body, model: Model, context: CallContext) -> Body:
        """Answer an OpenAI embeddings request whose `input` is a list of texts or of token lists.

        Returns `{"object": "list", "data": [{"object": "embedding", "index", "embedding": [float]}], "model",
        "usage"?}` with one vector per input, in order; `encoding_format` is ignored.
        """
        ...


@runtime_checkable
class PrefixedSource(Protocol):
    """A source whose models have a prefix in the ids of callers."""

    @property
    def model_prefix(self) -> str:
        """Prefix that the ids of callers have before the source's own ids."""
        ...


@runtime_checkable
class LoadingSource(Protocol):
    """A source that lists some of its models only once it has loaded them."""

    async def load_model(self, model_id: str) -> bool:
        """Wait briefly for a model that is loading; return True if it was loaded.

        Returns False at once for any other model.
        """
        ...


@runtime_checkable
class MessagesSource(Protocol):
    """A source of the Anthropic messages protocol, for requests that need no conversion."""

    async def complete_message(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Answer a messages request as a whole; the body of the completion is a message."""
        ...

    def stream_message(self, body: Body, model: Model, context: CallContext) -> ChunkStream:
        """Answer in chunks whose `raw` holds whole `event:` + `data:` events of the messages protocol."""
        ...


@runtime_checkable
class ImmediateMessages(Protocol):
    """A `MessagesSource` that can send a request without a wait; both methods are as in `ImmediateSource`."""

    def complete_message_at_once(
        self, body: Body, model: Model, context: CallContext, arrived: Callable[[], None]
    ) -> BegunCompletion | None:
        """Send the request of `complete_message`; None if that needs a wait, and nothing was sent."""
        ...

    def stream_message_at_once(
        self, body: Body, model: Model, context: CallContext, arrived: Callable[[], None]
    ) -> ImmediateChunks | None:
        """Send the request of `stream_message`; None if that needs a wait, and nothing was sent."""
        ...


@runtime_checkable
class CountingSource(Protocol):
    """A source that counts the tokens of messages requests."""

    async def count_message(self, body: Body, model: Model, context: CallContext) -> int:
        """Return the number of input tokens of a messages request; failures as in `ModelSource`."""
        ...


class ForwardedAnswer(Protocol):
    """A provider's successful reply, passed on unchanged; the head is received, the body not yet."""

    @property
    def status(self) -> int:
        """The HTTP status, below 300."""
        ...

    @property
    def content_type(self) -> str:
        """Media type with its parameters; empty if the provider sent none."""
        ...

    def __aiter__(self) -> Self:
        """Return itself; the body is read once."""
        ...

    async def __anext__(self) -> bytes:
        """Return the next bytes, never b"": whole events or lines of a stream, any bytes of other bodies.

        Raises GatewayError if the reply breaks off, is malformed, or reports an error.
        """
        ...

    async def aclose(self) -> None:
        """Close the provider's connection immediately unless the body was read to its end."""
        ...


@runtime_checkable
class ForwardingSource(Protocol):
    """A source whose other endpoints are reachable through the gateway; failures as in `ModelSource`."""

    async def forward(
        self, method: str, path: str, body: Body | None, context: CallContext | None = None
    ) -> ForwardedAnswer:
        """Send a request to `path` below the provider's address; a status over 299 raises.

        `context` describes the caller; None stands for the gateway itself.
        """
        ...


class ResponsesSupport(StrEnum):
    """What a source has of the Responses protocol, as far as its address tells."""

    # It may have the endpoint; it may lack tools of newer types.
    PERHAPS = "perhaps"
    # It has the endpoint, with tools of all types.
    FULL = "full"


@runtime_checkable
class ResponsesSource(ForwardingSource, Protocol):
    """A source that may answer requests of the Responses protocol itself."""

    @property
    def responses_support(self) -> ResponsesSupport:
        """What it has of the protocol."""
        ...


class RequestContent(Protocol):
    """Body of a request that is no JSON, such as a form with files; it is never held whole."""

    @property
    def media_type(self) -> str:
        """Media type with its parameters."""
        ...

    @property
    def length(self) -> int | None:
        """Number of bytes; None if it is not known before the end."""
        ...

    @property
    def is_spent(self) -> bool:
        """Whether bytes were taken that cannot be taken again, so that no other source can be tried."""
        ...

    def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes; raises GatewayError if they arrive late, malformed or over a limit."""
        ...


@runtime_checkable
class MediaSource(Protocol):
    """A source with further OpenAI endpoints: images, audio, moderations; failures as in `ModelSource`."""

    async def exchange(
        self, path: str, body: Body | RequestContent, model: Model, context: CallContext
    ) -> ForwardedAnswer:
        """Send a request to the endpoint `path`, such as `/audio/speech`; a status over 299 raises.

        JSON and events of the answer are checked; other bodies, such as audio, are passed on as they are.
        """
        ...


@runtime_checkable
class RerankSource(Protocol):
    """A source that also sorts documents by a query; failures as in `ModelSource`."""

    async def rerank(self, body: Body, model: Model, context: CallContext) -> Body:
        """Answer `{"model", "query", "documents": [text], "top_n"?, ...}`.

        Returns `{"results": [{"index", "relevance_score"}], ...}` with other fields of the answer.
        """
        ...


@runtime_checkable
class RuntimeSource(ForwardingSource, Protocol):
    """A local model runtime whose native API is passed through (gatewayd-dialects(7), RUNTIMES).

    Paths start with `/api/`. Refusals in the runtime's own words raise `NativeRefusalError`.
    """

    @property
    def name(self) -> str:
        """The name in messages and logs."""
        ...

    @property
    def prefix(self) -> str:
        """Prefix that the ids of callers have before the runtime's own ids."""
        ...


class ModelRecordStore(Protocol):
    """Model records with their grants; each change is committed on return."""

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


@lru_cache
def implements(kind: type[object], interface: type) -> bool:
    """Return whether a class of sources implements an interface; a known answer takes no time."""
    return issubclass(kind, interface)
