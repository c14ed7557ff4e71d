"""Streaming of answers: frames as they arrive, keep-alives, and in-band failures."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Final, TypeVar

from aiohttp import web

from gatewayd.catalog.interfaces import ChunkStream, FollowedChunks
from gatewayd.completions.records import DONE, CompletionChunk
from gatewayd.dialects import openai
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.connections.fast_path import FastConnection
from gatewayd.http.errors import log_broken, type_of
from gatewayd.http.responses import heartbeat
from gatewayd.http.responses.early_head import EarlyHead
from gatewayd.http.responses.forwarder import StreamForwarder
from gatewayd.http.responses.frames import FrameRenderer, StreamOpening
from gatewayd.http.responses.heartbeat import Heartbeat
from gatewayd.http.responses.sse import open_stream, send_frames
from gatewayd.http.routes import RouteDialect
from gatewayd.metering.begun_call import BEGUN
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from gatewayd.tasks import TaskRegistry

KEEP_ALIVE_FRAME: Final = b": keep-alive\n\n"


Asked = TypeVar("Asked")

Ending = Callable[[], Awaitable[bytes]]
"""Returns the last frames of a stream."""


class OpenAiFrames:
    """Renderer of the OpenAI dialect; the chunks of the sources already are its frames."""

    content_type: str | None = None

    def feed(self, chunk: CompletionChunk) -> bytes:
        """Return the chunk's bytes."""
        return chunk.raw

    def ping(self) -> bytes:
        """Return a comment, which clients of event streams ignore."""
        return KEEP_ALIVE_FRAME

    def finish(self) -> bytes:
        """Return the final `[DONE]`."""
        return DONE

    def fail(self, error: GatewayError) -> bytes:
        """Return the error frame; no `[DONE]` follows it."""
        return openai.render_error(error, type_of(error, RouteDialect.OPENAI))


class AnswerStreams:
    """Streams of answers, each with its own heartbeat."""

    def __init__(
        self,
        *,
        seconds: float = heartbeat.HEARTBEAT_SECONDS,
        head_seconds: float | None = heartbeat.HEARTBEAT_SECONDS,
    ) -> None:
        self._seconds = seconds
        self._head_seconds = head_seconds
        # Each stream stops its own heartbeat.
        self._beats = TaskRegistry()
        self._waiting: set[asyncio.Task[object]] = set()
        self._begun: set[BegunWait] = set()
        self._is_stopped = False
        self._stopped: set[asyncio.Task[object]] = set()

    @property
    def is_waiting(self) -> bool:
        """Whether any answer has no first chunk yet."""
        return bool(self._waiting or self._begun)

    @property
    def is_stopped(self) -> bool:
        """Whether answers that are asked for now fail at once."""
        return self._is_stopped

    def stop(self) -> None:
        """Fail every answer that has no first chunk yet, with an error to its client.

        Those that are asked for later fail at once.
        """
        self._is_stopped = True
        for wait in tuple(self._begun):
            wait.stop()
        for task in self._waiting - self._stopped:
            self._stopped.add(task)
            task.cancel()

    def await_begun(self, late: Callable[[], None]) -> "BegunWait":
        """Watch the wait of a request of the fast path for its first chunk.

        `late` is called once, when the request needs a task: for an early head, or after `stop`.
        """
        return BegunWait(self._begun, self._head_seconds, late)

    def forwarder(
        self,
        request: web.Request,
        headers: Mapping[str, str],
        chunks: FollowedChunks,
        frames: FrameRenderer,
        first: CompletionChunk,
    ) -> StreamForwarder:
        """Return the forwarder of an answer to a request of a `FastConnection`."""
        connection = request.protocol
        if not isinstance(connection, FastConnection):
            raise TypeError("the connection does not tell when its client has read on")
        return StreamForwarder(request, connection, headers, chunks, frames, first, seconds=self._seconds)

    async def begin(
        self,
        request: web.Request,
        asked: Awaitable[Asked],
        edge: StreamOpening,
        follow: Callable[[Asked, web.StreamResponse | None], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Await an answer and let `follow` send it, on the stream that a long wait may have begun.

        A failure raises before the stream has begun, and is the last frame afterwards. After `stop` it is
        unavailable.
        """
        headers = {} if edge.content_type is None else {"Content-Type": edge.content_type}
        seconds = self._head_seconds
        if seconds is not None and (known := BEGUN.get()) is not None:
            # The fast path has waited already.
            seconds = max(0.0, seconds - (time.perf_counter() - known.began))
        early = EarlyHead(request, self._beats, edge.ping, headers, seconds=seconds, pause=self._seconds)
        try:
            with early:
                answer = await self._first(asked)
            return await follow(answer, early.reply)
        except GatewayError as error:
            if early.reply is None:
                raise
            log_broken(request, error)
            await send_frames(request, early.reply, edge.fail(error))
            await early.reply.write_eof()
            return early.reply

    async def _first(self, asked: Awaitable[Asked]) -> Asked:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is served in a task")
        if self._is_stopped:
            if isinstance(asked, Coroutine):
                asked.close()
            raise _stopped()
        self._waiting.add(task)
        try:
            return await asked
        except asyncio.CancelledError:
            if task not in self._stopped or task.cancelling() > 1:
                raise
            task.uncancel()
            raise _stopped() from None
        finally:
            self._waiting.discard(task)
            self._stopped.discard(task)

    def keep_alive(
        self, request: web.Request, reply: web.StreamResponse, ping: Callable[[], bytes]
    ) -> Heartbeat:
        """Return the heartbeat of a stream."""

        async def beat() -> None:
            await send_frames(request, reply, ping())

        return Heartbeat(self._beats, beat, seconds=self._seconds)

    async def send(
        self,
        request: web.Request,
        chunks: ChunkStream,
        frames: FrameRenderer,
        headers: Mapping[str, str],
        first: bytes = b"",
        begun: web.StreamResponse | None = None,
        ending: Ending | None = None,
    ) -> web.StreamResponse:
        """Write `first`, a frame for each chunk, and the frames of `ending`; the source is always released.

        `ending` is awaited once the answer is complete.
        """
        async with aclosing(chunks):
            reply = begun or await open_stream(request, headers)
            try:
                if first:
                    await send_frames(request, reply, first)
                async with self.keep_alive(request, reply, frames.ping) as silence:
                    async for chunk in chunks:
                        ready = frames.feed(chunk)
                        if ready:
                            await send_frames(request, reply, ready)
                            silence.touch()
            except GatewayError as error:
                log_broken(request, error)
                await send_frames(request, reply, frames.fail(error))
            else:
                await send_frames(request, reply, frames.finish())
                if ending is not None:
                    await send_frames(request, reply, await ending())
            await reply.write_eof()
        return reply


class BegunWait:
    """The wait of a request of the fast path for its first chunk, up to `end`."""

    __slots__ = ("_late", "_timer", "_waits")

    def __init__(self, waits: "set[BegunWait]", seconds: float | None, late: Callable[[], None]) -> None:
        self._waits = waits
        self._late: Callable[[], None] | None = late
        self._timer: asyncio.TimerHandle | None = None
        if seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.stop)
        waits.add(self)

    def end(self) -> None:
        """End the wait; may be called again."""
        self._waits.discard(self)
        self._late = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def stop(self) -> None:
        """End the wait, and let a task go on with it."""
        late = self._late
        self.end()
        if late is not None:
            late()


def _stopped() -> GatewayError:
    return GatewayError(ErrorKind.UNAVAILABLE, "cannot get an answer: the gateway stops")


def openai_frames(answer: ChatAnswer, chat: ChatRequest) -> bytes:
    """Return a complete answer as the frames of a stream."""
    if answer.completion is None:
        return DONE
    frames = openai.render_completion(answer.completion, include_usage=openai.wants_usage(chat.body))
    return b"".join([*frames, DONE])


async def send_whole(
    request: web.Request, frames: bytes, headers: Mapping[str, str], begun: web.StreamResponse | None = None
) -> web.StreamResponse:
    """Send the frames of a complete stream."""
    reply = begun or await open_stream(request, headers)
    await send_frames(request, reply, frames)
    await reply.write_eof()
    return reply
