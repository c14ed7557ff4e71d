"""Answers of many records: a JSON list that is written as its members are read."""

from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from gatewayd import json_encoder
from gatewayd.http.responses.sse import open_stream, send_frames


async def send_records(request: web.Request, records: AsyncIterator[Any]) -> web.StreamResponse:
    """Write a JSON list member by member: all chats of a user may be more than fits into memory."""
    reply = await open_stream(request, {"Content-Type": "application/json"})
    head = b"["
    async for record in records:
        await send_frames(request, reply, head)
        for part in await json_encoder.encode(record):
            await send_frames(request, reply, part)
        head = b","
    await send_frames(request, reply, b"[]" if head == b"[" else b"]")
    await reply.write_eof()
    return reply
