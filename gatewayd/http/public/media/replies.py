"""Replies with the answer of a source, streamed as it arrives."""

from collections.abc import Awaitable
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from aiohttp import web

from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.dialects import openai
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.errors import STATUSES, log_broken
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.responses.streams import AnswerStreams, OpenAiFrames


class OpenedAnswer(NamedTuple):
    """An answer, and its first bytes."""

    answer: ForwardedAnswer
    first: bytes


async def send_answer(request: web.Request, asked: Awaitable[ForwardedAnswer]) -> web.StreamResponse:
    """Send the answer of a source; an error before its first byte is an error reply."""
    return await _send(request, await _open(asked))


async def send_stream(
    request: web.Request, asked: Awaitable[ForwardedAnswer], streams: AnswerStreams
) -> web.StreamResponse:
    """Send an answer that the request wants as events; keep-alives bridge the wait for the first one."""
    return await streams.begin(request, _open(asked), OpenAiFrames(), partial(_send, request))


async def _open(asked: Awaitable[ForwardedAnswer]) -> OpenedAnswer:
    answer = await asked
    first: bytes | None = None
    try:
        first = await anext(answer, b"")
    finally:
        if first is None:
            await answer.aclose()
    return OpenedAnswer(answer, first)


async def _send(
    request: web.Request, opened: OpenedAnswer, begun: web.StreamResponse | None = None
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
        reply = begun or await open_stream(request, {"Content-Type": content_type}, answer.status)
        try:
            await _send_bytes(request, reply, opened)
        except GatewayError as error:
            if not is_stream:
                raise
            log_broken(request, error)
            await send_frames(request, reply, openai.render_error(error, STATUSES[error.kind][1]))
        await reply.write_eof()
    return reply


async def _send_bytes(request: web.Request, reply: web.StreamResponse, opened: OpenedAnswer) -> None:
    read = opened.first
    while read:
        await send_frames(request, reply, read)
        read = await anext(opened.answer, b"")
