"""Replies to streamed requests on the fast path."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from aiohttp import web

from gatewayd.http.responses.fast_response import supports_direct_reply
from gatewayd.http.responses.forwarder import StreamForwarder
from gatewayd.http.responses.frames import FrameRenderer
from gatewayd.http.responses.provider_headers import reply_headers
from gatewayd.http.responses.streams import AnswerStreams, BegunWait
from gatewayd.http.routes import RouteDialect
from gatewayd.metering.begun_call import BegunCall
from gatewayd.pipeline.begun_stream import BegunChatStream, Pending
from gatewayd.pipeline.records import ChatAnswer


@dataclass(slots=True, eq=False, repr=False)
class BegunStreamReply:
    """The `routes.BegunAnswer` of a streamed chat request."""

    is_stream: ClassVar = True

    _request: web.Request
    _begun: BegunChatStream
    _streams: AnswerStreams
    _frames: Callable[[ChatAnswer], FrameRenderer]
    _dialect: RouteDialect
    _arrived: Callable[[], None]
    _is_late: bool = False
    _forwarder: StreamForwarder | None = None
    _wait: BegunWait = field(init=False)

    def __post_init__(self) -> None:
        self._wait = self._streams.await_begun(self._late)

    def take(self) -> StreamForwarder | Pending | None:
        """Return the stream once its first chunk has come; None if the handler of the row has to answer."""
        if self._is_late or not supports_direct_reply(self._request):
            return None
        answer = self._begun.take()
        if answer is None or isinstance(answer, Pending):
            return answer
        self._wait.end()
        first = self._begun.first
        if first is None:
            raise ValueError("an answer begins with a chunk")
        headers, frames = reply_headers(answer, self._dialect), self._frames(answer)
        chunks = self._begun.chunks
        self._forwarder = self._streams.forwarder(self._request, headers, chunks, frames, first)
        return self._forwarder

    def hand_over(self) -> BegunCall:
        """Return what the handler of the row needs to go on with the request."""
        self._wait.end()
        return self._begun.hand_over()

    def cancel(self) -> None:
        """End the request, whose client does not wait for the answer."""
        self._wait.end()
        if self._forwarder is not None:
            self._forwarder.stop()
        self._begun.cancel()

    def _late(self) -> None:
        self._is_late = True
        self._arrived()
