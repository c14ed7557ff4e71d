"""Server-sent events out: the one place that opens an event stream."""

from collections.abc import Mapping

from aiohttp import web

from gatewayd.http.context import request_id
from gatewayd.http.edge import decorate


async def open_stream(request: web.Request, headers: Mapping[str, str]) -> web.StreamResponse:
    """Send the head of an event stream whose frames the caller writes as bytes, and return the reply.

    The frames come ready from a dialect, so this is a plain chunked reply with the headers that keep
    proxies from holding it back.
    """
    reply = web.StreamResponse(
        headers={
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
            **headers,
        }
    )
    decorate(reply.headers, request_id(request))
    await reply.prepare(request)
    return reply
