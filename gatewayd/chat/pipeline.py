"""The one pipeline: every chat request, in every dialect, goes through `Pipeline.run`."""

from dataclasses import dataclass

from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import CallContext, MessagesSource, ModelSource
from gatewayd.catalog.records import Model
from gatewayd.catalog.replies import Completion
from gatewayd.catalog.service import Catalog
from gatewayd.chat.endpoints import context_of
from gatewayd.chat.interfaces import Attachments, ChatFilter, ChatFilters, FilterChain, ToolBox
from gatewayd.chat.records import Answer, ChatRequest
from gatewayd.chat.stream import StartedStream


@dataclass(frozen=True, slots=True)
class NoFilterChain:
    """A chain without filters."""

    inlets: tuple[ChatFilter, ...] = ()
    streams: tuple[ChatFilter, ...] = ()
    outlets: tuple[ChatFilter, ...] = ()


class NoFilters:
    """Chooses no filter: what runs while no plugin is installed."""

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> FilterChain:
        """Return the empty chain."""
        return NoFilterChain()


class NoTools:
    """Offers no tools of the gateway's own: the caller's tools are the caller's to run."""

    async def offer(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        """Leave the request as it is."""
        return


class Pipeline:
    """Finds the model, runs the inlets, attaches documents, asks the source, runs the stream filters."""

    def __init__(
        self, catalog: Catalog, filters: ChatFilters, attachments: Attachments, tools: ToolBox
    ) -> None:
        self._catalog = catalog
        self._filters = filters
        self._attachments = attachments
        self._tools = tools

    async def run(self, request: ChatRequest, actor: Actor) -> Answer:
        """Answer a request; a failure before the first chunk raises, one after it raises from `chunks`."""
        candidates = await self._catalog.candidates(request.model, actor)
        model = candidates[0].model
        chain = await self._filters.choose(request, model, actor)
        for item in chain.inlets:
            await item.inlet(request, model, actor)
        if chain.inlets:
            # An inlet may route to another model: the right to use it is decided again.
            candidates = await self._catalog.candidates(request.model, actor)
            model = candidates[0].model
        known = len(request.warnings)
        sources = await self._attachments.attach(request, actor) if request.files else []
        noted = request.warnings[known:]
        loop = await self._tools.offer(request, model, actor)
        context = context_of(actor, request.request_id, is_converted=request.native is not None)
        call = _Call(request, context, chain, is_plain=not sources and loop is None)
        ask = self._catalog.failover.ask
        if loop is None:
            answer = await ask(candidates, call.answer)
        else:
            answer = Answer(completion=await ask(candidates, call.complete))
        while loop is not None and answer.completion and await loop.follow_up(answer.completion, request):
            answer = Answer(completion=await ask(candidates, call.complete))
        if answer.is_native:
            # Only the warnings about its conversion are not true of a request that goes out as it came.
            answer.warnings = noted
            return answer
        answer.sources, answer.warnings = sources, request.warnings
        if answer.completion is not None:
            for item in chain.outlets:
                await item.outlet(answer.completion, actor)
            if sources:
                answer.completion = Completion(body={"sources": sources, **answer.completion.body})
        return answer


class _Call:
    """One request, to be put to a source of its model."""

    __slots__ = ("_chain", "_context", "_is_native", "_request")

    def __init__(
        self, request: ChatRequest, context: CallContext, chain: FilterChain, *, is_plain: bool
    ) -> None:
        self._request = request
        self._context = context
        self._chain = chain
        self._is_native = (
            request.native is not None and is_plain and not (chain.inlets or chain.streams or chain.outlets)
        )

    async def answer(self, model: Model, source: ModelSource) -> Answer:
        """Return the answer, its first chunk when it is streamed."""
        if self._is_native and isinstance(source, MessagesSource):
            return await _run_native(self._request, source, model, self._context)
        if not self._request.stream:
            return Answer(completion=await self.complete(model, source))
        body = {**self._request.body, "model": model.upstream_id}
        chunks = source.stream(body, model, self._context)
        return Answer(chunks=await StartedStream.start(chunks, self._chain.streams))

    async def complete(self, model: Model, source: ModelSource) -> Completion:
        """Return a whole answer, whatever the caller asked for."""
        body = {**self._request.body, "model": model.upstream_id}
        body.pop("stream_options", None)
        if body.get("stream"):
            body["stream"] = False
        return await source.complete(body, model, self._context)


async def _run_native(
    request: ChatRequest, source: MessagesSource, model: Model, context: CallContext
) -> Answer:
    """Answer in the caller's own dialect, as nothing needs the request in ours.

    The request goes out as it came.
    """
    body = {**(request.native or {}), "model": model.upstream_id}
    if request.stream:
        started = await StartedStream.start(source.stream_message(body, model, context), ())
        return Answer(chunks=started, is_native=True)
    completion = await source.complete_message(body, model, context)
    return Answer(completion=completion, is_native=True)
