"""A local runtime that speaks the Ollama native protocol."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd import ids
from gatewayd.catalog.interfaces import CallContext, ForwardedAnswer
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body, Completion
from gatewayd.dialects.ollama.source import ReplyDecoder, from_embed, to_completion, to_embed, to_request
from gatewayd.dialects.openai import wants_usage
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.model_list import select_models
from gatewayd.upstream.sources.provider_client import ProviderClient, listed_objects
from gatewayd.upstream.streams.checks import CheckedLines, CheckedWhole, StreamChecker, UncheckedStream
from gatewayd.upstream.streams.chunks import AnswerChunks
from gatewayd.upstream.streams.decoder import DecodingReader
from gatewayd.upstream.streams.ndjson import LineFramer

STREAMED_PATHS = frozenset({"/api/chat", "/api/generate", "/api/pull", "/api/push", "/api/create"})
"""The paths of the native API that answer in lines unless they are asked not to."""

EMPTY_PATHS = frozenset({"/api/copy", "/api/delete"})
"""The paths of the native API whose answer has no body."""


WHOLE_PATHS = frozenset(
    {"/api/tags", "/api/ps", "/api/version", "/api/show", "/api/embed", "/api/embeddings"}
)
"""The other known paths of the native API, whose answer is one object."""


class OllamaSource:
    """A runtime, usually on this machine; its base URL may end in `/api` or not."""

    def __init__(self, config: ProviderConfig, client: UpstreamClient | None = None) -> None:
        self._config = config.without_suffix("/api")
        headers = {} if config.key is None else {"Authorization": f"Bearer {config.key}"}
        self._exchange = ProviderClient(self._config, headers, client)

    @property
    def name(self) -> str:
        """The runtime's name."""
        return self._config.name

    @property
    def prefix(self) -> str:
        """What stands before the runtime's own ids in the ids that callers send."""
        return self._config.prefix

    async def list_models(self) -> Sequence[Model]:
        """Ask the runtime for the models that it has on its disk."""
        answer = await self._exchange.get("/api/tags")
        tags = listed_objects(answer, "models", self._exchange.failures)
        found = [
            {"id": tag.get("model") or tag.get("name"), "name": tag.get("name"), "tag": tag} for tag in tags
        ]
        return await select_models(self._config, found, "ollama", self._detail, connection_type="local")

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Answer at once."""
        _, answer = await self._exchange.post("/api/chat", to_request(body, stream=False), context)
        if not isinstance(answer.get("message"), dict):
            raise self._exchange.failures.broken("its answer has no 'message'")
        return Completion(body=to_completion(answer, ids.now(), ids.new_id))

    def stream(self, body: Body, model: Model, context: CallContext) -> AnswerChunks:
        """Answer in chunks."""
        decoder = ReplyDecoder(ids.now(), ids.new_id, include_usage=wants_usage(body))
        reader = DecodingReader(LineFramer(), decoder)
        return self._exchange.chunks("/api/chat", to_request(body, stream=True), reader, None, context)

    async def embed(self, body: Body, model: Model, context: CallContext) -> Body:
        """Turn a list of texts into vectors, in their order."""
        _, answer = await self._exchange.post("/api/embed", to_embed(body), context)
        try:
            return from_embed(answer, model.upstream_id)
        except ValueError as error:
            raise self._exchange.failures.broken(str(error)) from error

    async def forward(
        self, method: str, path: str, body: Body | None, context: CallContext | None = None
    ) -> ForwardedAnswer:
        """Pass a request of the native API on; a page for people is no answer to it."""
        check = _check_of(path, body)
        answer = await self._exchange.forward(method, path, body, check, context, keeps_refusals=True)
        if "html" in answer.content_type.lower():
            await answer.aclose()
            raise self._exchange.failures.from_answer(answer.status, {}, b"<")
        return answer

    async def close(self) -> None:
        """Close all connections."""
        await self._exchange.close()

    def _detail(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        connection_type = self._config.connection_type or "local"
        return {"ollama": {**item["tag"], "connection_type": connection_type, "urls": [self._config.index]}}


def _check_of(path: str, body: Body | None) -> StreamChecker | None:
    if path in STREAMED_PATHS and (body or {}).get("stream") is not False:
        return CheckedLines()
    if path in EMPTY_PATHS:
        return CheckedWhole(may_be_empty=True)
    return None if path in STREAMED_PATHS | WHOLE_PATHS or path.startswith("/v1/") else UncheckedStream()
