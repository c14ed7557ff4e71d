"""The Responses protocol of a provider, for models that take tools, or everything, only there."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.completions.json_access import as_sequence
from gatewayd.completions.records import Body, Completion, CompletionChunk
from gatewayd.dialects.openai import wants_usage
from gatewayd.dialects.providers.rules import Protocol, Rules
from gatewayd.dialects.responses.upstream_events import ResponseDecoder
from gatewayd.dialects.responses.upstream_reply import failure_of, to_completion
from gatewayd.dialects.responses.upstream_request import ResponsesOptions, to_request
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.http.client import UpstreamResponse
from gatewayd.upstream.sources.model_rules import ModelRules
from gatewayd.upstream.sources.provider_client import ProviderClient
from gatewayd.upstream.streams.chunks import AnswerChunks, completion_chunk
from gatewayd.upstream.streams.decoder import DecodingReader
from gatewayd.upstream.streams.sse import DataFramer, FramingError

PATH: Final = "/responses"

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024
"""Maximum number of bytes of an event: the first and the last ones repeat the tools of the request."""

MAX_REMEMBERED_MODELS: Final = 1000
"""Maximum number of models whose refusals are remembered; the oldest is forgotten."""

UNREADABLE: Final = "invalid_encrypted_content"
"""The code of a refusal of reasoning that another organisation has encrypted."""

_PROTOCOLS: Final = frozenset(Protocol)
_NO_SUMMARY: Final = frozenset({"reasoning.summary"})
_NO_REASONING: Final = frozenset({"include", "reasoning", "reasoning.encrypted_content"})


class ResponsesProtocol:
    """Answers chat requests of one provider through its Responses endpoint.

    `origin` names the source in the reasoning that it has encrypted. A model that has no reasoning or no
    summary of it says so in a refusal; the request is then sent once more without, and so are later ones.
    """

    def __init__(self, origin: str, exchange: ProviderClient, rules: ModelRules, path: str = PATH) -> None:
        self._origin = origin
        self._exchange = exchange
        self._rules = rules
        self._path = path
        self._known: dict[str, ResponsesOptions] = {}

    async def complete(self, body: Body, model: Model, context: CallContext) -> Completion:
        """Return a whole answer."""
        answer = await self._answer(self._adapted(body, model, context, stream=False), model, context)
        failure = failure_of(answer)
        if failure is not None:
            raise self._exchange.failures.from_event(failure)
        if not isinstance(answer.get("output"), list):
            raise self._exchange.failures.broken("its answer has no 'output'")
        return Completion(body=to_completion(answer, ids.now(), self._origin))

    def stream(self, body: Body, model: Model, context: CallContext) -> AnswerChunks:
        """Return the answer in chunks."""
        body = self._adapted(body, model, context, stream=True)
        decoder = ResponseDecoder(ids.now(), self._origin, include_usage=wants_usage(body))
        reader = DecodingReader(DataFramer(MAX_EVENT_BYTES), decoder)
        whole = (self._whole, self._exchange.read_object)
        failures = self._exchange.failures
        return AnswerChunks(lambda: self._begin(body, model, context), reader, failures, whole, context.watch)

    def _adapted(self, body: Body, model: Model, context: CallContext, *, stream: bool) -> Body:
        return {**self._rules.adapt(body, model, context, is_responses=True), "stream": stream}

    async def _answer(self, body: Body, model: Model, context: CallContext) -> Body:
        attempt = self._attempt(body, self._options(model))
        while True:
            try:
                _, answer = await self._exchange.post(self._path, attempt.request, context)
            except GatewayError as error:
                attempt = self._next(attempt, body, error)
            else:
                for sentence in attempt.warnings:
                    self._rules.warn(sentence, model, context)
                return answer

    async def _begin(self, body: Body, model: Model, context: CallContext) -> UpstreamResponse:
        attempt = self._attempt(body, self._options(model))
        while True:
            try:
                response = await self._exchange.begin(self._path, attempt.request, context)
            except GatewayError as error:
                attempt = self._next(attempt, body, error)
            else:
                for sentence in attempt.warnings:
                    self._rules.warn(sentence, model, context)
                return response

    def _options(self, model: Model) -> ResponsesOptions:
        """Return what a model is known to take; one that takes no word of effort does not reason."""
        known = self._known.get(model.upstream_id)
        return known or ResponsesOptions(self._origin, reasons=self._rules.of(model).efforts != ())

    def _attempt(self, body: Body, options: ResponsesOptions) -> "_Attempt":
        attempt = _Attempt(options)
        attempt.request = to_request(body, options, attempt.warnings)
        return attempt

    def _next(self, attempt: "_Attempt", body: Body, error: GatewayError) -> "_Attempt":
        """Return the attempt after a refusal; raises it if there is nothing that can be left out."""
        options = _weaker(attempt.options, error)
        if options is None:
            raise error
        following = self._attempt(body, options)
        if not options.keeps_reasoning:
            following.warnings.append("left out the reasoning of earlier turns: the provider cannot read it")
            return following
        model = str(body.get("model"))
        if model not in self._known and len(self._known) >= MAX_REMEMBERED_MODELS:
            self._known.pop(next(iter(self._known)))
        self._known[model] = options
        return following

    def _whole(self, answer: Mapping[str, Any]) -> CompletionChunk:
        failure = failure_of(answer)
        if failure is not None:
            raise self._exchange.failures.from_event(failure)
        if not isinstance(answer.get("output"), list):
            raise FramingError("its answer has no 'output'")
        return completion_chunk(to_completion(answer, ids.now(), self._origin))


def uses_responses(body: Mapping[str, Any], rules: Rules, forced: object) -> bool:
    """Return whether a chat request goes to the Responses endpoint.

    `forced` is the word of the model record or of the provider's settings, which goes before the rules. With
    `responses_with_tools` a request without tools, or without reasoning, stays a chat completion.
    """
    protocol = forced if isinstance(forced, str) and forced in _PROTOCOLS else rules.protocol
    if protocol == Protocol.RESPONSES_WITH_TOOLS:
        return len(as_sequence(body.get("tools"))) > 0 and body.get("reasoning_effort") != "none"
    return protocol == Protocol.RESPONSES


@dataclass(slots=True)
class _Attempt:
    options: ResponsesOptions
    request: Body = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def _weaker(options: ResponsesOptions, error: GatewayError) -> ResponsesOptions | None:
    """Return the options without what a refusal names, None if it names nothing of them."""
    if error.kind is not ErrorKind.INVALID_REQUEST:
        return None
    if error.provider_code == UNREADABLE and options.keeps_reasoning:
        return replace(options, keeps_reasoning=False)
    if error.param in _NO_SUMMARY and options.has_summary:
        return replace(options, has_summary=False)
    if error.param in _NO_REASONING and options.reasons:
        return replace(options, reasons=False)
    return None
