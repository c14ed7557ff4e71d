"""Source for the OpenAI protocol; requests and answers are not converted."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gatewayd.catalog.interfaces import (
    BegunCompletion,
    BegunVectors,
    CallContext,
    ForwardedAnswer,
    PreparingSource,
    RequestContent,
    ResponsesSupport,
)
from gatewayd.catalog.records import Model
from gatewayd.completions.choices import complete_choices
from gatewayd.completions.json_access import as_text
from gatewayd.completions.limits import AnswerSizeError
from gatewayd.completions.reasoning_watch import is_text_answer
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.dialects.anthropic.dialect import without_foreign
from gatewayd.dialects.embeddings import refuse_tokens
from gatewayd.dialects.providers.rules import Protocol
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.batches import OpenAiBatches
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.failures import ProviderFailures
from gatewayd.upstream.sources.model_list import find_listed, select_models
from gatewayd.upstream.sources.model_rules import ModelRules
from gatewayd.upstream.sources.provider_client import ProviderClient, listed_objects
from gatewayd.upstream.sources.rerank import post_rerank
from gatewayd.upstream.sources.responses import ResponsesProtocol, uses_responses
from gatewayd.upstream.streams.begun_chunks import BegunChunks
from gatewayd.upstream.streams.chunks import AnswerChunks, completion_chunk
from gatewayd.upstream.streams.sse import ChunkReader, FramingError

WITH_RESPONSES = frozenset({"azure", "openai"})
"""Makers whose models are reached in the Responses protocol where the rules of their family say so."""


class OpenAiSource(PreparingSource):
    """A hosted provider, or with a socket path a model server on this machine."""

    def __init__(self, config: ProviderConfig, client: UpstreamClient | None = None) -> None:
        self._config = config
        self.name = config.name
        """The provider's name."""
        headers = {} if config.key is None else config.key_headers(config.key)
        self._exchange = ProviderClient(config, headers, client)
        self._batches = OpenAiBatches(self._exchange)
        self._rules = ModelRules(config)
        self._has_responses = self._rules.maker in WITH_RESPONSES
        self._may_use_responses = self._has_responses or bool(config.upstream)
        path = self._path("/responses", "")
        self._responses = ResponsesProtocol(config.name, self._exchange, self._rules, path)

    @property
    def model_prefix(self) -> str:
        """Prefix that the ids of callers have before the provider's own ids."""
        return self._config.prefix

    @property
    def responses_support(self) -> ResponsesSupport:
        """What the provider has of the Responses protocol, by its maker."""
        return ResponsesSupport.FULL if self._has_responses else ResponsesSupport.PERHAPS

    async def list_models(self) -> Sequence[Model]:
        """Fetch the models of the provider, see `find_listed`."""
        found = await find_listed(self._config, self._fetch_list)
        return await select_models(self._config, found, "openai", self._detail)

    def prepares(self, model: Model) -> bool:
        """Return False if the messages of a model's requests stay as they are."""
        return self._rules.repairs(model)

    async def prepare(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return a chat request with its messages as the model takes them."""
        is_responses = self._is_for_responses(body, model)
        return await self._rules.repair(body, model, context, is_responses=is_responses)

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Return a whole answer, in chat completions with the bytes of the provider."""
        if self._is_for_responses(body, model):
            return await self._responses.complete(self._plain(body, model, context), model, context)
        raw, answer = await self._exchange.post(
            self._path("/chat/completions", model.upstream_id),
            _unstreamed(self._own(body, model, context)),
            context,
        )
        return self._completion(raw, answer)

    def complete_at_once(
        self, body: Body, model: Model, context: CallContext, arrived: Callable[[], None]
    ) -> BegunCompletion | None:
        """Send the request of `complete` and return at once; None if that needs a wait."""
        path = self._path("/chat/completions", model.upstream_id)
        if context.is_converted or not self._rules.are_none(model):
            if self._is_for_responses(body, model) or self.prepares(model):
                return None
            body = self._own(body, model, context)
        elif self._may_use_responses and self._is_for_responses(body, model):
            return None
        return self._exchange.post_at_once(path, _unstreamed(body), context, arrived, self._completion)

    def _completion(self, raw: bytes, answer: Body) -> Completion:
        if "event" not in answer and is_text_answer(answer):
            return Completion(raw=raw, body=answer, is_text=True)
        if not isinstance(answer.get("choices"), list):
            raise self._exchange.failures.broken("its answer has no 'choices'")
        try:
            is_changed = complete_choices(answer)
        except AnswerSizeError as error:
            raise self._exchange.failures.broken(error.reason) from error
        if "event" in answer:
            del answer["event"]
            is_changed = True
        return Completion(body=answer) if is_changed else Completion(raw=raw, body=answer)

    def stream(self, body: Body, model: Model, context: CallContext) -> AnswerChunks:
        """Return the answer in chunks, with the bytes of the provider where possible."""
        if self._is_for_responses(body, model):
            return self._responses.stream(self._plain(body, model, context), model, context)
        path = self._path("/chat/completions", model.upstream_id)
        streamed = _streamed(self._own(body, model, context))
        return self._exchange.chunks(path, streamed, ChunkReader(), _whole, context)

    def stream_at_once(
        self, body: Body, model: Model, context: CallContext, arrived: Callable[[], None]
    ) -> BegunChunks | None:
        """Send the request of `stream` and return at once; None if that needs a wait."""
        if self._is_for_responses(body, model) or self.prepares(model):
            return None
        path = self._path("/chat/completions", model.upstream_id)
        streamed = _streamed(self._own(body, model, context))
        return self._exchange.chunks_at_once(path, streamed, ChunkReader(), context, arrived)

    async def embed(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return vectors for a list of inputs, in the order of the inputs."""
        return self._vectors(*await self._exchange.post(*self._embedding(body, model), context))

    def embed_at_once(
        self, body: Body, model: Model, context: CallContext, arrived: Callable[[], None]
    ) -> BegunVectors | None:
        """Send the request of `embed` and return at once; None if that needs a wait."""
        return self._exchange.post_at_once(*self._embedding(body, model), context, arrived, self._vectors)

    def _embedding(self, body: Body, model: Model) -> tuple[str, Body]:
        """Return the path and the body of a request for vectors."""
        if not self._rules.takes_tokens(model):
            refuse_tokens(body.get("input") or ())
        return self._path("/embeddings", model.upstream_id), {**body, "encoding_format": "float"}

    def _vectors(self, _: bytes, answer: Body) -> Body:
        return {**answer, "data": order_vectors(answer.get("data"), self._exchange.failures)}

    @property
    def passes_batches(self) -> bool:
        """Whether new batches are passed on."""
        return self._config.passes_batches

    @property
    def batches(self) -> OpenAiBatches:
        """The batches of the provider."""
        return self._batches

    async def batch_request(
        self, endpoint: str, body: Body, model: Model, context: CallContext
    ) -> Body | None:
        """Return a request as a batch of the provider takes it; None for one in another protocol."""
        own = {**body, "model": model.upstream_id}
        match endpoint:
            case "/v1/chat/completions":
                own = await self.prepare(own, model, context)
                if self._is_for_responses(own, model):
                    return None
                return _unstreamed(self._own(own, model, context))
            case "/v1/embeddings":
                if not self._rules.takes_tokens(model):
                    refuse_tokens(own.get("input") or ())
                return own
            case "/v1/completions":
                return own
            case _:
                return None

    async def forward(
        self, method: str, path: str, body: Body | None, context: CallContext | None = None
    ) -> ForwardedAnswer:
        """Send a request to `path` below the base URL and return the answer unchanged."""
        model = as_text(body.get("model")) if body else ""
        return await self._exchange.forward(method, self._path(path, model), body, context=context)

    async def exchange(
        self, path: str, body: Body | RequestContent, model: Model, context: CallContext
    ) -> ForwardedAnswer:
        """Send a request to another endpoint and return the answer."""
        return await self._exchange.exchange(self._path(path, model.upstream_id), body, context)

    async def rerank(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return the scores of documents."""
        return await post_rerank(self._exchange, self._path("/rerank", model.upstream_id), body, context)

    async def close(self) -> None:
        """Close all connections."""
        await self._exchange.close()

    def _path(self, path: str, model: str) -> str:
        """Return the path of an endpoint below the base URL; `model` is "" for one without a model."""
        return path

    def _own(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return a request without what the model does not take, and without fields of other protocols."""
        return self._plain(self._rules.adapt(body, model, context), model, context)

    def _plain(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return a request without what only other protocols have; Claude behind a proxy has its cache."""
        if not context.is_converted:
            return body
        keeps_cache = self._rules.takes_cache(model)
        plain = without_foreign(body, keeps_cache=keeps_cache)
        if keeps_cache:
            self._rules.limit_cache(plain, model, context)
        return plain

    def _is_for_responses(self, body: Body, model: Model) -> bool:
        if not self._may_use_responses and not model.rules:
            return False
        forced = model.rules.get("protocol") or self._config.upstream
        rules = self._rules.of(model)
        # Servers of unknown makers may serve the family without this endpoint.
        is_known = self._has_responses and rules.protocol is not Protocol.CHAT
        return bool(forced or is_known) and uses_responses(body, rules, forced)

    async def _fetch_list(self) -> list[dict[str, Any]]:
        return listed_objects(await self._exchange.get("/models"), "data", self._exchange.failures)

    def _detail(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"openai": item, "urlIdx": self._config.index}


def order_vectors(data: object, failures: ProviderFailures) -> list[dict[str, Any]]:
    """Return the vectors in the order of `index`, or in their own order if none has an index."""
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise failures.broken("its answer has no list of objects in 'data'")
    if all("index" not in item for item in data):
        return data
    by_index = {item.get("index"): item for item in data if type(item.get("index")) is int}
    if by_index.keys() != set(range(len(data))):
        raise failures.broken("its embeddings are not numbered from 0")
    return [by_index[index] for index in range(len(data))]


def _unstreamed(body: Body) -> Body:
    """Return a request for a whole answer, without the stream options, which providers would refuse."""
    if not body.get("stream") and "stream_options" not in body:
        return body
    kept = {name: value for name, value in body.items() if name != "stream_options"}
    return {**kept, "stream": False} if kept.get("stream") else kept


def _streamed(body: Body) -> Body:
    """Return a request for a stream."""
    return body if body.get("stream") is True else {**body, "stream": True}


def _whole(answer: dict[str, Any]) -> CompletionChunk:
    if not isinstance(answer.get("choices"), list):
        raise FramingError("its answer has no 'choices'")
    return completion_chunk(answer)
