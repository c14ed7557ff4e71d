"""Server-sent events out: the one place that opens an event stream, and writes to it."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from aiohttp import HttpVersion11, web

from gatewayd.http.context import REPLY_HEADERS, STARTED, request_id
from gatewayd.http.errors import cut

log = logging.getLogger(__name__)

WRITE_SECONDS: Final = 30.0


class StreamReply(web.StreamResponse):
    """A reply whose head goes out together with the first bytes, which is one write less for each stream."""

    _send_headers_immediately = False


async def open_stream(
    request: web.Request, headers: Mapping[str, str], status: int = 200
) -> web.StreamResponse:
    """Begin an event stream whose frames the caller writes as bytes, and return the reply.

    The frames come ready from a dialect, so this is a plain chunked reply with the headers that keep
    proxies from holding it back. Its head is sent with the first frames.
    """
    common: dict[str, str] = request[REPLY_HEADERS]
    reply = StreamReply(
        status=status,
        headers={
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
            **common,
            **headers,
        },
    )
    if request.version >= HttpVersion11:
        reply.enable_chunked_encoding()
    request[STARTED] = reply
    await reply.prepare(request)
    return reply


async def send(request: web.Request, reply: web.StreamResponse, frames: bytes) -> None:
    """Write to the stream; the connection of a client that takes nothing for 30 s is cut.

    Raises ConnectionResetError then, and when the client has gone.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client has gone")
    if not transport.get_write_buffer_size():
        # All that came before is with the kernel: this write waits for nothing.
        if reply.chunked and request.writer.output_size and frames:
            transport.write(b"%x\r\n%b\r\n" % (len(frames), frames))
        else:
            await reply.write(frames)
        return
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await reply.write(frames)
    except TimeoutError:
        log.info(
            "stream cut: the client took nothing for %g s",
            WRITE_SECONDS,
            extra={"request_id": request_id(request)},
        )
        cut(request)
        raise ConnectionResetError("the client takes nothing") from None
