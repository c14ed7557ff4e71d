"""Endpoints that the gateway does not convert: passed on to the model's source, when that has them."""

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
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.endpoints import endpoint_not_found
from gatewayd.pipeline.filters.conversions import LegacyCompletions, RequestConversion
from gatewayd.pipeline.filters.inputs import InputFilters, RequestCaller
from gatewayd.pipeline.filters.streams import ChangedAnswer
from gatewayd.pipeline.interfaces import ChatFilters
from gatewayd.pipeline.records import Endpoint
from gatewayd.pipeline.responses.ids import RememberedAnswer, ResponseIds, ResponseRecipient
from gatewayd.pipeline.responses.items import ResponseItems

RUNTIME_PREFIX: Final = "/v1"
"""Where a local runtime has its OpenAI-style endpoints, beside its native ones."""

CONVERSIONS: Final[tuple[RequestConversion, ...]] = (LegacyCompletions(), ResponseItems())

REPEATED_FIELD: Final = "instructions"
"""The field of a request that an answer of the Responses protocol repeats, a record's prompt with it."""


class RequestForwarder:
    """Sends a request to the source of its model; only the model's name is replaced.

    The record of the model and filters change it, and the answer, where there are any. What a provider keeps
    under an id goes to the user alone who received the id.
    """

    def __init__(self, catalog: Catalog, filters: ChatFilters, response_ids: ResponseIds) -> None:
        self._catalog = catalog
        self._response_ids = response_ids
        self._inputs = InputFilters(catalog, filters)
        self._conversions = {conversion.path: conversion for conversion in CONVERSIONS}

    async def run(self, path: str, body: Body, caller: RequestCaller) -> ForwardedAnswer:
        """Return the source's answer to `path`, for example `/completions`; the caller closes it.

        Raises not_found (code endpoint_not_found) when the source has no such path, what
        `InputFilters.apply` and `ResponseIds.check` raise, and what the source raises else.
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
        if error.kind is ErrorKind.NOT_FOUND:
            raise endpoint_not_found(path, model_id, error.message) from error
        raise
    if answer.content_type.partition(";")[0].strip().lower() == "text/html":
        # A site that answers every path with its own page.
        await answer.aclose()
        raise endpoint_not_found(path, model_id, f"{source.name!r} answers it with an HTML page")
    return answer
