"""The fast path of calls of models: plain requests whose answers need no step but the call of a source.

It decides with the functions of the general way, and leaves everything else to it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Generic, Protocol, cast

from gatewayd.accounts.records import Actor
from gatewayd.catalog.failover import Candidate, foresee, note_attempt
from gatewayd.catalog.interfaces import (
    BegunCompletion,
    BegunRequest,
    CallContext,
    ImmediateSource,
    ModelSource,
    Taken,
)
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.records import Body, Completion
from gatewayd.errors import GatewayError
from gatewayd.metering.answers import finish_whole
from gatewayd.metering.begun_call import BegunCall
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import MeteredCall
from gatewayd.pipeline.begun_stream import Asked, BegunChatStream, end_call
from gatewayd.pipeline.documents.placeholders import fill_system_messages, names_time
from gatewayd.pipeline.documents.presets import is_altering
from gatewayd.pipeline.endpoints import context_of
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.pipeline import PIPE, ask_for_usage, forget_option, told_warnings, unstreamed
from gatewayd.pipeline.reasoning_keeper import ReasoningKeeper, reasoning_origin
from gatewayd.pipeline.records import ChatRequest, Endpoint

FastAnswer = tuple[bytes, Sequence[str], Mapping[str, str]]
"""The bytes of a whole answer, its warnings, and the headers of the provider that the caller gets."""


class FastCalls:
    """Finds the source of a request that needs no wait before it is sent, and meters the call."""

    def __init__(self, catalog: Catalog, filters: ChatFilters) -> None:
        self._catalog = catalog
        self._filters = filters

    def _find(self, model_id: str, actor: Actor) -> Candidate[ModelSource] | None:
        """Return the only source of a model without records and filters, None for another model."""
        found = self._catalog.find_candidates(model_id, actor)
        if len(found) != 1:
            return None
        model = found[0].model
        if PIPE in model.detail or self._filters.may_apply(model.id):
            return None
        return None if is_altering(self._catalog.find_record(model.id)) else found[0]

    def _prepare(
        self, found: Candidate[ModelSource], actor: Actor, endpoint: Endpoint, body: Body, request_id: str
    ) -> CallContext | None:
        """Return the facts of a call that no admission concerns, with the call; None for another one."""
        meter, model = self._catalog.meter, found.model
        is_stream = body.get("stream") is True
        call = meter.prepare(actor, model.id, endpoint, body, request_id=request_id, is_stream=is_stream)
        foresee(call, model, found.source.name)
        if not meter.is_free(call):
            return None
        context = context_of(actor, request_id)
        context.call = call
        return context

    def _start(self, found: Candidate[ModelSource], call: MeteredCall, begun: "CancellableRequest") -> None:
        """Begin the call of a request that was sent."""
        note_attempt(call, found.model, found.source.name)
        is_started = False
        try:
            self._catalog.meter.start(call)
            is_started = True
        finally:
            if not is_started:
                # Nobody would read the answer.
                begun.cancel()


class FastChats(FastCalls):
    """Begins chat requests that need no wait before they are sent."""

    def __init__(self, catalog: Catalog, filters: ChatFilters, reasoning: ReasoningKeeper) -> None:
        super().__init__(catalog, filters)
        self._reasoning = reasoning

    def begin(
        self, request: ChatRequest, actor: Actor, arrived: Callable[[], None]
    ) -> "BegunChat | BegunChatStream | None":
        """Send a request and return at once; None, with nothing sent, if `Pipeline.run` must answer it.

        `arrived` is called once, when the answer can be taken, and for a stream whenever a part of it has
        come. Raises the refusals of the pipeline.
        """
        if request.options or request.files:
            return None
        found = self._find(request.model, actor)
        if found is None or not is_immediate(type(found.source)):
            return None
        model = found.model
        if self._reasoning.may_restore(request.body, actor.user_id, model):
            return None
        messages = request.body.get("messages") or ()
        fill_system_messages(request, actor)
        if request.body.get("messages") is not messages and names_time(messages):
            # The general way would fill in another time, and so send another request.
            return None
        context = self._prepare(found, actor, request.endpoint, request.body, request.request_id)
        if context is None or context.call is None:
            return None
        source, asked = cast(ImmediateSource, found.source), (request, context, reasoning_origin(model))
        send = self._stream if request.stream else self._whole
        begun = send(source, model, context.call, asked, arrived)
        if begun is not None:
            self._start(found, context.call, begun)
        return begun

    def _whole(
        self,
        source: ImmediateSource,
        model: Model,
        call: MeteredCall,
        asked: Asked,
        arrived: Callable[[], None],
    ) -> "BegunChat | None":
        request, context, origin = asked
        body = unstreamed({**request.body, "model": model.upstream_id})
        begun = source.complete_at_once(body, model, context, arrived)
        if begun is None:
            return None
        return BegunChat(begun, call, self._catalog.meter, (request, context), (self._reasoning, origin))

    def _stream(
        self,
        source: ImmediateSource,
        model: Model,
        call: MeteredCall,
        asked: Asked,
        arrived: Callable[[], None],
    ) -> BegunChatStream | None:
        request, context, origin = asked
        context.watch = watch = self._reasoning.watch(context.user_id)
        watch.begin(origin)
        body = {**request.body, "model": model.upstream_id}
        hides_usage = ask_for_usage(body)
        chunks = source.stream_at_once(body, model, context, arrived)
        if chunks is None:
            return None
        if hides_usage:
            forget_option(context)
        return BegunChatStream(chunks, call, self._catalog.meter, asked, hides_usage=hides_usage)


class CancellableRequest(Protocol):
    """A request that was sent."""

    def cancel(self) -> None:
        """End the request, whose client does not wait for the answer."""
        ...


class BegunWhole(Generic[Taken]):
    """A request for a whole answer that was sent."""

    __slots__ = ("_begun", "_call", "_meter")

    def __init__(self, begun: BegunRequest[Taken], call: MeteredCall, meter: CallMeter) -> None:
        self._begun = begun
        self._call = call
        self._meter = meter

    def take(self) -> FastAnswer | None:
        """Return the answer once it has arrived; None for one that the general way has to read.

        The request is over, or is to be handed over, after that.
        """
        raise NotImplementedError

    def hand_over(self) -> BegunCall:
        """Return what the general way needs to go on with the request."""
        return BegunCall(self._call, self._begun.sent, self._begun.response, self._end)

    def cancel(self) -> None:
        """End the request, whose client does not wait for the answer."""
        self._end(self._call, self._begun.response)

    def _end(self, call: MeteredCall | None, response: object | None) -> None:
        end_call(self._meter, call, response)


class BegunChat(BegunWhole[Completion]):
    """A chat request that was sent."""

    __slots__ = ("_context", "_reasoning", "_request")

    def __init__(
        self,
        begun: BegunCompletion,
        call: MeteredCall,
        meter: CallMeter,
        asked: tuple[ChatRequest, CallContext],
        reasoning: tuple[ReasoningKeeper, str],
    ) -> None:
        super().__init__(begun, call, meter)
        self._request, self._context = asked
        self._reasoning = reasoning

    def take(self) -> FastAnswer | None:
        """Return the answer once it has arrived; None for one that the pipeline has to read."""
        try:
            completion = self._begun.take()
        except GatewayError:
            return None
        if completion is None:
            return None
        self._begun.response.close()
        finish_whole(self._meter, self._call, completion.decoded)
        context = self._context
        if not completion.is_text:
            keeper, origin = self._reasoning
            watch = keeper.watch(context.user_id)
            watch.begin(origin)
            completion = watch.whole(completion)
        return completion.raw, told_warnings(self._request, context), context.reply_headers


@lru_cache
def is_immediate(kind: type[object]) -> bool:
    """Return True for a class of sources that implements `ImmediateSource`; a cached answer takes no time."""
    return issubclass(kind, ImmediateSource)
