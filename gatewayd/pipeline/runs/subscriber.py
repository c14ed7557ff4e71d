"""What a direct caller gets of a run: the same answer, as it comes; who leaves does not end the run."""

import asyncio

from gatewayd.completions.records import CompletionChunk
from gatewayd.errors import GatewayError
from gatewayd.pipeline.records import ChatAnswer


class RunSubscriber:
    """Takes from a run what its caller waits for; the run never waits for the caller."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()
        self._answer: ChatAnswer | None = None
        self._failure: GatewayError | None = None
        # As long as the answer itself at most.
        self._chunks: asyncio.Queue[CompletionChunk | None] = asyncio.Queue()
        self._is_left = False

    def begin(self, answer: ChatAnswer) -> None:
        """Take the answer; of a streamed one the chunks follow by `put`."""
        kept = answer
        if answer.chunks is not None:
            kept = ChatAnswer(
                chunks=self, sources=answer.sources, warnings=answer.warnings, steps=answer.steps
            )
        self._answer = kept
        self._begun.set()

    def put(self, chunk: CompletionChunk) -> None:
        """Take a chunk; nothing is kept for a caller who has left."""
        if not self._is_left:
            self._chunks.put_nowait(chunk)

    def end(self, failure: GatewayError | None = None) -> None:
        """Note that nothing follows, or why; a second call changes nothing."""
        self._failure = self._failure or failure
        self._begun.set()
        self._chunks.put_nowait(None)

    async def answer(self) -> ChatAnswer:
        """Return the answer once it begins; raises what happened before that."""
        await self._begun.wait()
        if self._answer is not None:
            return self._answer
        raise self._failure or RuntimeError("a run ends with an answer or a failure")

    def __aiter__(self) -> "RunSubscriber":
        """Return itself: an answer is read once."""
        return self

    async def __anext__(self) -> CompletionChunk:
        """Return the next chunk; raises the failure that ended the answer."""
        chunk = await self._chunks.get()
        if chunk is not None:
            return chunk
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Note that the caller has left, or has got all."""
        self._is_left = True
