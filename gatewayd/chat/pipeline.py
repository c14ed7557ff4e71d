"""The one pipeline: every chat request, in every dialect, goes through `Pipeline.run`."""

from dataclasses import dataclass
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import CallContext, MessagesSource
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
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


class NoAttachments:
    """Has no documents: says so for each reference."""

    async def attach(self, request: ChatRequest, actor: Actor) -> list[dict[str, Any]]:
        """Warn about every reference, as none can be used."""
        for file in request.files:
            request.warnings.append(
                f"cannot use {file['type']} {file['id']!r}: this gateway keeps no documents"
            )
        return []


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
        model, source = await self._catalog.get(request.model, actor)
        chain = await self._filters.choose(request, model, actor)
        for item in chain.inlets:
            await item.inlet(request, model, actor)
        if chain.inlets:
            # An inlet may route to another model: the right to use it is decided again.
            model, source = await self._catalog.get(request.model, actor)
        sources = await self._attachments.attach(request, actor) if request.files else []
        loop = await self._tools.offer(request, model, actor)
        context = _context(request, actor)
        if (
            request.native is not None
            and isinstance(source, MessagesSource)
            and not (chain.inlets or chain.streams or chain.outlets or sources or loop)
        ):
            return await _run_native(request, source, model, context)
        body = {**request.body, "model": model.upstream_id}
        if request.stream and loop is None:
            started = await StartedStream.start(source.stream(body, model, context), chain.streams)
            return Answer(chunks=started, sources=sources, warnings=request.warnings)
        completion = await source.complete(_unstreamed(body), model, context)
        while loop is not None and await loop.follow_up(completion, request):
            again = {**request.body, "model": model.upstream_id}
            completion = await source.complete(_unstreamed(again), model, context)
        for item in chain.outlets:
            await item.outlet(completion, actor)
        if sources:
            completion.body["sources"] = sources
        return Answer(completion=completion, sources=sources, warnings=request.warnings)


async def _run_native(
    request: ChatRequest, source: MessagesSource, model: Model, context: CallContext
) -> Answer:
    """Answer in the caller's own dialect, as nothing needs the request in ours."""
    body = {**(request.native or {}), "model": model.upstream_id}
    if request.stream:
        started = await StartedStream.start(source.stream_message(body, model, context), ())
        return Answer(chunks=started, warnings=request.warnings, is_native=True)
    completion = await source.complete_message(body, model, context)
    return Answer(completion=completion, warnings=request.warnings, is_native=True)


def _unstreamed(body: dict[str, Any]) -> dict[str, Any]:
    body.pop("stream_options", None)
    if body.get("stream"):
        body["stream"] = False
    return body


def _context(request: ChatRequest, actor: Actor) -> CallContext:
    user = actor.user
    return CallContext(
        request_id=request.request_id,
        user_id=user.id,
        user_name=user.name,
        user_email=user.email,
        user_role=user.role.value,
        is_converted=request.native is not None,
    )
