"""Answers that can be resumed or repeated: requests with X-Gateway-Stream or Idempotency-Key."""

import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from aiohttp import web

from gatewayd.http import body
from gatewayd.http.context import actor
from gatewayd.http.idempotency import KEY_HEADER, find_key, replayed_headers, request_key
from gatewayd.http.responses.frames import StreamOpening
from gatewayd.http.responses.resumable import (
    STREAM_HEADER,
    ResumableAnswers,
    StreamedRequest,
    wants_resumable,
)
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.resumption.idempotency import IdempotentReplies
from gatewayd.resumption.records import RequestKey, StoredReply
from gatewayd.time_slices import LoopPacer

Asked = TypeVar("Asked")

SLICE_BYTES: Final = 1024 * 1024
UNSTREAMED: Final = f"{STREAM_HEADER} is ignored: the answer is not streamed"


@dataclass(frozen=True, slots=True)
class RepeatableRequest:
    """The body of a request, its key, and whether it asks for a resumable stream."""

    value: dict[str, Any]
    key: RequestKey | None
    is_resumable: bool


class RepeatableAnswers:
    """Answers of models that go on without their client and are repeated for the same key."""

    def __init__(self, resumable: ResumableAnswers, replies: IdempotentReplies) -> None:
        self._resumable = resumable
        self._replies = replies

    def wants(self, request: web.Request) -> bool:
        """Return whether a request has one of the two headers."""
        return STREAM_HEADER in request.headers or KEY_HEADER in request.headers

    async def read(self, request: web.Request, what: str, limit: int) -> RepeatableRequest:
        """Return the parts of a request for `what`; raises as `read_object`, and for malformed headers."""
        is_resumable, sent = wants_resumable(request), find_key(request)
        data = await body.read_bytes(request, limit)
        value = await body.decode_object(data, LARGE_LIMITS)
        key = None
        if sent is not None:
            key = request_key(actor(request).user_id, sent, what, await _digest(data))
        return RepeatableRequest(value, key, is_resumable)

    async def stream(
        self, request: web.Request, asked: StreamedRequest[Asked], key: RequestKey | None
    ) -> web.StreamResponse:
        """Answer with a resumable stream; a repeated request gets the stream of the first one."""
        if key is None:
            return await self._resumable.serve(request, asked)
        start = partial(self._resumable.start, asked)
        return await self.started(request, start, asked.user_id, asked.edge, key)

    async def started(
        self,
        request: web.Request,
        start: Callable[[], Awaitable[str]],
        user_id: str,
        edge: StreamOpening,
        key: RequestKey | None,
    ) -> web.StreamResponse:
        """Answer with the stream whose id `start` returns; a repeated request gets that of the first one."""
        streams = self._resumable.streams
        if key is None:
            return await self._resumable.follow(request, await streams.open(await start(), user_id), edge)

        async def begin() -> StoredReply:
            return StoredReply(stream_id=await start())

        async def is_usable(reply: StoredReply) -> bool:
            return await streams.is_whole(reply.stream_id)

        reply = await self._replies.answer(key, begin, is_usable)
        reader = await streams.open(reply.stream_id, user_id)
        return await self._resumable.follow(request, reader, edge, replayed_headers(reply))

    async def whole(
        self, request: web.Request, key: RequestKey, work: Callable[[], Coroutine[Any, Any, StoredReply]]
    ) -> web.StreamResponse:
        """Answer with the reply of `work`, JSON, which goes on without its client, or with the stored one."""
        reply = await self._replies.answer(key, work)
        return body.raw_reply(request, reply.text.encode(), dict(replayed_headers(reply)))


async def _digest(data: bytes | bytearray) -> bytes:
    pace, found = LoopPacer(), hashlib.sha256()
    for start in range(0, len(data), SLICE_BYTES):
        found.update(memoryview(data)[start : start + SLICE_BYTES])
        await pace.turn()
    return found.digest()


def stored(data: bytes, headers: dict[str, str]) -> StoredReply:
    """Return a reply of encoded JSON."""
    return StoredReply(headers=headers, text=data.decode())
