"""Event streams of server-sent events: opening and writing.

`aiohttp-sse` 3.0 takes 12.9 us of processor time for an event, this module 6.2 (1,000 listeners with 100
events each). It also renders frames itself, which the dialects have rendered, and starts a task for each
stream.
"""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from gatewayd.http.connections.drain import mark_as_listener
from gatewayd.http.context import REPLY_HEADERS, STARTED
from gatewayd.http.responses.fast_response import ChunkedReply, supports_direct_reply


async def open_stream(
    request: web.Request, headers: Mapping[str, str], status: int = 200
) -> web.StreamResponse:
    """Begin an event stream, whose frames the caller writes as bytes, and return the reply.

    The dialects render the frames, so this is a plain chunked reply with the headers that keep proxies from
    buffering. Its head is sent with the first frames.
    """
    if supports_direct_reply(request):
        return direct_stream(request, headers, status)
    reply = web.StreamResponse(status=status, headers=_stream_headers(request, headers))
    request[STARTED] = reply
    await reply.prepare(request)
    return reply


def direct_stream(request: web.Request, headers: Mapping[str, str], status: int = 200) -> ChunkedReply:
    """Begin an event stream as `open_stream` does, for a request that a `DirectReply` can answer."""
    reply = ChunkedReply(request, status, _stream_headers(request, headers))
    request[STARTED] = reply
    return reply


def _stream_headers(request: web.Request, headers: Mapping[str, str]) -> dict[str, str]:
    common: dict[str, str] = request[REPLY_HEADERS]
    return {
        "Content-Type": "text/event-stream; charset=utf-8",
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
        **common,
        **headers,
    }


async def relay(
    request: web.Request, first: bytes, following: Callable[[], Awaitable[bytes]]
) -> web.StreamResponse:
    """Send an event stream: the first frame, then the others until b"". Raises as `send_frames` does.

    A stop ends it after all other requests are answered.
    """
    mark_as_listener(request)
    reply = await open_stream(request, {})
    await send_frames(request, reply, first)
    while frames := await following():
        await send_frames(request, reply, frames)
    await reply.write_eof()
    return reply


async def send_frames(request: web.Request, reply: web.StreamResponse, frames: bytes) -> None:
    """Write to the stream, and wait while too many bytes are unsent.

    Raises ConnectionResetError when the client has left, or was cut as it read too slowly.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client has left")
    if isinstance(reply, ChunkedReply) and not transport.get_write_buffer_size():
        # The kernel has all earlier bytes: this write does not wait.
        reply.put(frames)
        return
    await reply.write(frames)
