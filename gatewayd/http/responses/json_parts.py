"""A whole JSON answer in parts, each written when the client took those before it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from aiohttp import web

from gatewayd.http.responses.sse import send_frames

WRITTEN_BYTES: Final = 128 * 1024
"""Bytes of a write; small parts are joined."""


class PartsReply(web.StreamResponse):
    """A JSON answer of known length whose parts are never joined to one."""

    def __init__(
        self, parts: Sequence[bytes], status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status=status, headers=headers)
        self.content_type = "application/json"
        self.content_length = sum(map(len, parts))
        self._parts: Sequence[bytes] = parts

    async def write_eof(self, data: bytes = b"") -> None:
        """Write the parts, each when the client took those before it."""
        request = self._req
        parts, self._parts = self._parts, ()
        if isinstance(request, web.Request) and request.method != "HEAD":
            for written in _joined(parts):
                await send_frames(request, self, written)
        await super().write_eof(data)


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
