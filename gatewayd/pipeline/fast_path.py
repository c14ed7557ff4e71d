"""The fast path of calls of models: plain requests whose answers need no step but the call of a source.

It decides with the functions of the general way, and leaves everything else to it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, cast

from gatewayd.accounts.records import Actor
from gatewayd.catalog.failover import Candidate, foresee, note_attempt
from gatewayd.catalog.interfaces import (
    BegunRequest,
    CallContext,
    ImmediateMessages,
    ImmediateSource,
    MessagesSource,
    ModelSource,
    Taken,
    implements,
)
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.records import Body, Completion
from gatewayd.errors import GatewayError
from gatewayd.json_encoder import is_light
from gatewayd.metering.answers import finish_whole
from gatewayd.metering.begun_call import BegunCall
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import MeteredCall
from gatewayd.pipeline.begun_stream import Asked, BegunChatStream, end_call
from gatewayd.pipeline.documents.placeholders import fill_message_request, fill_system_messages, names_time
from gatewayd.pipeline.documents.presets import is_altering
from gatewayd.pipeline.endpoints import context_of
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.pipeline import PIPE, ask_for_usage, forget_option, told_warnings, unstreamed
from gatewayd.pipeline.reasoning_keeper import ReasoningKeeper, reasoning_origin
from gatewayd.pipeline.records import ChatAnswer, ChatRequest, Endpoint

FastAnswer = tuple[bytes, Sequence[str], Mapping[str, str]]
"""The bytes of a whole answer, its warnings, and the headers of the provider that the caller gets."""


@dataclass(frozen=True, slots=True)
class ChatConversion:
    """How the requests of a dialect become those of chats, and whole answers replies: as for the pipeline.

    `render` raises upstream_failed.
    """

    convert: Callable[[ChatRequest], None]
    render: Callable[[ChatRequest, ChatAnswer], bytes]


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
        self,
        found: Candidate[ModelSource],
        actor: Actor,
        endpoint: Endpoint,
        body: Body,
        context: CallContext,
    ) -> MeteredCall | None:
        """Return the call of a request, which `context` gets, if no admission concerns it; else None."""
        meter, model = self._catalog.meter, found.model
        is_stream, request_id = body.get("stream") is True, context.request_id
        call = meter.prepare(actor, model.id, endpoint, body, request_id=request_id, is_stream=is_stream)
        foresee(call, model, found.source.name)
        if not meter.is_free(call):
            return None
        context.call = call
        return call

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
        self,
        request: ChatRequest,
        actor: Actor,
        arrived: Callable[[], None],
        conversion: ChatConversion | None = None,
    ) -> "BegunChat | BegunChatStream | None":
        """Send a request and return at once; None, with nothing sent, if `Pipeline.run` must answer it.

        `arrived` is called once, when the answer can be taken, and for a stream whenever a part of it has
        come. A request of the messages dialect has a `conversion`, and is not yet converted. Raises the
        refusals of the pipeline.
        """
        if request.options or request.files:
            return None
        found = self._find(request.model, actor)
        if found is None:
            return None
        is_native = conversion is not None and implements(type(found.source), MessagesSource)
        if not implements(type(found.source), ImmediateMessages if is_native else ImmediateSource):
            return None
        if not is_native and conversion is not None:
            conversion.convert(request)
        if not self._fill(request, actor, is_native=is_native):
            return None
        context = context_of(
            actor,
            request.request_id,
            is_converted=conversion is not None,
            client_headers=request.client_headers,
        )
        call = self._prepare(found, actor, request.endpoint, request.native or request.body, context)
        if call is None:
            return None
        asked = (request, context, reasoning_origin(found.model), is_native)
        begun = self._send(found, call, asked, arrived, conversion)
        if begun is not None:
            self._start(found, call, begun)
        return begun

    def _fill(self, request: ChatRequest, actor: Actor, *, is_native: bool) -> bool:
        """Fill placeholders; return whether the pipeline fills the same, and the request stays light."""
        if is_native:
            # The pipeline fills them in the converted request as well.
            native = request.native or {}
            return fill_message_request(native, actor) is native
        messages = request.body.get("messages") or ()
        fill_system_messages(request, actor)
        if request.body.get("messages") is messages:
            return True
        return not names_time(messages) and is_light(request.body)

    def _send(
        self,
        found: Candidate[ModelSource],
        call: MeteredCall,
        asked: Asked,
        arrived: Callable[[], None],
        conversion: ChatConversion | None,
    ) -> "BegunChat | BegunChatStream | None":
        request, context, origin, is_native = asked
        model, source, meter = found.model, found.source, self._catalog.meter
        body = self._restored(request, model, context.user_id, is_native=is_native)
        if body is None:
            return None
        body["model"] = model.upstream_id
        if not request.stream:
            begun = (
                cast(ImmediateMessages, source).complete_message_at_once(body, model, context, arrived)
                if is_native
                else cast(ImmediateSource, source).complete_at_once(unstreamed(body), model, context, arrived)
            )
            return (
                None if begun is None else BegunChat(begun, call, meter, asked, self._reasoning, conversion)
            )
        context.watch = watch = self._reasoning.watch(context.user_id)
        watch.begin(origin, is_native=is_native)
        hides_usage = not is_native and ask_for_usage(body)
        chunks = (
            cast(ImmediateMessages, source).stream_message_at_once(body, model, context, arrived)
            if is_native
            else cast(ImmediateSource, source).stream_at_once(body, model, context, arrived)
        )
        if hides_usage:
            forget_option(context)
        return (
            None if chunks is None else BegunChatStream(chunks, call, meter, asked, hides_usage=hides_usage)
        )

    def _restored(self, request: ChatRequest, model: Model, user_id: str, *, is_native: bool) -> Body | None:
        """Return a copy of a request with the reasoning of its model's maker; None if that takes a wait."""
        if is_native:
            found = self._reasoning.restore_native_at_once(request.native or {}, user_id, model)
            if found is None:
                return None
            request.warnings = [found.warning] if found.warning else []
            return {**found.body}
        if request.unconvertible is not None or self._reasoning.may_restore(request.body, user_id, model):
            return None
        return {**request.body}


class CancellableRequest(Protocol):
    """A request that was sent."""

    def cancel(self) -> None:
        """End the request, whose client does not wait for the answer."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class BegunWhole(Generic[Taken]):
    """A request for a whole answer that was sent."""

    _begun: BegunRequest[Taken]
    _call: MeteredCall
    _meter: CallMeter

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


@dataclass(slots=True, eq=False, repr=False)
class BegunChat(BegunWhole[Completion]):
    """A chat request that was sent."""

    _asked: Asked
    _reasoning: ReasoningKeeper
    _conversion: ChatConversion | None

    def take(self) -> FastAnswer | None:
        """Return the answer once it has arrived; None for one that the pipeline has to read."""
        request, context, origin, is_native = self._asked
        try:
            completion = self._begun.take()
            if completion is None:
                return None
            if not completion.is_text:
                watch = self._reasoning.watch(context.user_id)
                watch.begin(origin, is_native=is_native)
                completion = watch.whole(completion)
            if self._conversion is None:
                content = completion.raw
            else:
                answer = ChatAnswer(completion, is_native=is_native, origin=origin)
                content = self._conversion.render(request, answer)
        except GatewayError:
            return None
        self._begun.response.close()
        finish_whole(self._meter, self._call, completion.decoded)
        return content, told_warnings(request, context), context.reply_headers
