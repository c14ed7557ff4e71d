"""Source for the native protocol of Gemini."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from gatewayd import ids
from gatewayd.catalog.interfaces import CallContext, PreparingSource
from gatewayd.catalog.records import Model
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.dialects.anthropic.dialect import without_foreign
from gatewayd.dialects.embeddings import refuse_tokens
from gatewayd.dialects.gemini.reply import AnswerDecoder, blocked_prompt, to_completion
from gatewayd.dialects.gemini.request import to_request
from gatewayd.dialects.openai import wants_usage
from gatewayd.dialects.providers.family import canonical_name
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.model_list import find_listed, select_models
from gatewayd.upstream.sources.model_rules import ModelRules
from gatewayd.upstream.sources.provider_client import ProviderClient, listed_objects
from gatewayd.upstream.streams.chunks import AnswerChunks, completion_chunk
from gatewayd.upstream.streams.decoder import DecodingReader
from gatewayd.upstream.streams.sse import DataFramer, FramingError

ROOT: Final = "/v1beta"

MAX_PAGES: Final = 20
"""Maximum number of pages of the list of models, of up to 1,000 models each."""

MAX_EVENT_BYTES: Final = 32 * 1024 * 1024
"""Maximum number of bytes of an event, which may hold a picture."""

METHODS: Final = frozenset({"generateContent", "embedContent"})
"""Methods of the models that are listed."""


class GeminiSource(PreparingSource):
    """The provider; its base URL may end in `/v1beta`."""

    def __init__(self, config: ProviderConfig, client: UpstreamClient | None = None) -> None:
        config = config.without_suffix(ROOT)
        self._config = replace(config, maker=config.maker or "gemini")
        headers = {} if config.key is None else config.key_headers(config.key)
        self._exchange = ProviderClient(self._config, headers, client)
        self._rules = ModelRules(self._config)

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._config.name

    @property
    def model_prefix(self) -> str:
        """Prefix that the ids of callers have before the provider's own ids."""
        return self._config.prefix

    async def list_models(self) -> Sequence[Model]:
        """Fetch the models of the provider that answer or embed, page by page, see `find_listed`."""
        found = await find_listed(self._config, self._fetch_list)
        return await select_models(self._config, found, "google", self._detail)

    def prepares(self, model: Model) -> bool:
        """Return False if the messages of a model's requests stay as they are."""
        return self._rules.repairs(model)

    async def prepare(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return a chat request with its messages as the model takes them."""
        return await self._rules.repair(body, model, context)

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Return a whole answer."""
        _, answer = await self._exchange.post(
            _path(model, "generateContent"), self._request(body, model, context), context
        )
        blocked = blocked_prompt(answer)
        if blocked is not None:
            raise self._exchange.failures.from_event(blocked)
        if not as_sequence(answer.get("candidates")):
            raise self._exchange.failures.broken("its answer has no 'candidates'")
        return Completion(body=to_completion(answer, ids.now(), ids.new_id))

    def stream(self, body: Body, model: Model, context: CallContext) -> AnswerChunks:
        """Return the answer in chunks."""
        decoder = AnswerDecoder(ids.now(), ids.new_id, include_usage=wants_usage(body))
        reader = DecodingReader(DataFramer(MAX_EVENT_BYTES), decoder)
        path = _path(model, "streamGenerateContent") + "?alt=sse"
        return self._exchange.chunks(path, self._request(body, model, context), reader, _whole, context)

    async def embed(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return vectors for a list of texts, in their order."""
        texts = body.get("input") or ()
        refuse_tokens(texts)
        name = f"models/{model.upstream_id}"
        size = body.get("dimensions")
        extra = {} if size is None else {"outputDimensionality": size}
        requests = [{"model": name, "content": {"parts": [{"text": text}]}, **extra} for text in texts]
        path = _path(model, "batchEmbedContents")
        _, answer = await self._exchange.post(path, {"requests": requests}, context)
        vectors = [as_mapping(found).get("values") for found in as_sequence(answer.get("embeddings"))]
        if len(vectors) != len(requests) or not all(isinstance(vector, list) for vector in vectors):
            raise self._exchange.failures.broken("its answer does not have a vector for each input")
        data = [
            {"object": "embedding", "index": index, "embedding": vector}
            for index, vector in enumerate(vectors)
        ]
        return {"object": "list", "data": data, "model": model.upstream_id}

    async def close(self) -> None:
        """Close all connections."""
        await self._exchange.close()

    def _request(self, body: Body, model: Model, context: CallContext) -> Body:
        adapted = self._rules.adapt(body, model, context)
        if context.is_converted:
            adapted = without_foreign(adapted)
        warnings: list[str] = []
        request = to_request(adapted, canonical_name(model.family or model.upstream_id), warnings)
        for sentence in warnings:
            self._rules.warn(sentence, model, context)
        return request

    async def _fetch_list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        path = f"{ROOT}/models?pageSize=1000"
        for _ in range(MAX_PAGES):
            page = await self._exchange.get(path)
            found += listed_objects(page, "models", self._exchange.failures)
            token = page.get("nextPageToken") if isinstance(page, dict) else None
            if not isinstance(token, str) or not token:
                return [_listed(item) for item in found if _is_usable(item)]
            path = f"{ROOT}/models?pageSize=1000&pageToken={quote(token, safe='')}"
        raise self._exchange.failures.broken(f"its list of models has over {MAX_PAGES} pages")

    def _detail(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"openai": item, "urlIdx": self._config.index}


def _is_usable(item: Mapping[str, Any]) -> bool:
    methods = item.get("supportedGenerationMethods")
    return not isinstance(methods, list) or not METHODS.isdisjoint(str(method) for method in methods)


def _listed(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a listed model in the words of lists of chat completions, with its limits."""
    model_id = as_text(item.get("name")).removeprefix("models/")
    limits = {
        "context_length": item.get("inputTokenLimit"),
        "max_completion_tokens": item.get("outputTokenLimit"),
    }
    named = {"id": model_id, "name": item.get("displayName"), "description": item.get("description")}
    return {key: value for key, value in {**named, **limits}.items() if value is not None}


def _path(model: Model, method: str) -> str:
    return f"{ROOT}/models/{quote(model.upstream_id, safe='')}:{method}"


def _whole(answer: dict[str, Any]) -> CompletionChunk:
    if not as_sequence(answer.get("candidates")):
        raise FramingError("its answer has no 'candidates'")
    return completion_chunk(to_completion(answer, ids.now(), ids.new_id))
