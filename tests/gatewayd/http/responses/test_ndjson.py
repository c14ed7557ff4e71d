"""Tests for gatewayd.http.responses.ndjson."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import orjson
import pytest
from aiohttp import ClientError, web

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.responses.ndjson import MAX_HELD_BYTES, AnswerEnding, pass_lines, pass_whole
from gatewayd.http.routes import Handler, Route, RouteAccess, RouteDialect
from tests.fakes.http.public_app import serving

BROKEN = GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot go on")


@dataclass
class Scripted:
    """A runtime's answer in memory."""

    steps: Sequence[bytes | GatewayError]
    content_type: str = ""
    status: int = 200
    closed: int = 0
    _at: int = field(default=0)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._at >= len(self.steps):
            raise StopAsyncIteration
        step = self.steps[self._at]
        self._at += 1
        if isinstance(step, GatewayError):
            raise step
        return step

    async def aclose(self) -> None:
        self.closed += 1


def row(handler: Handler) -> Sequence[Route]:
    return [Route("GET", "/", handler, RouteAccess.PUBLIC, "Pass", dialect=RouteDialect.OLLAMA)]


def passing(answer: Scripted, at_end: list[str] | None = None) -> Sequence[Route]:
    async def end() -> None:
        if at_end is not None:
            at_end.append("over")

    async def handler(request: web.Request) -> web.StreamResponse:
        return await pass_lines(request, answer, AnswerEnding("near"), end)

    return row(handler)


def passing_whole(answer: Scripted) -> Sequence[Route]:
    async def handler(request: web.Request) -> web.StreamResponse:
        return await pass_whole(request, answer)

    return row(handler)


@pytest.mark.parametrize(
    "last", [b'{"done":true}\n', b'{"a":1}\n{"done": true}\n\n', b'{"error":"x"}', b'{"done":true}']
)
def test_good_ends(last: bytes) -> None:
    AnswerEnding("near").check(last)


@pytest.mark.parametrize("last", [b"", b"\n", b'{"done":false}\n', b'{"done":true}\n{"a":1}\n', b"[1]", b"x"])
def test_bad_ends(last: bytes) -> None:
    with pytest.raises(GatewayError, match="provider 'near': it ended before it was complete"):
        AnswerEnding("near").check(last)


@pytest.mark.parametrize("lines", [b'{"done":true}\n', b'{"a":1}\n{"a":1,"done":true}\n{"b":1}\n'])
def test_an_end_may_have_more_behind_it(lines: bytes) -> None:
    assert AnswerEnding("near").is_in(lines)


@pytest.mark.parametrize("lines", [b"", b'{"done":false}\n', b'{"call":{"done":true}}\n', b'["done":true]\n'])
def test_no_end_is_seen_where_none_is(lines: bytes) -> None:
    assert not AnswerEnding("near").is_in(lines)


async def test_lines_after_the_end_pass() -> None:
    answer = Scripted([b'{"done":true}\n', b'{"a":1}\n'])
    async with serving(passing(answer, [])) as client:
        reply = await client.get("/")
        assert await reply.read() == b'{"done":true}\n{"a":1}\n'


async def test_lines_pass_and_the_end_follows() -> None:
    over: list[str] = []
    answer = Scripted([b'{"a":1}\n', b'{"done":true}\n'], content_type="application/json", status=201)
    async with serving(passing(answer, over)) as client:
        reply = await client.get("/")
        assert (reply.status, reply.content_type) == (201, "application/json")
        assert await reply.read() == b'{"a":1}\n{"done":true}\n'
        assert reply.headers["X-Request-Id"]
        assert over == ["over"]
        assert answer.closed == 1


async def test_a_failure_after_the_first_line_is_a_line() -> None:
    over: list[str] = []
    answer = Scripted([b'{"a":1}\n', BROKEN])
    async with serving(passing(answer, over)) as client:
        reply = await client.get("/")
        assert reply.content_type == "application/x-ndjson"
        assert [orjson.loads(line) for line in (await reply.read()).splitlines()] == [
            {"a": 1},
            {"error": "cannot go on", "detail": "cannot go on"},
        ]
        assert over == ["over"]


async def test_a_failure_before_the_first_line_is_a_status() -> None:
    answer = Scripted([BROKEN])
    async with serving(passing(answer)) as client:
        assert (await client.get("/")).status == 502
        assert answer.closed == 1


async def test_a_whole_answer_has_a_length() -> None:
    async with serving(passing_whole(Scripted([b"{", b"}"]))) as client:
        reply = await client.get("/")
        assert (reply.content_type, reply.content_length) == ("application/json", 2)


async def test_a_large_answer_is_not_held_back() -> None:
    part = b"x" * (MAX_HELD_BYTES // 2)
    async with serving(passing_whole(Scripted([part] * 5))) as client:
        reply = await client.get("/")
        assert reply.content_length is None
        assert await reply.read() == part * 5


async def test_a_large_answer_that_breaks_off_is_cut() -> None:
    answer = Scripted([b"x" * (MAX_HELD_BYTES + 1), BROKEN])
    async with serving(passing_whole(answer)) as client:
        reply = await client.get("/")
        with pytest.raises(ClientError):
            await reply.read()
        assert answer.closed == 1
