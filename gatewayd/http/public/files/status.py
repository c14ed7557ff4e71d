"""Event streams of the state of a file, which end with its processing."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import orjson
from aiohttp import web

from gatewayd.http.responses import heartbeat
from gatewayd.http.responses.heartbeat import Heartbeat
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.responses.streams import KEEP_ALIVE_FRAME
from gatewayd.ingest.records import File
from gatewayd.ingest.serializers import render_status
from gatewayd.tasks import TaskRegistry

NOT_FOUND_STATUS: Final[dict[str, Any]] = {"status": "not_found"}


class StatusStreams:
    """Streams of the changes of files, each with its own heartbeat."""

    def __init__(self, *, seconds: float = heartbeat.HEARTBEAT_SECONDS) -> None:
        self._seconds = seconds
        # Each stream stops its own heartbeat.
        self._beats = TaskRegistry()

    async def send(
        self, request: web.Request, changes: AsyncGenerator[File | None, None]
    ) -> web.StreamResponse:
        """Write a frame for each state and keep-alive comments between them.

        An error of `changes` before the first state is an error reply.
        """
        async with aclosing(changes):
            first = await anext(changes)
            reply = await open_stream(request, {})

            async def beat() -> None:
                await send_frames(request, reply, KEEP_ALIVE_FRAME)

            async with Heartbeat(self._beats, beat, seconds=self._seconds) as silence:
                await send_frames(request, reply, status_frame(first))
                async for file in changes:
                    await send_frames(request, reply, status_frame(file))
                    silence.touch()
            await reply.write_eof()
        return reply


def status_frame(file: File | None) -> bytes:
    """Return one event: the status of a file, `not_found` for a file that was removed meanwhile."""
    return b"data: %b\n\n" % orjson.dumps(NOT_FOUND_STATUS if file is None else render_status(file))
