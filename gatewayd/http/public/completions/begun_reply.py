"""Replies to requests on the fast path, whose answer is on its way."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from aiohttp import web

from gatewayd.errors import NO_HEADERS
from gatewayd.http.body import warning_headers
from gatewayd.http.context import REQUEST_ID, facts_of
from gatewayd.http.responses.fast_response import FastReply
from gatewayd.http.responses.provider_headers import answer_headers
from gatewayd.http.routes import RouteDialect
from gatewayd.metering.begun_call import BegunCall
from gatewayd.pipeline.fast_path import BegunWhole
from gatewayd.pipeline.records import ChatRequest


@dataclass(slots=True, eq=False, repr=False)
class BegunReply:
    """The `routes.BegunAnswer` of a request for a whole answer."""

    is_stream: ClassVar = False

    _begun: BegunWhole[Any]
    _dialect: RouteDialect

    def take(self) -> FastReply | None:
        """Return the reply once the answer has arrived; None if the handler of the row has to give it."""
        answer = self._begun.take()
        if answer is None:
            return None
        content, warnings, headers = answer
        if not warnings and not headers:
            return FastReply(content, NO_HEADERS)
        return FastReply(content, {**warning_headers(warnings), **answer_headers(headers, self._dialect)})

    def hand_over(self) -> BegunCall:
        """Return what the handler of the row needs to go on with the request."""
        return self._begun.hand_over()

    def cancel(self) -> None:
        """End the request, whose client does not wait for the answer."""
        self._begun.cancel()


def with_request(chat: ChatRequest, request: web.Request) -> ChatRequest:
    """Return a chat request with the id and the facts of its HTTP request."""
    chat.request_id = request[REQUEST_ID]
    chat.facts = partial(facts_of, request)
    return chat
