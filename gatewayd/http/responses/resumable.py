"""Answers as resumable streams: from the request to recorded frames, and from these to a reply.

See gatewayd-dialects(7), RESUMABLE STREAMS.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from aiohttp import web

from gatewayd import ids
from gatewayd.catalog.interfaces import ChunkStream
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.http.errors import log_broken
from gatewayd.http.responses import heartbeat
from gatewayd.http.responses.frames import FrameRenderer, StreamOpening
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.resumption.live_stream import StreamRecording
from gatewayd.resumption.reader import LAST_EVENT_ID, FrameReader
from gatewayd.resumption.records import StreamState
from gatewayd.resumption.service import ResumableStreams, interruption, too_long

STREAM_HEADER: Final = "X-Gateway-Stream"
RESUMABLE: Final = "resumable"
STREAM_ID_HEADER: Final = "X-Gateway-Stream-Id"

_NUMBER: Final = re.compile(r"[0-9]{1,15}")

Asked = TypeVar("Asked")


class FailureRenderer(Protocol):
    """Renderer of the frame that ends a broken answer."""

    def fail(self, error: GatewayError) -> bytes:
        """Return the frame."""
        ...


@dataclass(frozen=True, slots=True)
class RenderedAnswer:
    """An answer as frames: `first`, then those of the chunks; without chunks `first` is the whole stream.

    `ending` returns frames that follow those of `frames.finish`.
    """

    frames: FrameRenderer
    first: bytes = b""
    chunks: ChunkStream | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Callable[[], Awaitable[bytes]] | None = None


@dataclass(frozen=True, slots=True)
class StreamedRequest(Generic[Asked]):
    """A request for a resumable stream.

    `ask` answers it, `render` makes frames of its answer and of the id of the stream, and `edge` those around
    an answer, in the `protocol` of the caller.
    """

    user_id: str
    protocol: str
    edge: StreamOpening
    ask: Callable[[], Awaitable[Asked]]
    render: Callable[[Asked, str], RenderedAnswer]
    log: Callable[[GatewayError], None]


class ResumableAnswers:
    """Serves answers that go on without their client."""

    def __init__(
        self,
        streams: ResumableStreams,
        answers: AnswerStreams,
        *,
        head_seconds: float | None = heartbeat.HEARTBEAT_SECONDS,
        clock: ids.Clock = ids.now,
    ) -> None:
        self.streams = streams
        self._answers = answers
        self._head_seconds = head_seconds
        self._clock = clock

    async def serve(self, request: web.Request, asked: StreamedRequest[Asked]) -> web.StreamResponse:
        """Answer a request; a failure before the stream has begun raises.

        A client that leaves before it knows the stream ends the answer.
        """
        recording = self.streams.begin(asked.user_id, asked.protocol, partial(self._produce, asked))
        try:
            await self._begun(recording)
        except asyncio.CancelledError:
            await self.streams.abandon(recording)
            raise
        return await self.follow(request, self.streams.read(recording), asked.edge)

    async def start(self, asked: StreamedRequest[Asked]) -> str:
        """Start an answer and return the id of its stream, once that has begun; raises as `serve` does."""
        recording = self.streams.begin(asked.user_id, asked.protocol, partial(self._produce, asked))
        await self._begun(recording)
        return recording.id

    async def follow(
        self,
        request: web.Request,
        reader: FrameReader,
        edge: StreamOpening,
        headers: Mapping[str, str] | None = None,
    ) -> web.StreamResponse:
        """Send the frames behind the position of a reader, and further ones as they come."""
        record = reader.record
        with reader:
            reply = await open_stream(
                request, {STREAM_ID_HEADER: record.id, **record.headers, **(headers or {})}
            )

            def ping() -> bytes:
                return _numbered(reader.position, edge.ping())

            if not record.last:
                # The head says which stream it is, and goes with the first bytes.
                await send_frames(request, reply, edge.ping())
            try:
                async with self._answers.keep_alive(request, reply, ping) as silence:
                    while frames := await reader.next():
                        await send_frames(request, reply, frames)
                        silence.touch()
            except GatewayError as error:
                log_broken(request, error)
                await send_frames(request, reply, edge.fail(error))
            else:
                if reader.is_interrupted:
                    number = max(reader.position, record.last) + 1
                    await send_frames(request, reply, _numbered(number, edge.fail(interruption())))
            await reply.write_eof()
        return reply

    async def _begun(self, recording: StreamRecording) -> None:
        try:
            async with asyncio.timeout(self._head_seconds):
                await recording.begun()
        except TimeoutError:
            # From here on a failure is in the stream.
            recording.begin({})
        if recording.failure is not None:
            raise recording.failure

    async def _produce(self, asked: StreamedRequest[Asked], recording: StreamRecording) -> None:
        frames: FailureRenderer = asked.edge
        try:
            answer = asked.render(await asked.ask(), recording.id)
            frames = answer.frames
            recording.begin(answer.headers)
            recording.add(answer.first)
            if answer.chunks is not None:
                await self._record(recording, answer.chunks, answer.frames)
            rest = b"" if answer.chunks is None else answer.frames.finish()
            if answer.ending is not None:
                rest += await answer.ending()
            recording.finish(StreamState.COMPLETE, rest, self._clock())
        except GatewayError as error:
            self._break(recording, frames, error)
            if recording.failure is None:
                asked.log(error)
        except asyncio.CancelledError:
            self._break(recording, frames, recording.ending or interruption())
            raise
        finally:
            # A fault of ours, which the registry of tasks logs.
            fault = GatewayError(ErrorKind.INTERNAL, "cannot go on with the answer: internal error")
            self._break(recording, frames, fault)

    async def _record(self, recording: StreamRecording, chunks: ChunkStream, frames: FrameRenderer) -> None:
        async with aclosing(chunks):
            async for chunk in chunks:
                if ready := frames.feed(chunk):
                    recording.add(ready)
                    if recording.is_full:
                        await recording.room()
                    if recording.is_too_large:
                        raise too_long()

    def _break(self, recording: StreamRecording, frames: FailureRenderer, error: GatewayError) -> None:
        if recording.is_over:
            return
        if recording.has_begun:
            recording.finish(StreamState.BROKEN, frames.fail(error), self._clock())
        else:
            recording.refuse(error)


def wants_resumable(request: web.Request) -> bool:
    """Return whether a request asks for a resumable stream; raises invalid_request for another value."""
    value = request.headers.get(STREAM_HEADER)
    if value is None:
        return False
    if value.strip().lower() != RESUMABLE:
        raise invalid(f"cannot accept {STREAM_HEADER}: expected {RESUMABLE}", param=STREAM_HEADER)
    return True


def last_event_id(request: web.Request) -> int:
    """Return the number of the last frame that the client has, of the header or of the query; 0 for none."""
    value = request.headers.get(LAST_EVENT_ID) or request.query.get("last_event_id") or "0"
    if not _NUMBER.fullmatch(value):
        raise invalid(f"cannot accept {LAST_EVENT_ID}: expected the id of an event", param=LAST_EVENT_ID)
    return int(value)


def _numbered(number: int, frame: bytes) -> bytes:
    """Return a frame that is not recorded, with the id of the last one or of the next."""
    return b"id: %d\n%b" % (number, frame)
