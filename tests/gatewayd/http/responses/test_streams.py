"""Tests for gatewayd.http.responses.streams."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from gatewayd.completions.records import DONE, Completion, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.responses.streams import (
    KEEP_ALIVE_FRAME,
    AnswerStreams,
    OpenAiFrames,
    openai_frames,
    send_whole,
)
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.pipeline.records import ChatAnswer, ChatRequest
from tests.fakes.http.public_app import serving
from tests.fakes.providers.upstream import openai_completion

FIRST, SECOND = b'data: {"n":1}\n\n', b'data: {"n":2}\n\n'


class Source:
    """Gives chunks, waits for `go` between the two, and may fail."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.go = asyncio.Event()
        self.failure = failure
        self.is_closed = False

    async def chunks(self) -> AsyncIterator[CompletionChunk]:
        try:
            yield CompletionChunk(raw=FIRST)
            await self.go.wait()
            if self.failure is not None:
                raise self.failure
            yield CompletionChunk(raw=SECOND)
        finally:
            self.is_closed = True

    def row(self, seconds: float) -> Route:
        streams = AnswerStreams(seconds=seconds)

        async def handle(request: web.Request) -> web.StreamResponse:
            return await streams.send(request, self.chunks(), OpenAiFrames(), {}, b"data: {}\n\n")

        return Route("GET", "/x", handle, RouteAccess.PUBLIC, "Stream", interruptible=True)


async def read_until(source: Source, mark: bytes, seconds: float) -> bytes:
    """Read up to `mark`, let the source go on, and return everything."""
    async with serving([source.row(seconds)]) as made:
        reply = await made.get("/x")
        body = b""
        while mark not in body:
            body += await asyncio.wait_for(reply.content.readany(), 5)
        source.go.set()
        return body + await reply.read()


async def test_a_silent_source_is_bridged_by_comments() -> None:
    source = Source()
    body = await read_until(source, KEEP_ALIVE_FRAME + KEEP_ALIVE_FRAME, 0.02)
    assert body.startswith(b"data: {}\n\n" + FIRST + KEEP_ALIVE_FRAME + KEEP_ALIVE_FRAME)
    assert body.replace(KEEP_ALIVE_FRAME, b"") == b"data: {}\n\n" + FIRST + SECOND + DONE
    assert source.is_closed


async def test_a_source_that_speaks_needs_none() -> None:
    body = await read_until(Source(), FIRST, 15)
    assert body == b"data: {}\n\n" + FIRST + SECOND + DONE


async def test_a_failure_is_the_last_frame(caplog: pytest.LogCaptureFixture) -> None:
    source = Source(
        GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot get an answer from provider 'p': it broke")
    )
    body = await read_until(source, FIRST, 15)
    assert DONE not in body
    assert b"provider 'p'" in body.rpartition(b"data: ")[2]
    assert [record.message for record in caplog.records] == [
        "stream broke: cannot get an answer from provider 'p': it broke"
    ]
    assert source.is_closed


async def test_a_client_that_leaves_releases_the_source() -> None:
    source = Source()
    async with serving([source.row(15)]) as client:
        reply = await client.get("/x")
        await reply.content.readany()
        reply.close()
        async with asyncio.timeout(5):
            while not source.is_closed:
                await asyncio.sleep(0.01)


async def test_a_finished_answer_as_a_stream() -> None:
    answer = ChatAnswer(completion=Completion(body=openai_completion("hello")))
    chat = ChatRequest("m", {"stream_options": {"include_usage": True}}, stream=True)

    async def handle(request: web.Request) -> web.StreamResponse:
        return await send_whole(request, openai_frames(answer, chat), {"X-A": "1"})

    async with serving([Route("GET", "/x", handle, RouteAccess.PUBLIC, "Whole")]) as client:
        reply = await client.get("/x")
        body = await reply.read()
    assert reply.headers["X-A"] == "1"
    assert b"hello" in body
    assert b'"total_tokens":5' in body
    assert body.endswith(DONE)
