"""Lines of JSON out, and whole answers of a runtime: passed on as they come."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd.catalog.interfaces import Forwarded
from gatewayd.errors import GatewayError, Kind
from gatewayd.http.context import request_id
from gatewayd.http.errors import body_of
from gatewayd.http.routes import Dialect
from gatewayd.http.sse import open_stream, send

log = logging.getLogger(__name__)

CONTENT_TYPE: Final = "application/x-ndjson"

HELD_LINE: Final = 1024 * 1024
"""Bytes of a line without its end that are held back."""

HELD_ANSWER: Final = 1024 * 1024
"""Bytes of a whole answer that are held back, so that one which breaks off is still a status."""

AtEnd = Callable[[], Awaitable[None]]
"""What is to be done between the last byte of an answer and its end."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a runtime's answer ends: with a line in which one of `fields` is true."""

    provider: str
    fields: tuple[str, ...] = ("done", "error")

    def check(self, last: bytes | None) -> None:
        """Raise upstream_failed unless the last of these lines may be the end (None: not known)."""
        if last is None or self._ends(last.rstrip().rpartition(b"\n")[2]):
            return
        raise GatewayError(
            Kind.UPSTREAM_FAILED,
            f"cannot get an answer from provider {self.provider!r}: it ended before it was complete",
        )

    def is_in(self, lines: bytes) -> bool:
        """Tell whether one of these lines ends the answer, as runtimes write it; more may follow."""
        return b'"done":true' in lines and any(map(self._ends, lines.splitlines()))

    def _ends(self, line: bytes) -> bool:
        value = _object_in(line) or {}
        return any(value.get(name) for name in self.fields)


class WholeLines:
    """Takes reads, gives whole lines: what is cut off in the middle of a line is never passed on.

    `last` is the end of what was given, from the start of a line on; None after a line that was too long.
    """

    def __init__(self) -> None:
        self._rest = b""
        self.last: bytes | None = b""

    def feed(self, read: bytes) -> bytes:
        """Return the lines that are whole now, and everything of a line over 1 MiB."""
        lines, end, self._rest = (self._rest + read).rpartition(b"\n")
        if len(self._rest) > HELD_LINE:
            lines, end, self._rest, self.last = lines + end + self._rest, b"", b"", None
        lines += end
        self._note(lines)
        return lines

    def finish(self) -> bytes:
        """Return a last line that has no end, with one; b"" for the start of a line."""
        rest, self._rest = self._rest, b""
        if _object_in(rest) is None:
            self.last = self.last or b""
            return b""
        self._note(rest)
        return rest + b"\n"

    def _note(self, lines: bytes) -> None:
        if lines and self.last is not None:
            self.last = lines


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
    headers: dict[str, str] | None = None,
) -> web.StreamResponse:
    """Begin a stream of lines that the caller writes as bytes, and return the reply."""
    return await open_stream(request, {"Content-Type": content_type, **(headers or {})}, status)


async def send_failure(request: web.Request, reply: web.StreamResponse, error: GatewayError) -> None:
    """Write the last line of an answer that broke off."""
    log.warning(
        "stream broke: %s",
        error.message,
        extra={"request_id": request_id(request), "kind": error.kind.value},
    )
    await send(request, reply, orjson.dumps(body_of(error, Dialect.OLLAMA)) + b"\n")


async def pass_lines(
    request: web.Request, answer: Forwarded, ending: Ending, at_end: AtEnd | None = None
) -> web.StreamResponse:
    """Pass lines on as they come.

    A failure before the first read is a status, one after it is a line of its own, and so is an end without
    a line that may be the last one.
    """
    lines = WholeLines()
    async with aclosing(answer) as reads:
        first = await anext(reads, b"")
        reply = await open_lines(
            request, content_type=answer.content_type or CONTENT_TYPE, status=answer.status
        )
        try:
            whole = lines.feed(first)
            has_ended = ending.is_in(whole)
            await send_some(request, reply, whole)
            async for read in reads:
                whole = lines.feed(read)
                has_ended = has_ended or ending.is_in(whole)
                await send_some(request, reply, whole)
            await send_some(request, reply, lines.finish())
            if not has_ended:
                ending.check(lines.last)
        except GatewayError as error:
            await send_failure(request, reply, error)
    if at_end is not None:
        await at_end()
    await reply.write_eof()
    return reply


async def pass_whole(
    request: web.Request, answer: Forwarded, at_end: AtEnd | None = None
) -> web.StreamResponse:
    """Pass on an answer that is no stream.

    It is held back up to 1 MiB; one that breaks off later cuts the connection.
    """
    held = b""
    content_type = answer.content_type or "application/json"
    async with aclosing(answer) as reads:
        async for read in reads:
            held += read
            if len(held) > HELD_ANSWER:
                return await _pass_rest(request, held, answer, content_type)
    if at_end is not None:
        await at_end()
    headers = {"Content-Type": content_type} if held else None
    return web.Response(body=held, status=answer.status, headers=headers)


async def send_some(request: web.Request, reply: web.StreamResponse, lines: bytes) -> None:
    """Write lines, if there are any: an empty write would end the reply."""
    if lines:
        await send(request, reply, lines)


async def _pass_rest(
    request: web.Request, held: bytes, answer: Forwarded, content_type: str
) -> web.StreamResponse:
    reply = await open_lines(request, content_type=content_type, status=answer.status)
    await send(request, reply, held)
    async for read in answer:
        await send(request, reply, read)
    await reply.write_eof()
    return reply
