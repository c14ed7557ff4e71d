"""One HTTP/1.1 connection to a provider: sends requests, parses answers, decides about reuse.

A connection carries one exchange at a time. It is reused only if the answer is complete, the provider keeps
it alive, the request is sent whole, and no unexpected byte has arrived.
"""

import asyncio
import math
from typing import Protocol, cast

import httptools

from gatewayd.deadlines import GRACE_SECONDS, pause_extension
from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.errors import failure_reason
from gatewayd.upstream.http.request_head import RequestHead
from gatewayd.upstream.http.response import ProviderResponse, RawHeaders

MAX_HEAD_BYTES = 64 * 1024
"""Maximum number of bytes of a head, and of the parts of a body without content (trailers, chunk sizes)."""

MAX_HEADERS = 200

MAX_JOINED_BODY_BYTES = 64 * 1024
"""Maximum number of bytes of a body that is copied, so that head and body are one write."""

TICK_SECONDS = 15.0
"""Interval of the clock; a connection without a request in one interval is closed."""

NOT_HTTP = "its answer is not HTTP"


class ConnectionOwner(Protocol):
    """Callbacks from a connection to its pool."""

    def release(self, connection: "ProviderConnection") -> None:
        """Take back a connection whose exchange is over, open or not."""
        ...

    def unusable(self, connection: "ProviderConnection") -> None:
        """Record that a connection without an exchange cannot be used again."""
        ...

    def gone(self, connection: "ProviderConnection") -> None:
        """Record that a connection is closed."""
        ...


class _StopError(Exception):
    """Ends the parsing in the middle of a read."""


class ProviderConnection(asyncio.Protocol):
    """A connection of a pool; the object is created before the connection is opened."""

    def __init__(self, owner: ConnectionOwner, loop: asyncio.AbstractEventLoop) -> None:
        self._owner = owner
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf
        self._fires = math.inf
        self._response: ProviderResponse | None = None
        self._exchanges = 0
        self._is_used = False
        self.is_paused = False
        """Whether it does not read for now."""
        self._is_ended = False
        self._is_uploading = False
        self._room: asyncio.Future[None] | None = None
        self._keeps_alive = False
        self._fed = 0
        self._refusal = ""
        self._parts: list[bytes] = []
        self._raw: RawHeaders = []
        # The parser looks up this callback once, when it is created.
        self.on_body = self._parts.append
        self._parser = httptools.HttpResponseParser(self)
        # Slightly wrong line ends and chunk sizes are common and, in answers, harmless.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self.is_open = False

    # Used by the client and by responses ------------------------------------------------------------------

    def send(self, response: ProviderResponse, head: RequestHead, body: bytes | None) -> None:
        """Send a request; its answer goes into `response`."""
        transport = self._start(response)
        if body is None or len(body) > MAX_JOINED_BODY_BYTES:
            transport.write(head.join(body))
            if body is not None:
                transport.write(body)
        else:
            transport.write(head.join(body) + body)
        self.arm(response.due)

    def begin_upload(self, response: ProviderResponse, head: bytes) -> None:
        """Send the head of a request; `upload` sends its body."""
        self._start(response).write(head)
        self._is_uploading = True
        self.arm(response.due)

    async def upload(self, response: ProviderResponse, data: bytes) -> bool:
        """Send a part of the body and wait for room; False if the answer is over and nothing may follow."""
        if self._response is not response or self._transport is None:
            return False
        self._transport.write(data)
        # The wait for the answer begins anew with each part.
        response.sent()
        self.arm(response.due)
        if self._room is not None:
            await self._room
        return self._response is response

    def end_upload(self, response: ProviderResponse) -> None:
        """Record that the body is sent whole."""
        if self._response is response:
            self._is_uploading = False

    def arm(self, due: float) -> None:
        """Set the deadline of the response; the timer is only moved if it would fire too late."""
        self._due = due
        if due < self._fires and self.is_open:
            self._set_timer(due)

    def resume(self) -> None:
        """Resume reading if it is paused."""
        if self.is_paused and self._transport is not None:
            self.is_paused = False
            self._transport.resume_reading()

    def drop(self) -> None:
        """Close the connection at once and return its slot."""
        self._response = None
        self.abort()
        self._owner.release(self)

    def fail(self, kind: ErrorKind, sentence: str) -> None:
        """Close the connection at once; a running answer ends with this failure."""
        response = self._response
        if response is None:
            self.abort()
            self._owner.unusable(self)
        else:
            response.fail(kind, sentence)
            self.drop()

    def abort(self) -> None:
        """Close the connection at once."""
        self._stop()
        if self._transport is not None:
            self._transport.abort()

    # Called by the event loop -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True
        self._set_timer(self._loop.time() + TICK_SECONDS)

    def pause_writing(self) -> None:
        """Make uploads wait: the provider reads slower than they come."""
        if self._room is None:
            self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let a waiting upload continue."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and pass them to the response."""
        response = self._response
        if response is None:
            self.fail(ErrorKind.UPSTREAM_FAILED, "unsolicited data")
            return
        self._fed += len(data)
        had_head = response.status
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._parser_stopped(error)
        parts = self._parts
        if parts:
            self._fed = 0
            if response.add(parts[0] if len(parts) == 1 else b"".join(parts)) and not self._is_ended:
                self._pause()
            parts.clear()
        if self._is_ended:
            self._complete(response)
        elif self._refusal or self._fed > MAX_HEAD_BYTES:
            self._refuse(response)
        elif response.status and (not had_head or not self._fed):
            response.wake()

    def eof_received(self) -> None:
        """Drop an idle connection at once; an answer is handled by `connection_lost`."""
        if self._response is None:
            self.fail(ErrorKind.UPSTREAM_FAILED, "end of stream")

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer; it is complete if its body lasts until the close."""
        self._stop()
        response = self._response
        if response is None:
            self._owner.unusable(self)
        elif response.status:
            self._cut_off(response, exc)
        elif self._exchanges > 1 and not self._fed and self._loop.time() < response.retry_until:
            # The close raced with the request (RFC 9112, 9.3.1). The response keeps the slot.
            self._response = None
            response.wake()
        else:
            sentence = f"it closed the connection without an answer ({failure_reason(exc)})"
            self.fail(ErrorKind.UPSTREAM_FAILED, sentence)
        self._owner.gone(self)

    # Called by the parser ---------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Start a head; nothing may follow the end of the answer."""
        if self._is_ended:
            raise _StopError
        self._raw = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; trailers are ignored."""
        self._raw.append((name, value))

    def on_headers_complete(self) -> None:
        """Process the head of the answer; interim responses (RFC 9110, 15.2) are ignored."""
        response = self._response
        raw = self._raw
        status = self._parser.get_status_code()
        if response is None or status < 100 or _is_too_large(raw, self._fed):
            raise _StopError
        if status < 200:
            return
        self._raw = []
        self._fed = 0
        response.begin(status, raw)
        if not response.has_body:
            # The parser has no option for an answer without a body, so it is not used again.
            self._is_ended = True
            raise _StopError
        if _is_compressed(raw):
            self._refusal = "compressed"
            raise _StopError

    def on_message_complete(self) -> None:
        """Record the end of the answer."""
        if self._response is not None and self._response.status:
            self._is_ended = True
            self._keeps_alive = self._parser.should_keep_alive()

    # Details ----------------------------------------------------------------------------------------------

    def _start(self, response: ProviderResponse) -> asyncio.Transport:
        """Begin an exchange and return the transport for its request."""
        transport = self._transport
        if transport is None or not self.is_open:
            raise RuntimeError("cannot send on a connection that is not open")
        self._response = response
        self._exchanges += 1
        self._is_used = True
        self._is_uploading = False
        self._fed = 0
        response.carrier = self
        response.sent()
        return transport

    def _complete(self, response: ProviderResponse) -> None:
        """End the exchange with a complete answer."""
        self._response = None
        self._is_ended = False
        self._due = math.inf
        transport = self._transport
        is_unsent = self._is_uploading or transport is None or transport.get_write_buffer_size()
        if not self._keeps_alive or is_unsent:
            self.abort()
        else:
            self.resume()
        response.end()
        response.wake()
        self._owner.release(self)

    def _parser_stopped(self, error: Exception) -> None:
        """Record why the parser stopped: malformed data or `_StopError`."""
        if isinstance(error, httptools.HttpParserCallbackError) and not isinstance(
            error.__context__, _StopError
        ):
            raise error
        self._keeps_alive = False
        if not self._is_ended:
            self._refusal = self._refusal or "malformed"

    def _refuse(self, response: ProviderResponse) -> None:
        """End the exchange because of a malformed answer."""
        if not response.status:
            sentence = NOT_HTTP
        elif self._refusal == "compressed":
            sentence = "its answer is compressed, although the request accepts only identity"
        else:
            sentence = "its answer broke off (malformed body)"
        self.fail(ErrorKind.UPSTREAM_FAILED, sentence)

    def _cut_off(self, response: ProviderResponse, exc: Exception | None) -> None:
        """End an answer whose connection is closed."""
        if exc is None and response.ends_with_connection:
            self._keeps_alive = False
            self._complete(response)
        else:
            self.fail(ErrorKind.UPSTREAM_FAILED, f"its answer broke off ({failure_reason(exc)})")

    def _pause(self) -> None:
        if not self.is_paused and self._transport is not None:
            self.is_paused = True
            self._transport.pause_reading()

    def _stop(self) -> None:
        self.is_open = False
        self._fires = math.inf
        self.resume_writing()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires = at
        self._timer = self._loop.call_at(at, self._check_clock)

    def _check_clock(self) -> None:
        """Check the clock: end a late answer, close an unused connection."""
        now = self._loop.time()
        response = self._response
        if response is None:
            if not self._is_used:
                self.fail(ErrorKind.UPSTREAM_FAILED, "unused")
                return
            self._is_used = False
        elif now >= self._due:
            extension = pause_extension(self._fires, now, GRACE_SECONDS)
            if not extension:
                self.fail(ErrorKind.TIMEOUT, response.overdue(now))
                return
            # The loop was blocked: data that arrived in the meantime is read first.
            self._set_timer(now + extension)
            return
        self._set_timer(min(self._due, now + TICK_SECONDS))


def _is_too_large(raw: RawHeaders, fed: int) -> bool:
    if len(raw) > MAX_HEADERS:
        return True
    return fed > MAX_HEAD_BYTES and sum(len(name) + len(value) + 4 for name, value in raw) > MAX_HEAD_BYTES


def _is_compressed(raw: RawHeaders) -> bool:
    for name, value in raw:
        if len(name) == 16 and name.lower() == b"content-encoding":
            return value.strip().lower() not in {b"", b"identity"}
    return False
