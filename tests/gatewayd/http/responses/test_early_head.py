"""Tests for gatewayd.http.responses.early_head and what gatewayd.http.responses.streams makes of it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from gatewayd.completions.records import DONE, CompletionChunk
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.responses.streams import KEEP_ALIVE_FRAME, AnswerStreams, OpenAiFrames
from gatewayd.http.routes import Route, RouteAccess, RouteDialect
from tests.fakes.http.public_app import serving

FIRST = b'data: {"n":1}\n\n'
REFUSED = GatewayError(
    ErrorKind.RATE_LIMITED, "cannot get an answer from provider 'p': slow down", retry_after=7
)


@dataclass
class Asked:
    """An answer that is there when `go` is set, or a failure in its place."""

    streams: AnswerStreams
    failure: GatewayError | None = None
    late_failure: GatewayError | None = None
    go: asyncio.Event = field(default_factory=asyncio.Event)
    has_ended: bool = False

    async def answer(self) -> AsyncIterator[CompletionChunk]:
        try:
            await self.go.wait()
        finally:
            self.has_ended = True
        if self.failure is not None:
            raise self.failure
        return self.chunks()

    async def chunks(self) -> AsyncIterator[CompletionChunk]:
        yield CompletionChunk(raw=FIRST)

    def row(self, path: str = "/x") -> Route:
        async def follow(
            request: web.Request, chunks: AsyncIterator[CompletionChunk], begun: web.StreamResponse | None
        ) -> web.StreamResponse:
            if self.late_failure is not None:
                raise self.late_failure
            return await self.streams.send(request, chunks, OpenAiFrames(), {}, begun=begun)

        async def handle(request: web.Request) -> web.StreamResponse:
            return await self.streams.begin(
                request, self.answer(), OpenAiFrames(), lambda chunks, begun: follow(request, chunks, begun)
            )

        return Route(
            "GET", path, handle, RouteAccess.PUBLIC, "Stream", dialect=RouteDialect.OPENAI, interruptible=True
        )


def soon() -> AnswerStreams:
    return AnswerStreams(seconds=0.02, head_seconds=0.02)


async def test_a_late_answer_has_its_head_and_keep_alives() -> None:
    asked = Asked(soon())
    async with serving([asked.row()]) as client:
        reply = await asyncio.wait_for(client.get("/x"), 5)
        assert reply.status == 200
        assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert "X-Request-Id" in reply.headers
        begun = await asyncio.wait_for(reply.content.readexactly(3 * len(KEEP_ALIVE_FRAME)), 5)
        asked.go.set()
        rest = await reply.read()
    assert begun == 3 * KEEP_ALIVE_FRAME
    assert rest.replace(KEEP_ALIVE_FRAME, b"") == FIRST + DONE


@pytest.mark.parametrize("is_late", [False, True], ids=["of the answer", "of its rendering"])
async def test_a_late_failure_is_in_band(is_late: bool, caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked(soon(), **{"late_failure" if is_late else "failure": REFUSED})
    async with serving([asked.row()]) as client:
        reply = await asyncio.wait_for(client.get("/x"), 5)
        asked.go.set()
        body = await reply.read()
    assert reply.status == 200
    frame = body.replace(KEEP_ALIVE_FRAME, b"")
    assert frame.startswith(b'data: {"error":{"message":"cannot get an answer from provider')
    assert b'"code":"rate_limited"' in frame
    assert DONE not in body
    assert "stream broke: cannot get an answer from provider 'p': slow down" in caplog.messages


async def test_a_failure_in_time_is_a_status() -> None:
    asked = Asked(AnswerStreams(), failure=REFUSED)
    asked.go.set()
    async with serving([asked.row()]) as client:
        reply = await client.get("/x")
        assert reply.status == 429
        assert reply.headers["Retry-After"] == "7"


async def test_an_answer_in_time_has_no_keep_alive() -> None:
    asked = Asked(AnswerStreams())
    asked.go.set()
    async with serving([asked.row()]) as client:
        assert await (await client.get("/x")).read() == FIRST + DONE


async def test_without_a_time_nothing_is_sent_early() -> None:
    asked = Asked(AnswerStreams(seconds=0.01, head_seconds=None), failure=REFUSED)
    async with serving([asked.row()]) as client:
        asyncio.get_running_loop().call_later(0.1, asked.go.set)
        assert (await client.get("/x")).status == 429


async def test_a_client_that_leaves_while_it_waits_ends_the_work() -> None:
    asked = Asked(soon())
    async with serving([asked.row()]) as client:
        reply = await asyncio.wait_for(client.get("/x"), 5)
        reply.close()
        async with asyncio.timeout(5):
            while not asked.has_ended:
                await asyncio.sleep(0.01)


async def test_a_stop_is_told_in_the_stream_or_its_status() -> None:
    asked, quick = Asked(soon()), Asked(AnswerStreams())
    async with serving([asked.row(), quick.row("/y")]) as client:
        reply = await asyncio.wait_for(client.get("/x"), 5)
        waiting = asyncio.create_task(client.get("/y"))
        asked.streams.stop()
        body = await reply.read()
        while not quick.streams.is_waiting:
            await asyncio.sleep(0.01)
        quick.streams.stop()
        assert (await waiting).status == 503
    assert asked.has_ended
    assert quick.has_ended
    assert b'data: {"error":{"message":"cannot get an answer: the gateway stops"' in body
    assert not asked.streams.is_waiting


async def test_a_client_of_the_older_protocol_is_served_too() -> None:
    asked = Asked(soon())
    async with serving([asked.row()]) as client:
        reply = await asyncio.wait_for(client.get("/x", headers={"Connection": "close"}), 5)
        asked.go.set()
        assert (await reply.read()).replace(KEEP_ALIVE_FRAME, b"") == FIRST + DONE
