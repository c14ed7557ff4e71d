"""Routes of legacy completions and the Responses protocol, forwarded to sources that support them."""

from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from aiohttp import web

from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.completions.records import Body
from gatewayd.dialects import openai
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import actor, facts_of, request_id
from gatewayd.http.errors import log_broken, type_of
from gatewayd.http.responses.provider_headers import answer_headers
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.responses.streams import AnswerStreams, OpenAiFrames
from gatewayd.http.routes import BASES, Handler, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import EVENT_STREAM, OBJECT, answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.passthrough import RequestForwarder


class ForwardingRoutes:
    """Routes that forward the bytes of a source. A failure after the first byte is in band, or cuts the
    connection."""

    def __init__(
        self, forwarding: RequestForwarder, *, body_limit: int, streams: AnswerStreams | None = None
    ) -> None:
        self._forwarding = forwarding
        self._body_limit = body_limit
        self._streams = streams or AnswerStreams()

    def routes(self) -> Sequence[Route]:
        """Return the rows for each base path."""
        return [
            row
            for base in BASES
            for row in (
                _row(f"{base}/completions", self.complete, "Complete a text"),
                _row(f"{base}/responses", self.respond, "Answer a request of the Responses protocol"),
            )
        ]

    @answers(OBJECT, EVENT_STREAM)
    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "prompt", ...}` with the answer of the model's source."""
        return await self._pass_on(request, "/completions")

    @answers(OBJECT, EVENT_STREAM)
    async def respond(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "input", ...}` with the answer of the model's source."""
        return await self._pass_on(request, "/responses")

    async def _pass_on(self, request: web.Request, path: str) -> web.StreamResponse:
        asked = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        caller = RequestCaller(actor(request), request_id(request), partial(facts_of, request))
        opening = self._open(path, asked, caller)
        if asked.get("stream") is not True:
            return await _send_opened(request, await opening)
        return await self._streams.begin(request, opening, OpenAiFrames(), partial(_send_opened, request))

    async def _open(self, path: str, asked: Body, caller: RequestCaller) -> "_Opened":
        """Return an answer with its first bytes, so that an earlier failure is an error reply."""
        answer = await self._forwarding.run(path, asked, caller)
        first: bytes | None = None
        try:
            first = await anext(answer, b"")
        finally:
            if first is None:
                await answer.aclose()
        headers = body.warning_headers(caller.warnings)
        headers |= answer_headers(caller.reply_headers, RouteDialect.OPENAI)
        return _Opened(answer, first, headers)


class _Opened(NamedTuple):
    """An answer, its first bytes, and headers: what was left out of the request, limits of the provider."""

    answer: ForwardedAnswer
    first: bytes
    headers: dict[str, str]


async def _send_opened(
    request: web.Request, opened: _Opened, begun: web.StreamResponse | None = None
) -> web.StreamResponse:
    answer = opened.answer
    async with aclosing(answer):
        content_type = answer.content_type or "application/octet-stream"
        is_stream = content_type.lower().startswith("text/event-stream")
        if begun is not None and not is_stream:
            raise GatewayError(
                ErrorKind.UPSTREAM_FAILED,
                "cannot forward the answer: the request asked for a stream, and the provider sent none",
            )
        headers = {**opened.headers, "Content-Type": content_type}
        reply = begun or await open_stream(request, headers, answer.status)
        if is_stream:
            await _send_events(request, reply, opened.first, answer)
        else:
            await _send_bytes(request, reply, opened.first, answer)
        await reply.write_eof()
    return reply


def _row(path: str, handler: Handler, summary: str) -> Route:
    return Route(
        "POST",
        path,
        handler,
        RouteAccess.VERIFIED,
        summary,
        dialect=RouteDialect.OPENAI,
        tag="forwarding",
        interruptible=True,
        use=RequestUse.ANSWER,
    )


async def _send_bytes(
    request: web.Request, reply: web.StreamResponse, read: bytes, answer: ForwardedAnswer
) -> None:
    while read:
        await send_frames(request, reply, read)
        read = await anext(answer, b"")


async def _send_events(
    request: web.Request, reply: web.StreamResponse, read: bytes, answer: ForwardedAnswer
) -> None:
    try:
        await _send_bytes(request, reply, read, answer)
    except GatewayError as error:
        log_broken(request, error)
        await send_frames(request, reply, openai.render_error(error, type_of(error, RouteDialect.OPENAI)))
