"""Stores of streams and of replies, and the limiter of streams."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from gatewayd.resumption.records import EndedStream, FrameBatch, RequestRecord, StreamRecord


class StreamStore(Protocol):
    """Stores streams and their frames."""

    async def write(self, streams: Sequence[StreamRecord], batches: Sequence[FrameBatch]) -> None:
        """Insert streams, or replace their state, end, last number, size and headers, and add frames, all or
        none."""
        ...

    async def find(self, stream_id: str) -> StreamRecord | None:
        """Return a stream; None if absent."""
        ...

    async def read(self, stream_id: str, after: int, most: int) -> Sequence[FrameBatch]:
        """Return up to `most` batches with frames after a number, in order."""
        ...

    async def interrupt(self, at: int) -> int:
        """Mark the running streams as interrupted at a time; return how many."""
        ...

    async def ended(self) -> Sequence[EndedStream]:
        """Return the streams that have ended, newest first."""
        ...

    async def remove(self, stream_ids: Sequence[str]) -> int:
        """Delete streams with their frames; return how many there were."""
        ...

    async def remove_user(self, user_id: str) -> None:
        """Delete all streams of a user."""
        ...


class ReplyStore(Protocol):
    """Stores requests with idempotency keys and their replies."""

    async def find(self, digest: str) -> RequestRecord | None:
        """Return a request; None if absent."""
        ...

    async def put(self, record: RequestRecord) -> None:
        """Insert a request, or replace the one with the same digest."""
        ...

    async def remove(self, digest: str) -> None:
        """Delete a request, if there is one."""
        ...

    async def remove_user(self, user_id: str) -> None:
        """Delete all requests of a user."""
        ...

    async def prune(self, before: int) -> int:
        """Delete requests older than a time; return how many."""
        ...

    async def trim(self, user_id: str, most: int, characters: int) -> None:
        """Delete all but the newest requests of a user, at most `most` with so many characters of replies."""
        ...


class OtherNodes(Protocol):
    """Requests and news to the other nodes of the gateway."""

    @property
    def is_shared(self) -> bool:
        """Whether there may be other nodes."""
        ...

    def on(self, kind: str, handler: Callable[[str, Mapping[str, Any]], None]) -> None:
        """Call `handler` for the news of a kind, with the sender and the body."""
        ...

    def serve(self, kind: str, handler: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> None:
        """Reply to the requests of a kind with what `handler` returns, None for those about another node."""
        ...

    def tell(self, kind: str, body: Mapping[str, Any]) -> bool:
        """Send news to the other nodes."""
        ...

    async def ask(self, kind: str, body: Mapping[str, Any]) -> Any:
        """Send a request to the other nodes; None if it is about none, unavailable if that is not known."""
        ...


class StreamLimiter(Protocol):
    """Counts the answers of an account that have no waiting request."""

    def begin_run(self, account: str) -> Callable[[], None]:
        """Count an answer and return the function to call at its end; raises unavailable or rate_limited."""
        ...
