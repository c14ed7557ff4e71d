"""Subscriber of a run: passes the answer on to one caller, whose disconnect does not end the run."""

import asyncio

from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import GatewayError
from gatewayd.pipeline.records import ChatAnswer


class RunSubscriber:
    """Passes the answer of a run to its caller; the run never waits for the caller."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()
        self._answer: ChatAnswer | None = None
        self._failure: GatewayError | None = None
        # Bounded by the size limits of the answer.
        self._chunks: asyncio.Queue[CompletionChunk | None] = asyncio.Queue()
        self._is_closed = False

    def begin(self, answer: ChatAnswer) -> None:
        """Set the answer; the chunks of a streamed one follow by `put`."""
        received = answer
        if answer.chunks is not None:
            received = ChatAnswer(
                chunks=self, sources=answer.sources, warnings=answer.warnings, steps=answer.steps
            )
        self._answer = received
        self._begun.set()

    def put(self, chunk: CompletionChunk) -> None:
        """Add a chunk; after the caller disconnects, chunks are dropped."""
        if not self._is_closed:
            self._chunks.put_nowait(chunk)

    def end(self, failure: GatewayError | None = None) -> None:
        """End the answer, with an error or without; a second call has no effect."""
        self._failure = self._failure or failure
        self._begun.set()
        self._chunks.put_nowait(None)

    async def answer(self) -> ChatAnswer:
        """Return the answer once it begins; raise an earlier error."""
        await self._begun.wait()
        if self._answer is not None:
            return self._answer
        raise self._failure or RuntimeError("a run ends with an answer or a failure")

    def __aiter__(self) -> "RunSubscriber":
        """Return itself; the answer is read once."""
        return self

    async def __anext__(self) -> CompletionChunk:
        """Return the next chunk; raise the error that ended the answer."""
        chunk = await self._chunks.get()
        if chunk is not None:
            return chunk
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Mark the caller as gone or finished."""
        self._is_closed = True
