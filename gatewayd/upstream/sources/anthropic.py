"""Source for the Anthropic messages protocol."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from gatewayd import ids
from gatewayd.catalog.interfaces import BegunCompletion, CallContext, NativeProtocol, PreparingSource
from gatewayd.catalog.records import Model
from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.native_thoughts import THINKING_LEFT_OUT
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.dialects.anthropic.betas import BETA_HEADER
from gatewayd.dialects.anthropic.completion import to_completion
from gatewayd.dialects.anthropic.effort import is_refused_budget
from gatewayd.dialects.anthropic.events import EventDecoder
from gatewayd.dialects.anthropic.hosts import MessageHost
from gatewayd.dialects.anthropic.source import to_request
from gatewayd.dialects.openai import wants_usage
from gatewayd.dialects.providers.message_request import capabilities_of
from gatewayd.errors import not_found
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.batches import AnthropicBatches
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.message_requests import VERSION, VERSION_HEADER, MessageRequests
from gatewayd.upstream.sources.model_list import find_listed, select_models
from gatewayd.upstream.sources.model_rules import ModelRules
from gatewayd.upstream.sources.provider_client import ProviderClient, listed_objects
from gatewayd.upstream.streams.anthropic import MessageReader, message_events
from gatewayd.upstream.streams.begun_chunks import BegunChunks
from gatewayd.upstream.streams.chunks import AnswerChunks, completion_chunk
from gatewayd.upstream.streams.decoder import DecodingReader
from gatewayd.upstream.streams.sse import FramingError

COUNT_PATH = "/v1/messages/count_tokens"
"""The endpoint that counts the tokens of a request."""

COUNTED_FIELDS = (
    "cache_control",
    "context_management",
    "mcp_servers",
    "messages",
    "model",
    "output_config",
    "output_format",
    "speed",
    "system",
    "thinking",
    "tool_choice",
    "tools",
)
"""Fields of a request that the endpoint takes."""

MAX_PAGES = 20
"""Maximum number of pages of the list of models, of up to 1,000 models each."""


class AnthropicSource(PreparingSource):
    """A hosted provider; its base URL may end in `/v1`."""

    def __init__(self, config: ProviderConfig, client: UpstreamClient | None = None) -> None:
        rules = ModelRules(config)
        self._requests = MessageRequests(config, rules)
        suffix = "/models" if self._requests.host is MessageHost.VERTEX else "/v1"
        self._config = config.without_suffix(suffix)
        headers = {VERSION_HEADER: VERSION}
        if config.key is not None:
            headers |= self._key_headers(config.key)
        self._exchange = ProviderClient(
            self._config, headers, client, NativeProtocol.ANTHROPIC, self._key_headers
        )
        self._batches = AnthropicBatches(self._exchange)
        self._rules = rules

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._config.name

    @property
    def model_prefix(self) -> str:
        """Prefix that the ids of callers have before the provider's own ids."""
        return self._config.prefix

    async def list_models(self) -> Sequence[Model]:
        """Fetch the models of the provider, page by page, see `find_listed`.

        Bedrock and Vertex have the models of the settings.
        """
        if self._requests.rules.has_model_in_path:
            found: Sequence[Mapping[str, Any]] = [{"id": model_id} for model_id in self._config.models]
        else:
            found = await find_listed(self._config, self._pages)
        named = [{**item, "name": item.get("display_name")} for item in found]
        return await select_models(self._config, named, "anthropic", self._detail)

    def prepares(self, model: Model) -> bool:
        """Return False if the messages of a model's requests stay as they are."""
        return self._rules.repairs(model)

    async def prepare(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return a chat request with its messages as the model takes them."""
        return await self._rules.repair(body, model, context)

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Return a whole answer."""
        asked = self._requests.converted(self._request(body, model, context), model, context, stream=False)
        _, answer = await self._exchange.post(asked.path, asked.body, context, asked.headers)
        if not isinstance(answer.get("content"), list):
            raise self._exchange.failures.broken("its answer has no 'content'")
        return Completion(body=to_completion(answer, ids.now()))

    def stream(self, body: Body, model: Model, context: CallContext) -> AnswerChunks:
        """Return the answer in chunks."""
        decoder = EventDecoder(ids.now(), include_usage=wants_usage(body))
        reader = DecodingReader(self._requests.framer(), decoder)
        asked = self._requests.converted(self._request(body, model, context), model, context, stream=True)
        return self._exchange.chunks(asked.path, asked.body, reader, _whole, context, asked.headers)

    async def complete_message(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Answer a request in this protocol without conversion, except for the id of the model."""
        asked = self._requests.native(body, model, context, stream=False)
        found = await self._exchange.post(asked.path, asked.body, context, asked.headers, is_native=True)
        return self._message(model, *found)

    def complete_message_at_once(
        self, body: Body, model: Model, context: CallContext, arrived: Callable[[], None]
    ) -> BegunCompletion | None:
        """Send the request of `complete_message` and return at once; None if that needs a wait."""
        asked = self._requests.native(body, model, context, stream=False)
        convert = partial(self._message, model)
        return self._exchange.post_at_once(
            asked.path, asked.body, context, arrived, convert, asked.headers, is_native=True
        )

    def _message(self, model: Model, _: bytes, answer: Body) -> Completion:
        if not isinstance(answer.get("content"), list):
            raise self._exchange.failures.broken("its answer has no 'content'")
        answer.pop("event", None)
        return Completion(body={"type": "message", "role": "assistant", **answer, "model": model.id})

    def stream_message(self, body: Body, model: Model, context: CallContext) -> AnswerChunks:
        """Answer a request in this protocol with its own events."""
        asked = self._requests.native(body, model, context, stream=True)
        return self._exchange.chunks(
            asked.path,
            asked.body,
            MessageReader(model.id, framer=self._requests.framer()),
            lambda answer: message_events(answer, model.id),
            context,
            asked.headers,
            is_native=True,
        )

    def stream_message_at_once(
        self, body: Body, model: Model, context: CallContext, arrived: Callable[[], None]
    ) -> BegunChunks | None:
        """Send the request of `stream_message` and return at once; None if that needs a wait."""
        asked = self._requests.native(body, model, context, stream=True)
        reader = MessageReader(model.id, framer=self._requests.framer())
        return self._exchange.chunks_at_once(
            asked.path, asked.body, reader, context, arrived, asked.headers, is_native=True
        )

    async def count_message(self, body: Body, model: Model, context: CallContext) -> int:
        """Return the number of input tokens of a request in this protocol.

        Hosts with the model in the path have no such endpoint, which raises not_found.
        """
        asked = self._requests.native(body, model, context, stream=False)
        if self._requests.rules.has_model_in_path:
            raise not_found("endpoint", COUNT_PATH)
        counted = {name: asked.body[name] for name in COUNTED_FIELDS if name in asked.body}
        _, answer = await self._exchange.post(COUNT_PATH, counted, context, asked.headers)
        tokens = answer.get("input_tokens")
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
            raise self._exchange.failures.broken("its count has no 'input_tokens'")
        return tokens

    @property
    def passes_batches(self) -> bool:
        """Whether new batches are passed on."""
        return self._config.passes_batches

    @property
    def batches(self) -> AnthropicBatches:
        """The batches of the provider."""
        return self._batches

    async def batch_request(
        self, endpoint: str, body: Body, model: Model, context: CallContext
    ) -> Body | None:
        """Return a messages request as a batch of the provider takes it; None for one of another protocol.

        A batch has no headers for its requests, so that one with betas is None.
        """
        if endpoint != "/v1/messages" or self._requests.rules.has_model_in_path:
            return None
        asked = self._requests.native({**body, "model": model.upstream_id}, model, context, stream=False)
        return None if BETA_HEADER in asked.headers else asked.body

    async def close(self) -> None:
        """Close all connections."""
        await self._exchange.close()

    def _key_headers(self, key: str) -> dict[str, str]:
        """Return the header that carries a key at the host."""
        if self._requests.rules.is_bearer:
            return {"Authorization": f"Bearer {key}"}
        return self._config.key_headers(key)

    async def _pages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        path = "/v1/models?limit=1000"
        for _ in range(MAX_PAGES):
            page = await self._exchange.get(path)
            found += listed_objects(page, "data", self._exchange.failures)
            last = page.get("last_id") if isinstance(page, dict) and page.get("has_more") else None
            if not isinstance(last, str):
                return found
            path = f"/v1/models?limit=1000&after_id={quote(last, safe='')}"
        raise self._exchange.failures.broken(f"its list of models has over {MAX_PAGES} pages")

    def _request(self, body: Body, model: Model, context: CallContext) -> Body:
        """Return a messages request for a chat request, with what the model takes."""
        rules = self._rules.of(model)
        listed = as_mapping(model.detail.get("openai")).get("capabilities")
        adapted = self._rules.adapt(body, model, context)
        request = to_request(
            adapted,
            listed or capabilities_of(rules),
            rules.max_output,
            sends_reasoning=rules.messages.demands_reasoning,
        )
        self._rules.adapt_message(request, model, context)
        if is_refused_budget(request):
            del request["thinking"]
            self._rules.warn(THINKING_LEFT_OUT, model, context)
        return request

    def _detail(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"openai": item, "urlIdx": self._config.index}


def _whole(answer: dict[str, Any]) -> CompletionChunk:
    if not isinstance(answer.get("content"), list):
        raise FramingError("its answer has no 'content'")
    return completion_chunk(to_completion(answer, ids.now()))
