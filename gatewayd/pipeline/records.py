"""Records of chat requests, tool steps and answers, independent of the client's dialect."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gatewayd.catalog.interfaces import ChunkStream
from gatewayd.completions.records import Body, Completion
from gatewayd.errors import NO_HEADERS, GatewayError
from gatewayd.plugins.runtime.context import CallScope, FactsReader


class Endpoint(StrEnum):
    """Kind of a request; filters read it as `metadata["endpoint"]`."""

    # A chat, in any dialect.
    CHAT = "chat"
    # A legacy text completion.
    COMPLETIONS = "completions"
    # A request of the Responses protocol.
    RESPONSES = "responses"
    # Embeddings of texts.
    EMBEDDINGS = "embeddings"
    # Images made from a prompt, or from a prompt and other images.
    IMAGES = "images"
    # Speech of a text.
    SPEECH = "speech"
    # A transcript or a translation of speech; filters read its prompt.
    TRANSCRIPTIONS = "transcriptions"
    # A check of texts for harmful content.
    MODERATIONS = "moderations"
    # Documents that are sorted by a query.
    RERANK = "rerank"
    # A task that a client requests: title, tags, follow-ups.
    TASK = "task"
    # A task that the gateway starts after a chat request.
    BACKGROUND = "background"


@dataclass(slots=True)
class ChatRequest:
    """A chat request.

    `body` is the OpenAI request without the gateway's own fields; filters may change it. `files` are the file
    references of the request, and `model_files` those of them that the model's record added. `options` holds
    the gateway's own fields for later steps. `warnings` are sentences for the caller about unsupported parts
    of the request. `native` is the original request of the messages dialect, for sources that speak it, and
    `unconvertible` the refusal for all others if `body` lacks parts of it.
    `facts` are those of the HTTP request. `scope` is the plugin context, made by the pipeline if the caller
    has not set it. `client_headers` are the caller's headers for a source of the messages dialect, with names
    in lower case. `endpoint` is the kind of the request for filters. `source` restricts the request to one
    provider; "" means any.
    """

    model: str
    body: Body
    stream: bool
    files: list[dict[str, Any]] = field(default_factory=list)
    model_files: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    request_id: str = ""
    native: Body | None = None
    unconvertible: GatewayError | None = None
    facts: FactsReader | None = None
    scope: CallScope | None = None
    endpoint: Endpoint = Endpoint.CHAT
    source: str = ""
    client_headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A tool call that the gateway ran: its arguments as JSON text, and its result.

    `files` and `embeds` are additions of the result to the message, `sources` its citations.
    """

    id: str
    name: str
    arguments: str
    result: str
    files: tuple[dict[str, Any], ...] = ()
    embeds: tuple[Any, ...] = ()
    sources: tuple[dict[str, Any], ...] = ()


@dataclass(slots=True)
class ChatAnswer:
    """An answer: a completion, or a stream whose first chunk has arrived.

    Exactly one of `completion` and `chunks` is set. `sources` are the cited passages. With `is_native` the
    completion, or the `raw` of the chunks, is in the messages dialect. `steps` are the tool calls that the
    gateway ran; in a stream each step is added before the chunk that follows it. `headers` are those of the
    provider that the caller gets (`completions.rate_limits`). `origin` names who makes the reasoning of the
    answer (`completions.reasoning_marks`).
    """

    completion: Completion | None = None
    chunks: ChunkStream | None = None
    sources: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_native: bool = False
    steps: list[ToolStep] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    origin: str = ""
