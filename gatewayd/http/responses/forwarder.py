"""Forwarding of the chunks of an answer in the callbacks in which they come, without a task."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from aiohttp import web

from gatewayd.catalog.interfaces import FollowedChunks
from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import GatewayError
from gatewayd.http.errors import log_broken
from gatewayd.http.responses.frames import FrameRenderer
from gatewayd.http.responses.heartbeat import SilenceTimer
from gatewayd.http.responses.sse import direct_stream
from gatewayd.http.routes import StreamEnd


class ForwardingConnection(Protocol):
    """The part of a client's connection that a forwarder uses."""

    @property
    def writing_paused(self) -> bool:
        """Whether too many bytes are unsent."""
        ...

    def when_resumed(self, resumed: Callable[[], None]) -> None:
        """Call `resumed` once, when the client has read on."""
        ...


class StreamForwarder:
    """Sends the chunks of an answer to a client, with keep-alives after each `seconds` of silence.

    Nothing is taken from the source while too many bytes are unsent. `ended` is called once, at the end,
    unless `stop` comes first; the source is always released.
    """

    __slots__ = (
        *("_chunks", "_connection", "_ended", "_first", "_frames", "_has_beaten", "_is_held", "_is_over"),
        *("_request", "_silence", "reply"),
    )

    def __init__(
        self,
        request: web.Request,
        connection: ForwardingConnection,
        headers: Mapping[str, str],
        chunks: FollowedChunks,
        frames: FrameRenderer,
        first: CompletionChunk,
        *,
        seconds: float,
    ) -> None:
        self._request = request
        self._connection = connection
        self._chunks = chunks
        self._frames = frames
        self._silence = SilenceTimer(seconds=seconds)
        self._ended: Callable[[StreamEnd], None] | None = None
        self._has_beaten = False
        self._is_held = False
        self._is_over = False
        self._first = first
        self.reply = direct_stream(request, headers)
        """The reply, whose head is sent with the first chunk."""

    def begin(self, ended: Callable[[StreamEnd], None]) -> None:
        """Send the first chunk, and follow the others."""
        self._ended = ended
        self._silence.start(self._beat)
        self._chunks.follow(self._pour)
        self._pour(self._first)

    def stop(self) -> None:
        """End the stream without another byte."""
        self._is_over = True
        self._ended = None
        self._silence.stop()
        self._chunks.close()

    def _pour(self, chunk: CompletionChunk | None = None) -> None:
        """Send a chunk, and those that have come."""
        if self._is_held or self._is_over:
            return
        end: StreamEnd | None = StreamEnd.FAILED
        try:
            end = self._forward(chunk)
        except ConnectionResetError:
            # aiohttp reports it in a moment.
            end = StreamEnd.LEFT
        finally:
            if end is not None:
                self._end(end)

    def _forward(self, chunk: CompletionChunk | None) -> StreamEnd | None:
        reply, take, feed = self.reply, self._chunks.take, self._frames.feed
        try:
            while True:
                if chunk is not None:
                    ready = feed(chunk)
                    if ready:
                        reply.put(ready)
                        self._silence.touch()
                    if self._connection.writing_paused:
                        self._hold()
                        return None
                    if self._chunks.is_quiet:
                        return None
                chunk = take()
                if chunk is None:
                    return None
        except StopAsyncIteration:
            reply.end(self._frames.finish())
        except GatewayError as error:
            log_broken(self._request, error)
            reply.end(self._frames.fail(error))
        return StreamEnd.SENT

    def _hold(self) -> None:
        self._is_held = True
        self._chunks.hold()
        self._connection.when_resumed(self._resume)

    def _resume(self) -> None:
        self._is_held = self._has_beaten = False
        self._pour()

    def _beat(self) -> None:
        """Send a keep-alive; one alone to a client that does not read."""
        if self._has_beaten:
            return
        self._has_beaten = self._is_held
        with suppress(ConnectionResetError):
            self.reply.put(self._frames.ping())

    def _end(self, end: StreamEnd) -> None:
        ended = self._ended
        try:
            self.stop()
        finally:
            if ended is not None:
                ended(end)
