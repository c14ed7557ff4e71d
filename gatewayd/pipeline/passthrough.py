"""Forwards requests of unconverted endpoints to the source of the model, if the source has the endpoint."""

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
from gatewayd.errors import GatewayError
from gatewayd.pipeline.endpoints import endpoint_not_found, lacks_endpoint
from gatewayd.pipeline.filters.conversions import LegacyCompletions, RequestConversion
from gatewayd.pipeline.filters.inputs import InputFilters, RequestCaller
from gatewayd.pipeline.filters.streams import ChangedAnswer
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.records import Endpoint
from gatewayd.pipeline.responses.ids import RememberedAnswer, ResponseIds, ResponseRecipient
from gatewayd.pipeline.responses.items import ResponseItems

RUNTIME_PREFIX: Final = "/v1"
"""Prefix of a runtime's OpenAI endpoints, beside its native ones."""

CONVERSIONS: Final[tuple[RequestConversion, ...]] = (LegacyCompletions(), ResponseItems())

REPEATED_FIELD: Final = "instructions"
"""Request field that replies of the Responses protocol echo, including a record's prompt."""


class RequestForwarder:
    """Forwards a request to the source of its model; normally only the model's name is replaced.

    The record of the model and filters may change request and reply. Objects that a provider stores under an
    id are available only to the user who received the id.
    """

    def __init__(self, catalog: Catalog, filters: ChatFilters, response_ids: ResponseIds) -> None:
        self._catalog = catalog
        self._response_ids = response_ids
        self._inputs = InputFilters(catalog, filters)
        self._conversions = {conversion.path: conversion for conversion in CONVERSIONS}

    async def run(self, path: str, body: Body, caller: RequestCaller) -> ForwardedAnswer:
        """Return the source's reply to `path`, such as `/completions`; the caller must close it.

        Raises not_found (code endpoint_not_found) if the source lacks the path, the errors of
        `InputFilters.apply` and `ResponseIds.check`, and other errors of the source.
        """
        conversion = self._conversions[path]
        has_ids = conversion.endpoint is Endpoint.RESPONSES
        asked = await self._inputs.apply(conversion, body, caller)
        if has_ids:
            await self._response_ids.check(body, caller.actor.user_id)
        answer = await self._catalog.failover.ask(
            asked.candidates, lambda model, source: _forward(path, asked.body, model, source, asked.context)
        )
        if has_ids:
            recipient = ResponseRecipient(caller.actor.user_id, caller.request_id)
            answer = RememberedAnswer(answer, self._response_ids, recipient)
        is_repeated = asked.body.get(REPEATED_FIELD) != body.get(REPEATED_FIELD)
        own = {REPEATED_FIELD: body.get(REPEATED_FIELD)} if is_repeated else None
        if own is None and not asked.streams:
            return answer
        is_stream = asked.body.get("stream") is True
        return ChangedAnswer(answer, conversion, asked.streams, own, is_stream_asked=is_stream)


async def _forward(
    path: str, body: Body, model: Model, source: ModelSource, context: CallContext
) -> ForwardedAnswer:
    model_id = model.id
    if not isinstance(source, ForwardingSource):
        raise endpoint_not_found(path, model_id, f"{source.name!r} has no such endpoint")
    place = RUNTIME_PREFIX + path if isinstance(source, RuntimeSource) else path
    try:
        answer = await source.forward("POST", place, {**body, "model": model.upstream_id}, context)
    except GatewayError as error:
        if lacks_endpoint(error):
            raise endpoint_not_found(path, model_id, error.message) from error
        raise
    if answer.content_type.partition(";")[0].strip().lower() == "text/html":
        # Some sites answer every path with their own HTML page.
        await answer.aclose()
        raise endpoint_not_found(path, model_id, f"{source.name!r} answers it with an HTML page")
    return answer
