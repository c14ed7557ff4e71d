"""Forwarding of answers of runtimes: streams of JSON lines, or one object."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd.catalog.interfaces import ForwardedAnswer
from gatewayd.errors import NO_HEADERS, ErrorKind, GatewayError, shorten
from gatewayd.http.errors import body_of, log_broken
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.routes import RouteDialect

CONTENT_TYPE: Final = "application/x-ndjson"

MAX_HELD_BYTES: Final = 1024 * 1024
"""Buffered bytes of a whole answer, so that an early failure can still be an error reply."""

AtEnd = Callable[[], Awaitable[None]]
"""Function to await between the last byte of an answer and its end."""


@dataclass(frozen=True, slots=True)
class AnswerEnding:
    """End of a runtime's answer: a line in which one of `fields` is true."""

    provider: str
    fields: tuple[str, ...] = ("done", "error")

    def check(self, last: bytes) -> None:
        """Raise upstream_failed unless the last of the lines can end an answer."""
        if self._ends(last.rstrip().rpartition(b"\n")[2]):
            return
        raise GatewayError(
            ErrorKind.UPSTREAM_FAILED,
            f"cannot get an answer from provider {self.provider!r}: it ended before it was complete",
        )

    def note(self, request: web.Request, last: bytes) -> None:
        """Log the error text of the runtime in the last of the lines."""
        error = (_object_in(last.rstrip().rpartition(b"\n")[2]) or {}).get("error")
        if error:
            sentence = f"provider {self.provider!r} reported: {shorten(str(error))}"
            log_broken(request, GatewayError(ErrorKind.UPSTREAM_FAILED, sentence))

    def is_in(self, lines: bytes) -> bool:
        """Return whether one of the lines ends the answer; more lines may follow."""
        return b'"done":true' in lines and any(map(self._ends, lines.splitlines()))

    def _ends(self, line: bytes) -> bool:
        value = _object_in(line) or {}
        return any(value.get(name) for name in self.fields)


def _object_in(line: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


async def open_lines(
    request: web.Request,
    *,
    content_type: str = CONTENT_TYPE,
    status: int = 200,
    headers: Mapping[str, str] = NO_HEADERS,
) -> web.StreamResponse:
    """Begin a stream of lines, which the caller writes as bytes, and return the reply."""
    return await open_stream(request, {"Content-Type": content_type, **headers}, status)


async def send_failure(request: web.Request, reply: web.StreamResponse, error: GatewayError) -> None:
    """Write the error line that ends a broken answer."""
    log_broken(request, error)
    await send_frames(request, reply, failure_line(error))


def failure_line(error: GatewayError) -> bytes:
    """Return the error line that ends a broken answer."""
    return orjson.dumps(body_of(error, RouteDialect.OLLAMA)) + b"\n"


async def pass_lines(
    request: web.Request,
    answer: ForwardedAnswer,
    ending: AnswerEnding,
    at_end: AtEnd | None = None,
    headers: Mapping[str, str] = NO_HEADERS,
) -> web.StreamResponse:
    """Forward lines as they arrive, with further headers; the chunks of a source are whole lines.

    A failure before the first line is an error reply. A later failure, and an end without a final line, adds
    an error line.
    """
    async with aclosing(answer) as reads:
        lines = await anext(reads, b"")
        reply = await open_lines(
            request, content_type=answer.content_type or CONTENT_TYPE, status=answer.status, headers=headers
        )
        try:
            has_ended = ending.is_in(lines)
            await send_lines(request, reply, lines)
            async for lines in reads:
                has_ended = has_ended or ending.is_in(lines)
                await send_frames(request, reply, lines)
            if not has_ended:
                ending.check(lines)
            ending.note(request, lines)
        except GatewayError as error:
            await send_failure(request, reply, error)
    if at_end is not None:
        await at_end()
    await reply.write_eof()
    return reply


async def pass_whole(
    request: web.Request,
    answer: ForwardedAnswer,
    at_end: AtEnd | None = None,
    headers: Mapping[str, str] = NO_HEADERS,
) -> web.StreamResponse:
    """Forward an answer that is no stream, with further headers.

    Up to 1 MiB of it is buffered; a later failure cuts the connection.
    """
    held = bytearray()
    content_type = answer.content_type or "application/json"
    async with aclosing(answer) as reads:
        async for read in reads:
            held += read
            if len(held) > MAX_HELD_BYTES:
                return await _pass_rest(request, bytes(held), answer, content_type, headers)
    if at_end is not None:
        await at_end()
    told = {**headers, "Content-Type": content_type} if held else headers
    return web.Response(body=bytes(held), status=answer.status, headers=told)


async def pass_bytes(request: web.Request, answer: ForwardedAnswer) -> web.StreamResponse:
    """Forward an answer of unknown format as it arrives; a failure cuts the connection."""
    async with aclosing(answer) as reads:
        first = await anext(reads, b"")
        content_type = answer.content_type or "application/octet-stream"
        if not first:
            return web.Response(status=answer.status, headers={"Content-Type": content_type})
        return await _pass_rest(request, first, answer, content_type)


async def send_lines(request: web.Request, reply: web.StreamResponse, lines: bytes) -> None:
    """Write lines unless they are empty: an empty write would end the reply."""
    if lines:
        await send_frames(request, reply, lines)


async def _pass_rest(
    request: web.Request,
    held: bytes,
    answer: ForwardedAnswer,
    content_type: str,
    headers: Mapping[str, str] = NO_HEADERS,
) -> web.StreamResponse:
    reply = await open_lines(request, content_type=content_type, status=answer.status, headers=headers)
    await send_frames(request, reply, held)
    async for read in answer:
        await send_frames(request, reply, read)
    await reply.write_eof()
    return reply
