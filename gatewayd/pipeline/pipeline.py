"""The chat pipeline: `Pipeline.run` processes the chat requests of all dialects."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from gatewayd.accounts.records import Actor
from gatewayd.catalog.failover import Candidate, foresee
from gatewayd.catalog.interfaces import (
    CallContext,
    ChunkStream,
    MessagesSource,
    ModelSource,
    PreparingSource,
    implements,
)
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.catalog.service import Catalog
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.reasoning_memory import ReasoningMemory
from gatewayd.completions.records import Body, Completion
from gatewayd.errors import GatewayError
from gatewayd.metering.answers import MeteredChunks, finish_whole
from gatewayd.metering.limit_headers import add_limit_headers
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.records import MeteredCall
from gatewayd.pipeline.documents.placeholders import fill_system_messages
from gatewayd.pipeline.documents.plugin_context import make_scope
from gatewayd.pipeline.documents.presets import apply_record
from gatewayd.pipeline.endpoints import context_of, select_source
from gatewayd.pipeline.interfaces import Attachments, ChatFilter, ChatFilters, FilterChain, ToolBox, ToolUse
from gatewayd.pipeline.reasoning_keeper import AnswerWatcher, ReasoningKeeper, has_answers, reasoning_origin
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.pipeline.stream import StartedStream
from gatewayd.pipeline.tools.loop import ToolLoop, ToolLoopStream, complete_tool_loop
from gatewayd.plugins.runtime.context import CallScope

Result = TypeVar("Result")

PIPE: Final = "pipe"
"""Key that only the listings of function models have."""


@dataclass(frozen=True, slots=True)
class NoFilterChain:
    """A chain without filters."""

    inlets: tuple[ChatFilter, ...] = ()
    streams: tuple[ChatFilter, ...] = ()
    outlets: tuple[ChatFilter, ...] = ()
    handles_files: bool = False


class NoFilters:
    """Selects no filters; used without plugins."""

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> FilterChain:
        """Return the empty chain."""
        return NoFilterChain()

    def may_apply(self, model_id: str) -> bool:
        """Return False."""
        return False

    async def are_on(self, model_id: str) -> bool:
        """Return False."""
        return False


class NoDocuments:
    """Attaches no documents."""

    async def attach(
        self, request: ChatRequest, actor: Actor, found: Sequence[dict[str, Any]] = ()
    ) -> list[dict[str, Any]]:
        """Return no sources."""
        return []


class NoTools:
    """Offers no tools of the gateway; the caller's own tools pass through."""

    async def offer(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        """Leave the request unchanged."""
        return


Scopes = Callable[[ChatRequest, Model, ModelRecord | None, Actor], CallScope]
"""Makes the plugin context of a request."""

Candidates = Sequence[Candidate[ModelSource]]


class Pipeline:
    """Finds the model, runs inlets, tools and attachments, calls the source, and runs stream filters.

    It remembers the reasoning of its own answers.
    """

    def __init__(
        self,
        catalog: Catalog,
        filters: ChatFilters,
        attachments: Attachments,
        tools: ToolBox,
        scopes: Scopes = make_scope,
    ) -> None:
        self.reasoning = ReasoningKeeper(ReasoningMemory())
        self._catalog = catalog
        self._filters = filters
        self._attachments = attachments
        self._tools = tools
        self._scopes = scopes
        self._has_own_scopes = scopes is not make_scope

    async def run(self, request: ChatRequest, actor: Actor) -> ChatAnswer:
        """Answer a request; an error before the first chunk raises here, a later one raises from `chunks`."""
        is_converted = request.native is not None
        candidates = await self._candidates(request, actor)
        model = candidates[0].model
        fill_system_messages(request, actor)
        record = self._apply_record(request, model, actor)
        chain = await self._choose(request, model, actor)
        if request.scope is None and _needs_scope(request, chain, model):
            request.scope = self._scope(request, model, actor)
        if chain.inlets:
            check_convertible(request)
            candidates = await self._filtered(request, actor, chain, model)
            model = candidates[0].model
            record = self._catalog.find_record(model.id)
        use = await self._tools.offer(request, model, actor) if request.options or record else None
        known = len(request.warnings)
        sources = await self._attach(request, actor, chain, use) if request.files or use is not None else []
        new_warnings = request.warnings[known:]
        watch = self.reasoning.watch(actor.user.id)
        context = context_of(
            actor,
            request.request_id,
            is_converted=is_converted,
            scope=request.scope,
            chat_id=request.options.get("chat_id"),
            client_headers=request.client_headers,
            watch=watch,
        )
        call = _Call(request, context, chain, (self.reasoning, watch), is_plain=not sources and use is None)
        caller = _SourceCaller(self._catalog, candidates, call, actor)
        answer = await (caller.answer() if use is None else _answer_with_tools(request, use, caller))
        if context.call is not None and context.call.admissions:
            add_limit_headers(context.call, context.reply_headers)
        answer.headers, answer.origin = context.reply_headers, call.origin
        if answer.is_native:
            # Conversion warnings do not apply to a request that is sent in its original form.
            answer.warnings = [*new_warnings, *context.warnings] if context.warnings else new_warnings
            return answer
        answer.sources = _cited(sources) if sources else sources
        answer.warnings = told_warnings(request, context)
        if answer.completion is not None:
            for item in chain.outlets:
                await item.outlet(answer.completion, actor)
            if answer.sources:
                answer.completion = _with_sources(answer.completion, answer.sources)
        return answer

    def _choose(self, request: ChatRequest, model: Model, actor: Actor) -> Awaitable[FilterChain]:
        if self._has_own_scopes and request.scope is None:
            request.scope = self._scope(request, model, actor)
        return self._filters.choose(request, model, actor)

    def _candidates(self, request: ChatRequest, actor: Actor) -> Awaitable[Candidates]:
        if request.source:
            return self._candidates_of_source(request, actor)
        return self._catalog.candidates(request.model, actor)

    async def _candidates_of_source(self, request: ChatRequest, actor: Actor) -> Candidates:
        return select_source(await self._catalog.candidates(request.model, actor), request.source)

    def _apply_record(self, request: ChatRequest, model: Model, actor: Actor) -> ModelRecord | None:
        record = self._catalog.find_record(model.id)
        if record is not None:
            apply_record(request, record, actor)
        return record

    async def _filtered(
        self, request: ChatRequest, actor: Actor, chain: FilterChain, model: Model
    ) -> Candidates:
        """Run the inlets; if one routes to another model, check access to that model again."""
        for item in chain.inlets:
            await item.inlet(request, model, actor)
        candidates = await self._candidates(request, actor)
        routed = candidates[0].model
        if routed.id != model.id:
            self._apply_record(request, routed, actor)
            if request.scope is not None:
                request.scope.model = self._scope(request, routed, actor).model
        return candidates

    async def _attach(
        self, request: ChatRequest, actor: Actor, chain: FilterChain, use: ToolUse | None
    ) -> list[dict[str, Any]]:
        """Attach documents, unless a filter or a tool handles the files; return the cited sources."""
        if chain.handles_files or (use is not None and use.handles_files):
            request.files = []
        found = use.sources if use is not None else ()
        return await self._attachments.attach(request, actor, found) if request.files or found else []

    def _scope(self, request: ChatRequest, model: Model, actor: Actor) -> CallScope:
        return self._scopes(request, model, self._catalog.find_record(model.id), actor)


def unstreamed(body: Body) -> Body:
    """Change a request to one for a whole answer, and return it."""
    body.pop("stream_options", None)
    if body.get("stream"):
        body["stream"] = False
    return body


def ask_for_usage(body: Body) -> bool:
    """Change a request for a stream so that its usage is told; return False if its caller asks for it."""
    options = as_mapping(body.get("stream_options"))
    if options.get("include_usage") is True:
        return False
    body["stream_options"] = {**options, "include_usage": True}
    return True


def forget_option(context: CallContext) -> None:
    """Drop the warning of a source that lacks the option of `ask_for_usage`: the caller has not sent it."""
    if context.warnings:
        context.warnings[:] = [one for one in context.warnings if "stream_options" not in one]


def told_warnings(request: ChatRequest, context: CallContext) -> list[str]:
    """Return the warnings of a request and of the sources that were asked."""
    return [*request.warnings, *dict.fromkeys(context.warnings)] if context.warnings else request.warnings


def check_convertible(request: ChatRequest) -> None:
    """Raise the refusal of a request that only a source of its own dialect can take."""
    if request.unconvertible is not None:
        raise request.unconvertible


def _needs_scope(request: ChatRequest, chain: FilterChain, model: Model) -> bool:
    """Return True if plugins may take part in a request; others need no plugin context."""
    return bool(request.options or chain.inlets or chain.streams or chain.outlets or PIPE in model.detail)


def _cited(sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the sources without uncited tool results."""
    return [source for source in sources if source.get("source") or not source.get("tool_result")]


def _with_sources(completion: Completion, sources: list[dict[str, Any]]) -> Completion:
    """Return a whole answer with its own sources appended to the given ones."""
    body = completion.body
    merged = {"sources": [*sources, *as_sequence(body.get("sources"))]}
    return Completion(body={**merged, **body, **merged})


async def _answer_with_tools(request: ChatRequest, use: ToolUse, caller: "_SourceCaller") -> ChatAnswer:
    if use.runner is None:
        # Calls that ran before are sources; the model has requested none.
        return await caller.answer()
    loop = ToolLoop(request, use)
    if request.stream:
        return ChatAnswer(chunks=await ToolLoopStream.start(loop, caller), steps=loop.steps)
    return ChatAnswer(completion=await complete_tool_loop(loop, caller), steps=loop.steps)


class _SourceCaller:
    """Sends the current state of a request to the sources of its model; each time is a metered call."""

    __slots__ = ("_actor", "_call", "_candidates", "_failover", "_meter")

    def __init__(self, catalog: Catalog, candidates: Candidates, call: "_Call", actor: Actor) -> None:
        self._failover = catalog.failover
        self._meter = catalog.meter
        self._candidates = candidates
        self._call = call
        self._actor = actor

    def answer(self) -> Awaitable[ChatAnswer]:
        """Return the answer in the form that the caller requested."""
        return self._ask(self._call.answer)

    def complete(self) -> Awaitable[Completion]:
        """Return a whole answer."""
        return self._ask(self._call.complete)

    def stream(self) -> Awaitable[ChunkStream]:
        """Return the chunks of an answer; the first one has arrived."""
        return self._ask(self._call.stream)

    def _ask(self, question: Callable[[Model, ModelSource], Awaitable[Result]]) -> Awaitable[Result]:
        candidates, meter, model = self._candidates, self._meter, self._candidates[0].model
        is_function_model = PIPE in model.detail
        metered = self._call.begin(meter, self._actor, model.id, is_function_model=is_function_model)
        foresee(metered, model, candidates[0].source.name)
        return meter.run(metered, self._failover.ask, candidates, question, metered)


class _Call:
    """One request to one source of its model."""

    __slots__ = (
        *("_chain", "_context", "_is_native", "_meter", "_metered", "_reasoning", "_request", "_watch"),
        "origin",
    )

    _meter: CallMeter
    _metered: MeteredCall

    def __init__(
        self,
        request: ChatRequest,
        context: CallContext,
        chain: FilterChain,
        reasoning: tuple[ReasoningKeeper, AnswerWatcher],
        *,
        is_plain: bool,
    ) -> None:
        self._request = request
        self._context = context
        self._chain = chain
        self._reasoning, self._watch = reasoning
        self._is_native = (
            request.native is not None and is_plain and not (chain.inlets or chain.streams or chain.outlets)
        )
        self.origin = ""
        """Who makes the reasoning of the model that was asked last."""

    def begin(self, meter: CallMeter, actor: Actor, model_id: str, *, is_function_model: bool) -> MeteredCall:
        """Return the metered call of the next question."""
        request = self._request
        self._meter = meter
        self._metered = self._context.call = meter.begin(
            actor,
            model_id,
            request.endpoint,
            request.native or request.body,
            request_id=request.request_id,
            is_stream=request.stream,
        )
        self._metered.chat = request.options or None
        if request.scope is not None:
            request.scope.call = self._metered if is_function_model else None
        return self._metered

    async def answer(self, model: Model, source: ModelSource) -> ChatAnswer:
        """Return the answer; of a streamed one the first chunk has arrived."""
        known = len(self._context.warnings)
        try:
            if self._is_native and isinstance(source, MessagesSource):
                return await self._run_native(model, source)
            if not self._request.stream:
                return ChatAnswer(completion=await self.complete(model, source))
            return ChatAnswer(chunks=await self.stream(model, source))
        except GatewayError:
            # Another source may answer, whose request is another.
            del self._context.warnings[known:]
            raise

    async def stream(self, model: Model, source: ModelSource) -> ChunkStream:
        """Return the chunks of an answer after the stream filters; the first one has arrived."""
        body = await self._body(model, source)
        hides_usage = PIPE not in model.detail and ask_for_usage(body)
        chunks = source.stream(body, model, self._context)
        started = await self._started(chunks, self._chain.streams, hides_usage=hides_usage)
        if hides_usage:
            forget_option(self._context)
        return started

    async def complete(self, model: Model, source: ModelSource) -> Completion:
        """Return a whole answer, even if the caller requested a stream."""
        body = unstreamed(await self._body(model, source))
        return self._whole(await source.complete(body, model, self._context))

    def _whole(self, completion: Completion) -> Completion:
        finish_whole(self._meter, self._metered, completion.decoded)
        return self._watch.whole(completion)

    def _started(
        self, chunks: ChunkStream, filters: Sequence[ChatFilter], *, hides_usage: bool = False
    ) -> Awaitable[StartedStream]:
        metered = MeteredChunks(chunks, self._metered, self._meter, hides_usage=hides_usage)
        return StartedStream.start(metered, filters)

    async def _body(self, model: Model, source: ModelSource) -> Body:
        """Return a copy of the request for a model: its maker's own reasoning, and messages as it takes them.

        Raises invalid_request for a part that only a source of the caller's protocol can take.
        """
        check_convertible(self._request)
        context = self._context
        self.origin = reasoning_origin(model)
        self._watch.begin(self.origin)
        body = self._request.body
        if has_answers(body):
            body = await self._reasoning.restore(
                body, context.user_id, model, is_converted=context.is_converted
            )
        if implements(type(source), PreparingSource):
            preparing = cast(PreparingSource, source)
            if preparing.prepares(model):
                body = await preparing.prepare(body, model, context)
        return {**body, "model": model.upstream_id}

    async def _run_native(self, model: Model, source: MessagesSource) -> ChatAnswer:
        """Answer in the caller's own dialect; used if no step needs the converted request.

        The request is sent in its original form, without thinking that others made.
        """
        user_id = self._context.user_id
        native = await self._reasoning.restore_native(self._request.native or {}, user_id, model)
        if native.warning:
            self._context.warnings.append(native.warning)
        body = {**native.body, "model": model.upstream_id}
        self.origin = reasoning_origin(model)
        self._watch.begin(self.origin, is_native=True)
        if self._request.stream:
            started = await self._started(source.stream_message(body, model, self._context), ())
            return ChatAnswer(chunks=started, is_native=True)
        completion = await source.complete_message(body, model, self._context)
        return ChatAnswer(completion=self._whole(completion), is_native=True)
