"""Applies records and filters to requests outside of the chat pipeline, such as embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gatewayd.accounts.records import Actor
from gatewayd.catalog.failover import Candidate
from gatewayd.catalog.interfaces import CallContext, ModelSource
from gatewayd.catalog.records import Model, ModelRecord
from gatewayd.catalog.service import Catalog
from gatewayd.completions.json_access import as_sequence
from gatewayd.completions.records import Body
from gatewayd.pipeline.documents.presets import documents_of, is_altering, merge_params, render_system_prompt
from gatewayd.pipeline.endpoints import check_names, context_of, model_of, select_source
from gatewayd.pipeline.filters.conversions import RequestConversion, unsupported_parameter
from gatewayd.pipeline.interfaces import ChatFilter, ChatFilters, FilterChain
from gatewayd.pipeline.metered import MeteredQuestion
from gatewayd.pipeline.records import ChatRequest, Endpoint
from gatewayd.plugins.runtime.context import FactsReader


@dataclass(frozen=True, slots=True)
class FilteredRequest:
    """A request after its model record and inlets, with its candidate sources.

    `streams` are the filters of a streamed answer.
    """

    body: Body
    candidates: Sequence[Candidate[ModelSource]]
    context: CallContext
    streams: tuple[ChatFilter, ...] = ()

    def question(self, catalog: Catalog, caller: Actor, endpoint: Endpoint) -> MeteredQuestion:
        """Return the metered question to the sources; its call has begun."""
        return MeteredQuestion(catalog, self.candidates, caller, self.context, endpoint, self.body)


@dataclass(frozen=True, slots=True)
class RequestCaller:
    """The caller, with the HTTP facts for plugins; `source` restricts the request to one provider.

    Sentences of the source about parts of the request that it leaves out or changes are added to `warnings`.
    `reply_headers` are filled with the headers of the provider that the caller gets
    (`completions.rate_limits`).
    """

    actor: Actor
    request_id: str = ""
    facts: FactsReader | None = field(default=None, compare=False)
    source: str = ""
    warnings: list[str] = field(default_factory=list, compare=False)
    reply_headers: dict[str, str] = field(default_factory=dict, compare=False)


class InputFilters:
    """Finds the model of a request, and applies its record and its filters."""

    def __init__(self, catalog: Catalog, filters: ChatFilters) -> None:
        self._catalog = catalog
        self._filters = filters

    async def apply(
        self, conversion: RequestConversion, body: Body, caller: RequestCaller
    ) -> FilteredRequest:
        """Return the request for the sources; the same body if neither record nor filters apply.

        Raises not_found for a model that the actor may not use, invalid_request if the request cannot hold a
        change by a record or a filter, and the errors of filters.
        """
        check_names(body)
        candidates = await self._candidates(model_of(body), caller)
        model = candidates[0].model
        asked = self._apply_record(conversion, body, model, caller.actor)
        request = ChatRequest(
            model_of(body),
            asked,
            stream=body.get("stream") is True,
            request_id=caller.request_id,
            facts=caller.facts,
            endpoint=conversion.endpoint,
        )
        chain = await self._filters.choose(request, model, caller.actor)
        if chain.inlets:
            asked = await self._run_inlets(conversion, request, chain, model, caller.actor)
            candidates = await self._candidates(request.model, caller)
            routed = candidates[0].model
            if routed.id != model.id:
                asked = self._apply_record(conversion, asked, routed, caller.actor)
        context = replace(
            context_of(caller.actor, caller.request_id, scope=request.scope),
            warnings=caller.warnings,
            reply_headers=caller.reply_headers,
        )
        return FilteredRequest(asked, candidates, context, tuple(chain.streams))

    async def alters_requests(self, model_id: str) -> bool:
        """Return True if a record or filters change requests to a model.

        Raises plugin_failed for a filter that cannot be loaded.
        """
        return is_altering(self._catalog.find_record(model_id)) or await self._filters.are_on(model_id)

    async def _candidates(self, model_id: str, caller: RequestCaller) -> Sequence[Candidate[ModelSource]]:
        candidates = await self._catalog.candidates(model_id, caller.actor)
        return select_source(candidates, caller.source) if caller.source else candidates

    def _apply_record(self, conversion: RequestConversion, body: Body, model: Model, actor: Actor) -> Body:
        record = self._catalog.find_record(model.id)
        return body if record is None else with_record(conversion, body, record, actor)

    async def _run_inlets(
        self,
        conversion: RequestConversion,
        request: ChatRequest,
        chain: FilterChain,
        model: Model,
        actor: Actor,
    ) -> Body:
        """Return the request after all inlets."""
        before = request.body
        fields = {name: value for name, value in before.items() if name not in conversion.texts}
        request.body = {**fields, "messages": conversion.to_messages(before)}
        for item in chain.inlets:
            await item.inlet(request, model, actor)
        if request.files or request.options.get("tool_ids"):
            raise unsupported_parameter(conversion.path, "model", "a filter adds documents or tools to it")
        after = {name: value for name, value in request.body.items() if name not in ("messages", "stream")}
        kept = {name: value for name, value in before.items() if name in conversion.texts | {"stream"}}
        return conversion.from_messages({**after, **kept}, as_sequence(request.body.get("messages")))


def with_record(conversion: RequestConversion, body: Body, record: ModelRecord, actor: Actor) -> Body:
    """Return a request with a record's system prompt and parameters.

    Raises invalid_request if the request cannot hold the prompt or the documents of the record.
    """
    if documents_of(record):
        raise unsupported_parameter(conversion.path, "model", "its documents apply to chats only")
    params = merge_params(record.params) if record.params else {}
    if params:
        body = conversion.with_params(body, params)
    system = render_system_prompt(record, actor)
    return conversion.with_system(body, system) if system else body
