"""Converted responses in the background: they are stored at once, and go on without their client.

Their events are a resumable stream, so that a stream of them can be read while they run.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from aiohttp import web

from gatewayd.completions.records import Body
from gatewayd.dialects.responses.envelope import failure_of
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.http.public.responses.conversion import PreparedResponse
from gatewayd.http.public.responses.frames import ForwardedFrames, ResponseFrames
from gatewayd.http.responses.resumable import ResumableAnswers
from gatewayd.http.responses.sse import send_frames
from gatewayd.ids import Clock, now
from gatewayd.pipeline.records import ChatAnswer
from gatewayd.pipeline.responses.archive import ResponseArchive, StoredResponse
from gatewayd.resumption.live_stream import StreamRecording
from gatewayd.resumption.records import StreamState
from gatewayd.resumption.service import interruption, too_long

PROTOCOL: Final = "responses"
"""Name of the protocol of the frames of responses, in resumable streams."""

END: Final = "responses.end"
"""Kind of the requests to the node of a response to end it."""

QUEUED: Final = "queued"
RUNNING: Final = "in_progress"
CANCELLED: Final = "cancelled"
UNFINISHED: Final = frozenset({QUEUED, RUNNING})
"""Status of a stored response that a task of a living node goes on with."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class BackgroundRequest:
    """A prepared request: `ask` answers it, `stored` makes the record of its response as it is now."""

    prepared: PreparedResponse
    ask: Callable[[], Awaitable[ChatAnswer]]
    stored: Callable[[], StoredResponse]
    log: Callable[[GatewayError], None]
    request_id: str


@dataclass(slots=True)
class _Running:
    """A response that a task goes on with."""

    recording: StreamRecording
    is_removed: bool = False
    is_cancelled: bool = False
    is_ending: bool = False
    """Whether its end is being stored, which nobody interrupts."""
    is_over: asyncio.Event = field(default_factory=asyncio.Event)


class BackgroundResponses:
    """Begins, shows and cancels responses in the background."""

    def __init__(self, archive: ResponseArchive, answers: ResumableAnswers, clock: Clock = now) -> None:
        self._archive = archive
        self._answers = answers
        self._streams = answers.streams
        self._clock = clock
        self._running: dict[str, _Running] = {}
        if self._streams.nodes is not None:
            self._streams.nodes.serve(END, self._take_end)

    async def begin(self, asked: BackgroundRequest) -> tuple[Body, str]:
        """Store a queued response and begin to answer it; return it with the id of its stream.

        Raises invalid_request if it will not be stored, and the errors of `ResumableStreams.begin`.
        """
        if not asked.prepared.request.is_stored:
            raise invalid(
                "cannot accept background: the response would not be stored",
                param="background",
                code="unsupported_parameter",
            )
        stored = asked.stored()
        # The list of the response grows with its answer.
        queued = {**stored.response, "status": QUEUED, "output": []}
        if not await self._archive.keep(replace(stored, response=queued), asked.request_id):
            raise GatewayError(
                ErrorKind.TOO_LARGE, "cannot accept background: the response cannot be stored", param="input"
            )
        is_begun = False
        try:
            recording = self._streams.begin(
                stored.user_id, PROTOCOL, partial(self._produce, asked), is_kept=True, stream_id=stored.id
            )
            is_begun = True
        finally:
            if not is_begun:
                await self._archive.remove(stored.id, stored.user_id)
        self._running[stored.id] = _Running(recording)
        # A task that is stopped before its first step would store nothing.
        await asyncio.sleep(0)
        if self._streams.nodes is not None:
            await self._tell_nodes(stored.id)
        return queued, recording.id

    async def current(self, stored: StoredResponse) -> StoredResponse:
        """Return a response as it is now: one whose task has ended with the gateway has failed."""
        if stored.response.get("status") not in UNFINISHED:
            return stored
        if stored.id in self._running or await self._streams.runs_elsewhere(stored.id, stored.user_id):
            return replace(stored, response={**stored.response, "status": RUNNING})
        # It may have ended since it was read.
        again = await self._archive.find(stored.id, stored.user_id)
        if again.response.get("status") not in UNFINISHED:
            return again
        return replace(again, response=_broken(again.response, interruption()))

    async def follow(
        self, request: web.Request, stored: StoredResponse, after: int
    ) -> web.StreamResponse | None:
        """Send the events behind a number, and further ones; None for a response that does not run.

        Raises invalid_request for a number that the response does not have yet.
        """
        running = self._running.get(stored.id)
        if running is None and await self._streams.runs_elsewhere(stored.id, stored.user_id):
            reader = await self._streams.open(stored.id, stored.user_id, after + 1)
            return await self._answers.follow(request, reader, ForwardedFrames())
        if running is None:
            return None
        record = running.recording.record
        if after >= record.last:
            raise invalid(
                f"cannot accept starting_after: the response has {record.last} events so far",
                param="starting_after",
            )
        # The first event has the number 0, the first frame 1.
        reader = await self._streams.open(record.id, stored.user_id, after + 1)
        return await self._answers.follow(request, reader, ForwardedFrames())

    async def send(
        self, request: web.Request, stream_id: str, user_id: str, begun: web.StreamResponse | None
    ) -> web.StreamResponse:
        """Send the events of a response that was just begun, on the stream that its wait may have begun."""
        reader = await self._streams.open(stream_id, user_id)
        if begun is None:
            return await self._answers.follow(request, reader, ForwardedFrames())
        with reader:
            while frames := await reader.next():
                await send_frames(request, begun, frames)
        await begun.write_eof()
        return begun

    async def cancel(self, stored: StoredResponse) -> bool:
        """Cancel a running response and wait for its end; return False if it does not run.

        Raises unavailable if it runs on a node that does not reply.
        """
        return await self._end(stored, is_cancelled=True)

    async def stop(self, stored: StoredResponse) -> None:
        """End the task of a response that is deleted; raises as `cancel` does."""
        await self._end(stored, is_removed=True)

    async def _end(
        self, stored: StoredResponse, *, is_cancelled: bool = False, is_removed: bool = False
    ) -> bool:
        nodes = self._streams.nodes
        if stored.id in self._running:
            return await self._end_here(stored.id, is_cancelled=is_cancelled, is_removed=is_removed)
        if nodes is None or not await self._streams.runs_elsewhere(stored.id, stored.user_id):
            return False
        body = {"id": stored.id, "is_cancelled": is_cancelled, "is_removed": is_removed}
        return bool(await nodes.ask(END, body))

    async def _take_end(self, body: Mapping[str, Any]) -> bool | None:
        return (
            await self._end_here(body["id"], is_cancelled=body["is_cancelled"], is_removed=body["is_removed"])
            or None
        )

    async def _tell_nodes(self, response_id: str) -> None:
        """Store the stream of a response at once, by which other nodes know that it runs."""
        try:
            await self._streams.write()
        except GatewayError as error:
            log.warning(
                "other nodes do not know yet that a response runs: %s",
                error.full_message,
                extra={"response": response_id},
            )

    async def _end_here(self, response_id: str, *, is_cancelled: bool, is_removed: bool) -> bool:
        running = self._running.get(response_id)
        if running is None:
            return False
        running.is_cancelled = running.is_cancelled or is_cancelled
        running.is_removed = running.is_removed or is_removed
        if not running.is_ending:
            await self._streams.abandon(running.recording)
        await running.is_over.wait()
        return True

    async def _produce(self, asked: BackgroundRequest, recording: StreamRecording) -> None:
        response_id = asked.prepared.stream.response["id"]
        running = self._running[response_id]
        try:
            await self._record(asked, running, recording)
        finally:
            del self._running[response_id]
            running.is_over.set()

    async def _record(self, asked: BackgroundRequest, running: _Running, recording: StreamRecording) -> None:
        stream = asked.prepared.stream
        frames = ResponseFrames(stream, partial(self._keep, asked, running))
        state, rest = StreamState.BROKEN, b""
        recording.begin({})
        recording.add(frames.ping())
        try:
            await self._answer(asked, recording, frames)
            rest, state = stream.finish(), StreamState.COMPLETE
        except GatewayError as error:
            asked.log(error)
            rest = stream.fail(error)
        except asyncio.CancelledError:
            rest = stream.cancel() if running.is_cancelled else stream.fail(_reason(recording))
            raise
        finally:
            # A fault of ours, which the registry of tasks logs.
            rest += stream.fail(
                GatewayError(ErrorKind.INTERNAL, "cannot go on with the answer: internal error")
            )
            running.is_ending = True
            recording.finish(state, rest + await frames.end(), self._clock())

    async def _answer(
        self, asked: BackgroundRequest, recording: StreamRecording, frames: ResponseFrames
    ) -> None:
        """Record the events of an answer but the last ones."""
        answer, stream = await asked.ask(), asked.prepared.stream
        stream.sources, stream.origin = answer.sources, answer.origin
        if answer.chunks is None:
            stream.feed_whole({} if answer.completion is None else answer.completion.body)
            return
        async with aclosing(answer.chunks) as chunks:
            async for chunk in chunks:
                recording.add(frames.feed(chunk))
                if recording.is_full:
                    await recording.room()
                if recording.is_too_large:
                    raise too_long()

    async def _keep(self, asked: BackgroundRequest, running: _Running) -> bool:
        """Store the end of a response; return whether it is stored."""
        if running.is_removed:
            return False
        stored = asked.stored()
        if await self._archive.replace(stored, asked.request_id):
            return True
        failure = GatewayError(ErrorKind.TOO_LARGE, "cannot store the response: it is too large")
        await self._archive.replace(
            replace(stored, response=_broken(stored.response, failure), pieces=[], pings=[]), asked.request_id
        )
        return False


def _reason(recording: StreamRecording) -> GatewayError:
    return recording.ending or interruption()


def _broken(response: Body, error: GatewayError) -> Body:
    ended: Body = {"status": "failed", "error": failure_of(error), "output": [], "usage": None}
    return {**response, **ended, "completed_at": None}
