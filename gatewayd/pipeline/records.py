"""A chat request as the pipeline sees it, whatever dialect it came in."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gatewayd.catalog.interfaces import ChunkStream
from gatewayd.completions.records import Body, Completion
from gatewayd.plugins.runtime.context import CallScope, FactsReader


class Endpoint(StrEnum):
    """What a model is asked for, as filters are told it in `metadata["endpoint"]`."""

    # A chat, in whichever dialect.
    CHAT = "chat"
    # The continuation of a text (legacy completions).
    COMPLETIONS = "completions"
    # A request of the Responses protocol.
    RESPONSES = "responses"
    # Vectors of texts.
    EMBEDDINGS = "embeddings"
    # A task that a client asks for: a title, tags, questions.
    TASK = "task"
    # A task of the gateway's own that follows a chat request.
    BACKGROUND = "background"


@dataclass(slots=True)
class ChatRequest:
    """What is asked.

    `body` is the OpenAI-shaped request without the gateway's own fields; filters may change it. `files` are
    references as sent (2.3), and `model_files` those of them that the record of the model adds. `options`
    holds the gateway's own fields that later steps read. `warnings` are sentences for the caller about parts
    of the request that could not be honoured. `native` is the request as it came in the messages dialect
    (4.3), for a source that speaks it too. `facts` are those of the HTTP request. `scope` is what plugins are
    told: the pipeline makes it unless the caller already has. `endpoint` tells filters what is asked for.
    `source` names the only provider to ask, "" for any.
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
    facts: FactsReader | None = None
    scope: CallScope | None = None
    endpoint: Endpoint = Endpoint.CHAT
    source: str = ""


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A call of a tool that the gateway has run: its arguments as JSON text, and what came of it.

    `files` and `embeds` are what the result added to the message (6.5), `sources` its citations.
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
    """What comes back: a completion, or a stream whose first chunk has already arrived.

    Exactly one of `completion` and `chunks` is set. `sources` are the passages used (2.4). With `is_native`
    the completion is a message, and the chunks' `raw` are events, of the messages dialect. `steps` are the
    calls of tools that the gateway ran; while a stream is read, they grow before the chunk that follows them.
    """

    completion: Completion | None = None
    chunks: ChunkStream | None = None
    sources: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_native: bool = False
    steps: list[ToolStep] = field(default_factory=list)
