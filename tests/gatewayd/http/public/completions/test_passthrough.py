"""Tests for gatewayd.http.public.completions.passthrough, from client to provider."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest
from openai import AsyncOpenAI, NotFoundError, RateLimitError

from gatewayd.deferred_writes import DeferredWrites
from gatewayd.http.public.completions.passthrough import ForwardingRoutes
from gatewayd.http.responses.streams import KEEP_ALIVE_FRAME, AnswerStreams
from gatewayd.http.routes import BASES
from gatewayd.pipeline.passthrough import RequestForwarder
from gatewayd.pipeline.pipeline import NoFilters
from gatewayd.pipeline.responses.ids import ResponseIds
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.streams.checks import MAX_HELD_BYTES
from tests.fakes.http.public_app import Client, bearer
from tests.fakes.providers.catalog import three_providers
from tests.fakes.providers.upstream import CUT, SILENCE, FakeUpstream, Reply, Step, json_reply, sse
from tests.fakes.storage.response_ids import MemoryResponseIds

PATHS = ("/completions",)
ADMIN = bearer("admin")


@pytest.fixture
async def gateway() -> AsyncIterator[tuple[FakeUpstream, Client]]:
    async with three_providers(
        lambda catalog: ForwardingRoutes(
            RequestForwarder(
                catalog, NoFilters(), ResponseIds(MemoryResponseIds(), DeferredWrites(TaskRegistry()))
            ),
            body_limit=1_000_000,
            streams=AnswerStreams(head_seconds=0.3),
        ).routes()
    ) as made:
        yield made


@pytest.fixture
async def fake(gateway: tuple[FakeUpstream, Client]) -> FakeUpstream:
    return gateway[0]


@pytest.fixture
async def client(gateway: tuple[FakeUpstream, Client]) -> Client:
    return gateway[1]


@pytest.fixture
async def openai(client: Client) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key="admin", base_url=str(client.make_url("/v1")), max_retries=0) as made:
        yield made


def text(words: str) -> dict[str, Any]:
    choice = {"index": 0, "text": words, "logprobs": None, "finish_reason": "stop"}
    return {"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}


@pytest.mark.parametrize("path", [base + path for base in BASES for path in PATHS])
async def test_answers_under_every_alias_to_those_who_may(
    client: Client, fake: FakeUpstream, path: str
) -> None:
    raw = b' {"any" : "thing"}'
    fake.script(Reply(steps=[raw], content_type="application/json"))
    body = {"model": "acme.m", "odd": [None, 1.5]}
    assert (await client.post(path, json=body)).status == 401
    assert (await client.post(path, json=body, headers=bearer("pending"))).status == 403
    assert (await client.post(path, json=body, headers=bearer("user"))).status == 404
    reply = await client.post(path, json=body, headers=ADMIN)
    assert (reply.status, reply.content_type, await reply.read()) == (200, "application/json", raw)
    (request,) = fake.requests
    assert request.path == "/v1/" + path.rpartition("/")[2]
    assert request.json == {"model": "m", "odd": [None, 1.5]}


async def test_official_client_completions(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    fake.script(json_reply(text("whole")))
    answer = await openai.completions.create(model="acme.m", prompt="a", max_tokens=5)
    assert (answer.choices[0].text, answer.model) == ("whole", "m")
    fake.script(Reply(steps=[sse(text("in ")), sse(text("pieces")), sse(b"[DONE]")]))
    stream = await openai.completions.create(model="acme.m", prompt="a", stream=True)
    assert "".join([chunk.choices[0].text async for chunk in stream]) == "in pieces"
    assert [request.json.get("stream") for request in fake.requests] == [None, True]


async def test_a_local_runtime_has_the_endpoint_too(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    fake.script(json_reply(text("local")))
    answer = await openai.completions.create(model="local.m", prompt="a")
    assert answer.choices[0].text == "local"
    (request,) = fake.requests
    assert (request.path, request.json) == ("/v1/completions", {"model": "m", "prompt": "a"})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_limits_of_the_provider_reach_the_caller(
    client: Client, fake: FakeUpstream, *, stream: bool
) -> None:
    limits = {"x-ratelimit-limit-requests": "60", "x-request-id": "p1", "set-cookie": "a=b"}
    steps = [sse(text("a")), sse(b"[DONE]")] if stream else [b"{}"]
    fake.script(Reply(200, limits, steps, content_type="text/event-stream" if stream else "application/json"))
    body = {"model": "acme.m", "prompt": "x", "stream": stream}
    reply = await client.post("/v1/completions", json=body, headers=ADMIN)
    assert (reply.status, reply.headers["x-ratelimit-limit-requests"]) == (200, "60")
    assert reply.headers["x-provider-request-id"] == "p1"
    assert "set-cookie" not in reply.headers
    assert reply.headers["x-request-id"] != "p1"


async def test_events_pass_as_they_are(client: Client, fake: FakeUpstream) -> None:
    steps: list[bytes | Step] = [
        b": hm\n\nevent: x.y\r",
        b'\ndata: {"type" : "x.y",\t"a": 1.50}\r\n\r\nid: 4\n',
    ]
    steps += [b"data: [DO", b"NE]\n\ndata: late\n\n"]
    fake.script(Reply(201, steps=steps, content_type="text/event-stream"))
    reply = await client.post("/api/completions", json={"model": "acme.m", "stream": True}, headers=ADMIN)
    assert (reply.status, reply.content_type) == (201, "text/event-stream")
    assert reply.headers["X-Accel-Buffering"] == "no"
    assert await reply.read() == b'event: x.y\ndata: {"type" : "x.y",\t"a": 1.50}\n\ndata: [DONE]\n\n'


async def test_the_endpoint_may_be_missing(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    with pytest.raises(NotFoundError) as caught:
        await openai.completions.create(model="claude.m", prompt="a")
    assert caught.value.code == "endpoint_not_found"
    assert fake.requests == []
    fake.script(
        json_reply({"detail": "Not Found"}, 404), Reply(steps=[b"<html>hi</html>"], content_type="text/html")
    )
    for _ in range(2):
        with pytest.raises(NotFoundError) as caught:
            await openai.completions.create(model="acme.m", prompt="a")
        assert caught.value.code == "endpoint_not_found"
        assert "'acme'" in caught.value.message


async def test_a_refusal_is_a_status_that_names_the_provider(openai: AsyncOpenAI, fake: FakeUpstream) -> None:
    fake.script(json_reply({"error": {"message": "slow down"}}, 429, Retry_After="3"))
    with pytest.raises(RateLimitError, match=r"'acme'.*slow down") as caught:
        await openai.completions.create(model="acme.m", prompt="a", stream=True)
    assert caught.value.response.headers["Retry-After"] == "3"


@pytest.mark.parametrize("content_type", ["text/event-stream", "application/json"])
async def test_a_break_before_the_first_byte_is_a_status(
    client: Client, fake: FakeUpstream, content_type: str
) -> None:
    fake.script(Reply(steps=[CUT], content_type=content_type))
    reply = await client.post("/v1/completions", json={"model": "acme.m"}, headers=ADMIN)
    assert reply.status == 502
    assert "'acme'" in (await reply.json())["error"]["message"]


async def test_a_broken_stream_ends_with_an_error_in_band(client: Client, fake: FakeUpstream) -> None:
    whole = sse(text("a"))
    fake.script(Reply(steps=[whole + b'data: {"cho', SILENCE, CUT]))
    reply = await client.post("/v1/completions", json={"model": "acme.m", "stream": True}, headers=ADMIN)
    assert await reply.content.readexactly(len(whole)) == whole
    fake.release.set()
    frame = orjson.loads((await reply.read()).removeprefix(b"data: "))
    assert frame["error"]["code"] == "upstream_failed"
    assert "'acme'" in frame["error"]["message"]


async def test_a_broken_whole_answer_is_a_status(client: Client, fake: FakeUpstream) -> None:
    fake.script(Reply(steps=[b'{"cho', CUT], content_type="application/json"))
    reply = await client.post("/v1/completions", json={"model": "acme.m"}, headers=ADMIN)
    assert reply.status == 502
    assert "'acme'" in (await reply.json())["error"]["message"]


async def test_a_long_answer_that_breaks_off_cuts_the_connection(client: Client, fake: FakeUpstream) -> None:
    start = b'{"a": "' + b"x" * MAX_HELD_BYTES
    fake.script(Reply(steps=[start, SILENCE, CUT], content_type="application/json"))
    reply = await client.post("/v1/completions", json={"model": "acme.m"}, headers=ADMIN)
    assert await reply.content.readexactly(len(start)) == start
    fake.release.set()
    with pytest.raises(aiohttp.ClientPayloadError):
        await reply.read()


async def test_leaving_closes_the_providers_connection(client: Client, fake: FakeUpstream) -> None:
    fake.script(Reply(steps=[sse(text("a")), SILENCE]))
    reply = await client.post("/v1/completions", json={"model": "acme.m", "stream": True}, headers=ADMIN)
    await reply.content.readany()
    reply.close()
    await asyncio.wait_for(fake.closed.wait(), 1)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(before=SILENCE, steps=[sse({"a": 1}, b"[DONE]")]), b'data: {"a":1}'),
        (Reply(429, before=SILENCE, steps=[b'{"error": "slow"}']), b'"code":"rate_limit_exceeded"'),
        (
            Reply(before=SILENCE, steps=[b'{"a": 1}'], content_type="application/json"),
            b"the provider sent none",
        ),
    ],
    ids=["stream", "failure", "whole"],
)
async def test_a_late_stream_has_its_head(
    fake: FakeUpstream, client: Client, reply: Reply, expected: bytes
) -> None:
    fake.script(reply)
    body = {"model": "acme.m", "prompt": "x", "stream": True}
    answer = await asyncio.wait_for(client.post("/v1/completions", json=body, headers=ADMIN), 5)
    assert answer.status == 200
    fake.release.set()
    found = await answer.read()
    assert found.startswith(KEEP_ALIVE_FRAME)
    assert expected in found
