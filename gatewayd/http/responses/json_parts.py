"""JSON replies that are written in parts: encoded values, and lists of records."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final

from aiohttp import web

from gatewayd import json_encoder
from gatewayd.http.responses.sse import open_stream, send_frames

WRITTEN_BYTES: Final = 128 * 1024
"""Least size of a write; smaller parts are joined."""


class PartsReply(web.StreamResponse):
    """A JSON reply of known length that is never joined into one buffer."""

    def __init__(
        self, parts: Sequence[bytes], status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status=status, headers=headers)
        self.content_type = "application/json"
        self.content_length = sum(map(len, parts))
        self._parts: Sequence[bytes] = parts

    async def write_eof(self, data: bytes = b"") -> None:
        """Write the parts, each after the client has read those before it."""
        request = self._req
        parts, self._parts = self._parts, ()
        if isinstance(request, web.Request) and request.method != "HEAD":
            for written in _joined(parts):
                await send_frames(request, self, written)
        await super().write_eof(data)


async def send_records(request: web.Request, records: AsyncIterator[Any]) -> web.StreamResponse:
    """Write a JSON list record by record, as all chats of a user may not fit into memory."""
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


def _joined(parts: Sequence[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= WRITTEN_BYTES:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)
