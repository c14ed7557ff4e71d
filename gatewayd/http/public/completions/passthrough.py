"""Routes of legacy completions, forwarded to sources that support them; sends forwarded answers."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from aiohttp import web

from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.dialects import openai
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http import body
from gatewayd.http.connections.request_uses import RequestUse
from gatewayd.http.context import caller_of
from gatewayd.http.errors import log_broken, type_of
from gatewayd.http.responses.provider_headers import answer_headers
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.responses.streams import AnswerStreams, OpenAiFrames
from gatewayd.http.routes import BASES, Route, RouteAccess, RouteDialect
from gatewayd.http.schemas import EVENT_STREAM, OBJECT, answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.pipeline.filters.inputs import RequestCaller
from gatewayd.pipeline.passthrough import RequestForwarder

FailureRenderer = Callable[[GatewayError, bytes], bytes]
"""Renders the failure of a forwarded stream, after the bytes that were sent last."""


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
            Route(
                "POST",
                f"{base}/completions",
                self.complete,
                RouteAccess.VERIFIED,
                "Complete a text",
                dialect=RouteDialect.OPENAI,
                tag="forwarding",
                interruptible=True,
                use=RequestUse.ANSWER,
            )
            for base in BASES
        ]

    @answers(OBJECT, EVENT_STREAM)
    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer `{"model", "prompt", ...}` with the answer of the model's source."""
        asked = await body.read_object(request, self._body_limit, LARGE_LIMITS)
        caller = caller_of(request)
        opening = open_forwarded(self._forwarding.run("/completions", asked, caller), caller)
        if asked.get("stream") is not True:
            return await send_opened(request, await opening)
        return await self._streams.begin(request, opening, OpenAiFrames(), partial(send_opened, request))


class ForwardedOpening(NamedTuple):
    """A forwarded answer, its first bytes, and headers: what its request lost, limits of the provider."""

    answer: ForwardedAnswer
    first: bytes
    headers: dict[str, str]


async def open_forwarded(asking: Awaitable[ForwardedAnswer], caller: RequestCaller) -> ForwardedOpening:
    """Return an answer with its first bytes, so that an earlier failure is an error reply.

    `caller` has the warnings about the request, and the headers of the provider.
    """
    answer = await asking
    first: bytes | None = None
    try:
        first = await anext(answer, b"")
    finally:
        if first is None:
            await answer.aclose()
    headers = body.warning_headers(caller.warnings)
    return ForwardedOpening(
        answer, first, headers | answer_headers(caller.reply_headers, RouteDialect.OPENAI)
    )


async def send_opened(
    request: web.Request,
    opened: ForwardedOpening,
    begun: web.StreamResponse | None = None,
    *,
    render_failure: FailureRenderer | None = None,
) -> web.StreamResponse:
    """Send an opened answer, on the stream that a long wait may have begun.

    `render_failure` renders the last frame of a broken stream, by default that of the OpenAI dialect.
    """
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
            await _send_events(request, reply, opened.first, answer, render_failure or _render_failure)
        else:
            await _send_bytes(request, reply, opened.first, answer)
        await reply.write_eof()
    return reply


async def _send_bytes(
    request: web.Request, reply: web.StreamResponse, read: bytes, answer: ForwardedAnswer
) -> None:
    while read:
        await send_frames(request, reply, read)
        read = await anext(answer, b"")


async def _send_events(
    request: web.Request,
    reply: web.StreamResponse,
    read: bytes,
    answer: ForwardedAnswer,
    render_failure: FailureRenderer,
) -> None:
    last = read
    try:
        while read:
            await send_frames(request, reply, read)
            last, read = read, await anext(answer, b"")
    except GatewayError as error:
        log_broken(request, error)
        await send_frames(request, reply, render_failure(error, last))


def _render_failure(error: GatewayError, last_read: bytes) -> bytes:
    return openai.render_error(error, type_of(error, RouteDialect.OPENAI))
