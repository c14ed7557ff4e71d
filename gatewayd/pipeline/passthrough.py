"""Forwards requests of unconverted endpoints to the source of the model, if the source has the endpoint."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from gatewayd.catalog.interfaces import (
    CallContext,
    ForwardedAnswer,
    ForwardingSource,
    ModelSource,
    RuntimeSource,
)
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError, not_found
from gatewayd.metering.records import MeteredCall
from gatewayd.pipeline.endpoints import context_of, endpoint_not_found, lacks_endpoint, select_source
from gatewayd.pipeline.filters.conversions import LegacyCompletions, RequestConversion
from gatewayd.pipeline.filters.inputs import InputFilters, RequestCaller
from gatewayd.pipeline.filters.streams import ChangedAnswer
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.records import Endpoint
from gatewayd.pipeline.responses.archive import StoredResponse
from gatewayd.pipeline.responses.ids import RememberedAnswer, ResponseIds, ResponseRecipient
from gatewayd.pipeline.responses.items import ResponseItems
from gatewayd.pipeline.responses.pending_usage import BackgroundUsage, EndedAnswer, pending_of
from gatewayd.pipeline.responses.router import MissingEndpoints

RUNTIME_PREFIX: Final = "/v1"
"""Prefix of a runtime's OpenAI endpoints, beside its native ones."""

CONVERSIONS: Final[tuple[RequestConversion, ...]] = (LegacyCompletions(), ResponseItems())


@dataclass(frozen=True, slots=True)
class ForwardedTo:
    """The id of the model and the name of the source that a request was forwarded to, and its call."""

    model: str
    source: str
    call: MeteredCall | None


NoteResponse = Callable[[ForwardedTo, str, str], Awaitable[None]]
"""Takes where a request was forwarded to, and the id and the last status of the response that it stores."""

REPEATED_FIELD: Final = "instructions"
"""Request field that replies of the Responses protocol echo, including a record's prompt."""


class RequestForwarder:
    """Forwards a request to the source of its model; normally only the model's name is replaced.

    The record of the model and filters may change request and reply. Objects that a provider stores under an
    id are available only to the user who received the id.
    """

    def __init__(
        self,
        catalog: Catalog,
        filters: ChatFilters,
        response_ids: ResponseIds,
        missing: MissingEndpoints | None = None,
    ) -> None:
        self._catalog = catalog
        self._response_ids = response_ids
        self._missing = missing or MissingEndpoints()
        self._inputs = InputFilters(catalog, filters)
        self._conversions = {conversion.path: conversion for conversion in CONVERSIONS}

    async def run(
        self,
        path: str,
        body: Body,
        caller: RequestCaller,
        *,
        below: str = "",
        note: NoteResponse | None = None,
    ) -> ForwardedAnswer:
        """Return the source's reply to `path`, such as `/completions`; the caller must close it.

        `below` is added to the path at the source. `note` is told which source gave a response its id.
        Raises not_found (code endpoint_not_found) if the source lacks the path, the errors of
        `InputFilters.apply` and `ResponseIds.check`, and other errors of the source.
        """
        conversion = self._conversions[path]
        has_ids = conversion.endpoint is Endpoint.RESPONSES
        asked = await self._inputs.apply(conversion, body, caller)
        if has_ids:
            await self._response_ids.check(body, caller.actor.user_id)
        forwarding = _Forwarding(path + below, asked.body, asked.context, self._missing)
        question = asked.question(self._catalog, caller.actor, conversion.endpoint)
        answer = await question.reply(forwarding.ask)
        if has_ids:
            recipient = ResponseRecipient(caller.actor.user_id, caller.request_id)
            place = ForwardedTo(forwarding.model, forwarding.source_name, asked.context.call)
            named = None if note is None else partial(note, place)
            answer = RememberedAnswer(answer, self._response_ids, recipient, named)
        is_repeated = asked.body.get(REPEATED_FIELD) != body.get(REPEATED_FIELD)
        own = {REPEATED_FIELD: body.get(REPEATED_FIELD)} if is_repeated else None
        if own is None and not asked.streams:
            return answer
        is_stream = asked.body.get("stream") is True
        return ChangedAnswer(answer, conversion, asked.streams, own, is_stream_asked=is_stream)


class StoredForwarder:
    """Sends requests about a response that a provider stores to that provider.

    `usage` is told of the end of one that ran in the background.
    """

    def __init__(self, catalog: Catalog, usage: BackgroundUsage) -> None:
        self._catalog = catalog
        self._usage = usage

    async def send(
        self, method: str, path: str, stored: StoredResponse, caller: RequestCaller
    ) -> ForwardedAnswer:
        """Return the reply of the provider; the caller must close it.

        Raises not_found if the caller may no longer use the model, and the errors of the source.
        """
        candidates = await self._catalog.candidates(stored.model, caller.actor)
        candidate = select_source(candidates, stored.source)[0]
        source = candidate.source
        if not isinstance(source, ForwardingSource):
            raise not_found("response", stored.id)
        answer = await source.forward(method, path, None, context_of(caller.actor, caller.request_id))
        if pending_of(stored) is None:
            return answer
        ended = partial(self._usage.settle, stored, candidate.model, caller.actor)
        return EndedAnswer(answer, stored.id, ended)


class _Forwarding:
    """One request to one path; `model` and `source_name` are those of the last attempt."""

    def __init__(self, path: str, body: Body, context: CallContext, missing: MissingEndpoints) -> None:
        self._path = path
        self._body = body
        self._context = context
        self._missing = missing
        self.model = ""
        self.source_name = ""

    async def ask(self, model: Model, source: ModelSource) -> ForwardedAnswer:
        """Return the reply of one source."""
        path, model_id = self._path, model.id
        self.model, self.source_name = model_id, source.name
        if not isinstance(source, ForwardingSource):
            raise endpoint_not_found(path, model_id, f"{source.name!r} has no such endpoint")
        place = RUNTIME_PREFIX + path if isinstance(source, RuntimeSource) else path
        try:
            answer = await source.forward(
                "POST", place, {**self._body, "model": model.upstream_id}, self._context
            )
        except GatewayError as error:
            if lacks_endpoint(error):
                if error.provider_code is None:
                    self._missing.add(source.name, path)
                raise endpoint_not_found(path, model_id, error.message) from error
            raise
        if answer.content_type.partition(";")[0].strip().lower() == "text/html":
            # Some sites answer every path with their own HTML page.
            await answer.aclose()
            self._missing.add(source.name, path)
            raise endpoint_not_found(path, model_id, f"{source.name!r} answers it with an HTML page")
        return answer
