"""Source for the native Ollama protocol of model runtimes."""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd import ids
from gatewayd.catalog.interfaces import CallContext, ForwardedAnswer, NativeProtocol, RequestContent
from gatewayd.catalog.records import Model
from gatewayd.completions.records import Body, Completion
from gatewayd.dialects.ollama.source import ReplyDecoder, from_embed, to_completion, to_embed, to_request
from gatewayd.dialects.openai import wants_usage
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.model_list import find_listed, select_models
from gatewayd.upstream.sources.model_rules import ModelRules
from gatewayd.upstream.sources.provider_client import ProviderClient, listed_objects
from gatewayd.upstream.sources.rerank import post_rerank
from gatewayd.upstream.streams.checks import CheckedLines, CheckedWhole, StreamChecker, UncheckedStream
from gatewayd.upstream.streams.chunks import AnswerChunks
from gatewayd.upstream.streams.decoder import DecodingReader
from gatewayd.upstream.streams.ndjson import LineFramer

STREAMED_PATHS = frozenset({"/api/chat", "/api/generate", "/api/pull", "/api/push", "/api/create"})
"""Paths of the native API that answer in lines unless `stream` is false."""

EMPTY_PATHS = frozenset({"/api/copy", "/api/delete"})
"""Paths of the native API that answer without a body."""


WHOLE_PATHS = frozenset(
    {"/api/tags", "/api/ps", "/api/version", "/api/show", "/api/embed", "/api/embeddings"}
)
"""The other known paths of the native API, which answer with one object."""


class OllamaSource:
    """A runtime, usually on this machine; its base URL may end in `/api`."""

    def __init__(self, config: ProviderConfig, client: UpstreamClient | None = None) -> None:
        self._config = config.without_suffix("/api")
        headers = {} if config.key is None else config.key_headers(config.key)
        self._exchange = ProviderClient(self._config, headers, client)
        self._rules = ModelRules(self._config)

    @property
    def name(self) -> str:
        """The runtime's name."""
        return self._config.name

    @property
    def model_prefix(self) -> str:
        """Prefix that the ids of callers have before the runtime's own ids."""
        return self._config.prefix

    @property
    def prefix(self) -> str:
        """Prefix of the runtime's model ids in the ids that callers send."""
        return self._config.prefix

    async def list_models(self) -> Sequence[Model]:
        """Fetch the models that the runtime has installed, see `find_listed`."""
        found = await find_listed(self._config, self._fetch_list)
        return await select_models(self._config, found, "ollama", self._detail, connection_type="local")

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Return a whole answer."""
        body = self._rules.adapt(body, model, context)
        _, answer = await self._exchange.post("/api/chat", to_request(body, stream=False), context)
        if not isinstance(answer.get("message"), dict):
            raise self._exchange.failures.broken("its answer has no 'message'")
        return Completion(body=to_completion(answer, ids.now(), ids.new_id))

    def stream(self, body: Body, model: Model, context: CallContext) -> AnswerChunks:
        """Return the answer in chunks."""
        body = self._rules.adapt(body, model, context)
        decoder = ReplyDecoder(ids.now(), ids.new_id, include_usage=wants_usage(body))
        reader = DecodingReader(LineFramer(), decoder)
        return self._exchange.chunks("/api/chat", to_request(body, stream=True), reader, None, context)

    async def embed(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return vectors for a list of texts, in their order."""
        _, answer = await self._exchange.post("/api/embed", to_embed(body), context)
        try:
            return from_embed(answer, model.upstream_id)
        except ValueError as error:
            raise self._exchange.failures.broken(str(error)) from error

    async def forward(
        self, method: str, path: str, body: Body | None, context: CallContext | None = None
    ) -> ForwardedAnswer:
        """Forward a request of the native API; an HTML page raises upstream_failed."""
        check = _check_of(path, body)
        answer = await self._exchange.forward(
            method, path, body, check, context, native=NativeProtocol.OLLAMA
        )
        if "html" in answer.content_type.lower():
            await answer.aclose()
            raise self._exchange.failures.from_answer(answer.status, {}, b"<")
        return answer

    async def exchange(
        self, path: str, body: Body | RequestContent, model: Model, context: CallContext
    ) -> ForwardedAnswer:
        """Send a request to an OpenAI endpoint of the runtime."""
        return await self._exchange.exchange(f"/v1{path}", body, context)

    async def rerank(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return the scores of documents."""
        return await post_rerank(self._exchange, "/v1/rerank", body, context)

    async def close(self) -> None:
        """Close all connections."""
        await self._exchange.close()

    async def _fetch_list(self) -> list[dict[str, Any]]:
        answer = await self._exchange.get("/api/tags")
        tags = listed_objects(answer, "models", self._exchange.failures)
        return [
            {"id": tag.get("model") or tag.get("name"), "name": tag.get("name"), "tag": tag} for tag in tags
        ]

    def _detail(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        connection_type = self._config.connection_type or "local"
        # A model that only the settings name has no tag.
        tag = item.get("tag") or {"name": item["id"], "model": item["id"]}
        return {"ollama": {**tag, "connection_type": connection_type, "urls": [self._config.index]}}


def _check_of(path: str, body: Body | None) -> StreamChecker | None:
    if path in STREAMED_PATHS and (body or {}).get("stream") is not False:
        return CheckedLines()
    if path in EMPTY_PATHS:
        return CheckedWhole(may_be_empty=True)
    return None if path in STREAMED_PATHS | WHOLE_PATHS or path.startswith("/v1/") else UncheckedStream()
