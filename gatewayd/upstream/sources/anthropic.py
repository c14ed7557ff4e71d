"""Source for the Anthropic messages protocol."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gatewayd import ids
from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.dialects.anthropic.completion import to_completion
from gatewayd.dialects.anthropic.events import EventDecoder
from gatewayd.dialects.anthropic.source import to_request
from gatewayd.dialects.openai import wants_usage
from gatewayd.dialects.providers.message_request import capabilities_of
from gatewayd.errors import GatewayError
from gatewayd.upstream.http.client import UpstreamClient
from gatewayd.upstream.sources.config import ProviderConfig
from gatewayd.upstream.sources.model_list import select_models
from gatewayd.upstream.sources.model_rules import ModelRules
from gatewayd.upstream.sources.provider_client import ProviderClient, lacks_listing, listed_objects
from gatewayd.upstream.streams.anthropic import MessageReader, message_events
from gatewayd.upstream.streams.chunks import AnswerChunks, completion_chunk
from gatewayd.upstream.streams.decoder import DecodingReader
from gatewayd.upstream.streams.sse import DataFramer, FramingError

VERSION = "2023-06-01"
"""The protocol version in requests."""

BETA_FIELDS = frozenset(
    {
        "anthropic_beta",
        "anthropic_version",
        "betas",
        "context_management",
        "mcp_servers",
        "output_format",
    }
)
"""Fields of other hosts of the protocol, or of betas, whose `anthropic-beta` header is not sent."""

MAX_PAGES = 20
"""Maximum number of pages of the list of models, of up to 1,000 models each."""


class AnthropicSource:
    """A hosted provider; its base URL may end in `/v1`."""

    def __init__(self, config: ProviderConfig, client: UpstreamClient | None = None) -> None:
        self._config = config.without_suffix("/v1")
        headers = {"anthropic-version": VERSION}
        if config.key is not None:
            headers["x-api-key"] = config.key
        self._exchange = ProviderClient(self._config, headers, client)
        self._rules = ModelRules(self._config)

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._config.name

    async def list_models(self) -> Sequence[Model]:
        """Fetch the models of the provider, page by page.

        A provider without a list (404) has the models of the allow list, if there is one.
        """
        try:
            found = await self._pages()
        except GatewayError as error:
            if not lacks_listing(error) or not self._config.models:
                raise
            found = [{"id": model_id} for model_id in self._config.models]
        named = [{**item, "name": item.get("display_name")} for item in found]
        return await select_models(self._config, named, "anthropic", self._detail)

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Return a whole answer."""
        _, answer = await self._exchange.post(
            "/v1/messages", {**self._request(body, model, context), "stream": False}, context
        )
        if not isinstance(answer.get("content"), list):
            raise self._exchange.failures.broken("its answer has no 'content'")
        return Completion(body=to_completion(answer, ids.now()))

    def stream(self, body: Body, model: Model, context: CallContext) -> AnswerChunks:
        """Return the answer in chunks."""
        reader = DecodingReader(DataFramer(), EventDecoder(ids.now(), include_usage=wants_usage(body)))
        return self._exchange.chunks(
            "/v1/messages",
            {**self._request(body, model, context), "stream": True},
            reader,
            _whole,
            context,
        )

    async def complete_message(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Answer a request in this protocol without conversion, except for the id of the model."""
        _, answer = await self._exchange.post("/v1/messages", {**_plain(body), "stream": False}, context)
        if not isinstance(answer.get("content"), list):
            raise self._exchange.failures.broken("its answer has no 'content'")
        answer.pop("event", None)
        return Completion(body={"type": "message", "role": "assistant", **answer, "model": model.id})

    def stream_message(self, body: Body, model: Model, context: CallContext) -> AnswerChunks:
        """Answer a request in this protocol with its own events."""
        return self._exchange.chunks(
            "/v1/messages",
            {**_plain(body), "stream": True},
            MessageReader(model.id),
            lambda answer: message_events(answer, model.id),
            context,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._exchange.close()

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
        request = to_request(self._rules.adapt(body, model, context), listed or capabilities_of(rules))
        self._rules.adapt_message(request, model, context)
        return request

    def _detail(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"openai": item, "urlIdx": self._config.index}


def _plain(body: Body) -> Body:
    """Return a messages request without the fields that the provider refuses without a beta header."""
    plain = {name: value for name, value in body.items() if name not in BETA_FIELDS}
    # The former beta field is part of output_config now.
    older, config = body.get("output_format"), as_mapping(body.get("output_config"))
    if older is not None and config.get("format") is None:
        plain["output_config"] = {**config, "format": older}
    return plain


def _whole(answer: dict[str, Any]) -> CompletionChunk:
    if not isinstance(answer.get("content"), list):
        raise FramingError("its answer has no 'content'")
    return completion_chunk(to_completion(answer, ids.now()))
