"""One response of a provider: status, headers, streamed body, deadlines.

The connection adds parts, the reader takes them. The connection is released at the end of the answer, even
if parts of the body are not read yet.
"""

import asyncio
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.errors import TransportError
from gatewayd.upstream.sources.config import UpstreamTimeouts

RACE_SECONDS = 1.0
"""Maximum time between a request and the close of a reused connection that counts as a race."""

DRAIN_SECONDS = 0.2
"""Maximum wait for the end of an answer after its last event, so that its connection can be reused."""

READ_AHEAD_BYTES = 64 * 1024
"""Bytes buffered for a slow reader before the connection pauses reading."""

RawHeaders = list[tuple[bytes, bytes]]


class ResponseConnection(Protocol):
    """Methods of a connection that its response calls."""

    @property
    def is_paused(self) -> bool:
        """Whether it does not read for now."""
        ...

    def arm(self, due: float) -> None:
        """Call `overdue` at `due` (loop time; infinity: never)."""
        ...

    def resume(self) -> None:
        """Resume reading if it is paused."""
        ...

    def drop(self) -> None:
        """Close the connection at once."""
        ...


class ResponseHeaders(Mapping[str, str]):
    """The headers of an answer; names compare without case, and the first of several values counts."""

    __slots__ = ("_raw",)

    def __init__(self, raw: RawHeaders) -> None:
        self._raw = raw

    def __getitem__(self, name: str) -> str:
        wanted = name.lower().encode("latin-1", "replace")
        size = len(wanted)
        for found, value in self._raw:
            if len(found) == size and found.lower() == wanted:
                return value.decode("latin-1").strip()
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.decode("latin-1").lower() for name, _ in self._raw))

    def __len__(self) -> int:
        return len({name.lower() for name, _ in self._raw})


class ProviderResponse:
    """A response for one reader, which awaits the head and then reads the body."""

    __slots__ = (
        "_allowed",
        "_callback",
        "_end",
        "_error",
        "_follower",
        "_headers",
        "_is_awaited",
        "_is_unwanted",
        "_kept",
        "_loop",
        "_parts",
        "_raw",
        "_timeouts",
        "_unread",
        "_waiter",
        "_wake_at",
        "carrier",
        "due",
        "has_body",
        "is_over",
        "retry_until",
        "status",
    )

    def __init__(
        self, timeouts: UpstreamTimeouts, loop: asyncio.AbstractEventLoop, *, has_body: bool = True
    ) -> None:
        started = loop.time()
        self._timeouts = timeouts
        self._loop = loop
        self._end = math.inf if timeouts.total is None else started + timeouts.total
        self._allowed = timeouts.first_byte
        self._callback: Callable[[], None] | None = None
        self._error: tuple[ErrorKind, str] | None = None
        self._follower: Callable[[], None] | None = None
        self._headers: ResponseHeaders | None = None
        self._is_awaited = True
        self._is_unwanted = False
        self._kept: list[bytes] | None = None
        self._parts: list[bytes] = []
        self._raw: RawHeaders = []
        self._unread = 0
        self._waiter: asyncio.Future[None] | None = None
        self._wake_at = 0
        self.carrier: ResponseConnection | None = None
        self.due = self._end
        """Deadline of the head in loop time; `sent` sets it."""
        self.has_body = has_body
        self.is_over = False
        """Whether nothing more comes."""
        self.retry_until = started + min(RACE_SECONDS, timeouts.connect)
        """Loop time until which the close of a reused connection counts as a race with the request."""
        self.status = 0

    # The reader's side ------------------------------------------------------------------------------------

    @property
    def headers(self) -> ResponseHeaders:
        """The headers; names compare without case."""
        if self._headers is None:
            self._headers = ResponseHeaders(self._raw)
        return self._headers

    @property
    def raw_headers(self) -> RawHeaders:
        """Names and values of the headers as they arrived."""
        return self._raw

    async def arrived(self) -> bool:
        """Wait for the head; raises TransportError.

        Returns False if a reused connection was closed before it delivered any byte; the caller has its slot.
        """
        if not self.status and self._is_awaited:
            await self._woken()
        if self.status:
            return True
        if self._error is None:
            self.carrier = None
            self._is_awaited = True
            return False
        raise TransportError(*self._error)

    def call_back(self, arrived: Callable[[], None], limit: int) -> None:
        """Call `arrived` once: when the answer is complete, has over `limit` bytes, or has failed.

        It must be set before the request is sent.
        """
        self._callback = arrived
        self._wake_at = limit + 1

    def follow(self, arrived: Callable[[], None], *, keeps: bool = False) -> None:
        """Call `arrived` whenever bytes have come, and once when nothing more comes; `take` returns them.

        With `keeps`, what is taken is kept for `hand_back`, until `follow` is called again.
        """
        self._follower = arrived
        self._kept = [] if keeps else None
        self._wake_at = 1

    def take(self) -> bytes | None:
        """Return the bytes since the last read, b"" at the end, None before it; raises TransportError.

        The clock of silence runs from then on.
        """
        if not self.is_over:
            self._arm()
            if not self._parts:
                return None
        elif not self._parts and self._error is not None:
            raise TransportError(*self._error)
        taken = self._take()
        if self._kept is not None:
            self._kept.append(taken)
        return taken

    def hold(self) -> None:
        """Stop the clock of silence: the reader takes nothing for now."""
        if self.carrier is not None:
            self.carrier.arm(self._end)

    def hand_back(self) -> None:
        """Call nobody any more, and give the bytes that were taken to the next reader."""
        kept, self._kept, self._follower = self._kept or [], None, None
        self._parts[:0] = [part for part in kept if part]
        self._unread += sum(map(len, kept))

    def drain(self) -> None:
        """Reuse the connection if the body ends at once, else close it, without a reader."""
        self._follower = self._kept = None
        if not self.is_over:
            self._begin_drain()
            self.hold()

    def peek(self) -> bytes | None:
        """Return the whole body, which stays; None if the answer is incomplete or has failed."""
        if not self.is_over or self._error is not None:
            return None
        parts = self._parts
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def read(self, limit: int) -> bytes:
        """Return the whole body; raises TransportError if it is over `limit` bytes or breaks off."""
        try:
            if not self.is_over and self._unread <= limit:
                self._wake_at = limit + 1
                if self.carrier is not None:
                    self.carrier.resume()
                await self._more()
            if self._unread > limit:
                raise TransportError(ErrorKind.UPSTREAM_FAILED, f"its answer is over {limit} bytes")
            if self._error is not None:
                raise TransportError(*self._error)
            return self._take()
        finally:
            self.close()

    async def read_some(self) -> bytes:
        """Return the bytes since the last read, b"" at the end; raises TransportError."""
        if not self._parts:
            if not self.is_over:
                self._wake_at = 1
                await self._more()
            if not self._parts and self._error is not None:
                raise TransportError(*self._error)
        return self._take()

    async def finish(self) -> None:
        """Reuse the connection if the body ends at once, else close it."""
        if not self.is_over:
            self._begin_drain()
            self._wake_at = sys.maxsize
            await self._more()
        self.close()

    def close(self) -> None:
        """Close the connection at once unless the body is complete; may be called again."""
        self._callback = self._follower = self._kept = None
        self._parts.clear()
        self._unread = 0
        carrier = self.carrier
        if carrier is not None:
            self.fail(ErrorKind.UPSTREAM_FAILED, "its answer broke off (closed by the reader)")
            carrier.drop()

    @property
    def ends_with_connection(self) -> bool:
        """Whether the body lasts until the connection is closed (RFC 9112, 6.3)."""
        coding = b""
        for name, value in self._raw:
            lower = name.lower()
            if lower == b"content-length":
                return False
            if lower == b"transfer-encoding":
                coding = value.rpartition(b",")[2].strip().lower()
        return coding != b"chunked"

    # The connection's side --------------------------------------------------------------------------------

    def sent(self) -> None:
        """Start the wait for the head: the request is sent."""
        self.due = min(self._loop.time() + self._timeouts.first_byte, self._end)

    def begin(self, status: int, raw: RawHeaders) -> None:
        """Store the head."""
        self.status = status
        self._raw = raw

    def add(self, part: bytes) -> bool:
        """Store a part of the body; return whether the connection should pause reading."""
        self._allowed = self._timeouts.idle
        if self._is_unwanted:
            return False
        self._parts.append(part)
        self._unread += len(part)
        return self._unread > READ_AHEAD_BYTES and self._unread >= self._wake_at

    def end(self) -> None:
        """Record that the answer is complete; its connection is released."""
        self.is_over = True
        self.carrier = None

    def fail(self, kind: ErrorKind, sentence: str) -> None:
        """Record why the answer ended early; its connection is released."""
        self.is_over = True
        self._error = (kind, sentence)
        self.carrier = None
        self.wake()

    def wake(self) -> None:
        """Wake the reader if enough has arrived, else restart its deadline."""
        follower = self._follower
        if follower is not None:
            if self._unread and self.status and not self.is_over:
                follower()
            else:
                self._tell(follower)
            return
        if self._callback is not None:
            self._call_back(self._callback)
            return
        waiter = self._waiter
        if waiter is None:
            return
        if self._unread < self._wake_at and not self.is_over:
            self._arm()
            return
        self._waiter = None
        if self.carrier is not None:
            self.carrier.arm(self._end)
        if not waiter.done():
            waiter.set_result(None)

    def _tell(self, follower: Callable[[], None]) -> None:
        """Tell the follower of the end once the connection is released, or restart the deadline."""
        if self.is_over or not self.status:
            self._follower = None
            self._is_awaited = False
            self._loop.call_soon(follower)
        else:
            self._arm()

    def _call_back(self, callback: Callable[[], None]) -> None:
        """Call back if enough has arrived or nothing more comes, else restart the deadline."""
        if self.status and self._unread < self._wake_at and not self.is_over:
            self._arm()
            return
        self._callback = None
        self._is_awaited = False
        if self.carrier is not None:
            self.carrier.arm(self._end)
        # Not at once: the connection is released first, and an error of the reader is not its own.
        self._loop.call_soon(callback)

    def overdue(self, now: float) -> str:
        """Return the sentence for a missed deadline."""
        if not self.status:
            total = self._timeouts.total
            wait = self._timeouts.first_byte if total is None or now < self._end else total
            return f"no first byte within {wait:g} s"
        if now >= self._end:
            return "the answer took too long"
        return f"it was silent for {self._allowed:g} s"

    def _take(self) -> bytes:
        parts = self._parts
        if not parts:
            return b""
        taken = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self._unread = 0
        carrier = self.carrier
        if carrier is not None and carrier.is_paused:
            carrier.resume()
        return taken

    def _begin_drain(self) -> None:
        self._is_unwanted = True
        self._take()
        self._end = min(self._end, self._loop.time() + DRAIN_SECONDS)

    def _arm(self) -> None:
        if self.carrier is not None:
            self.carrier.arm(min(self._loop.time() + self._allowed, self._end))

    async def _more(self) -> None:
        self._arm()
        await self._woken()

    async def _woken(self) -> None:
        """Wait for `wake`; a cancelled reader closes the connection."""
        waiter = self._waiter = self._loop.create_future()
        is_woken = False
        try:
            await waiter
            is_woken = True
        finally:
            if not is_woken:
                self._waiter = None
                self.close()
