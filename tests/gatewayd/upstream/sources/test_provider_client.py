import asyncio
from collections.abc import AsyncGenerator

import orjson
import pytest

from gatewayd import json_encoder
from gatewayd.catalog.interfaces import CallContext
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.failures import ProviderFailures
from gatewayd.upstream.sources.provider_client import ProviderClient, lacks_listing, listed_objects
from gatewayd.upstream.streams.sse import ChunkReader
from gatewayd.upstream.tools.identity import IdentityHeaders
from tests.fakes.providers.upstream import CUT, SILENCE, Reply, json_reply, openai_chunk, openai_stream, sse

KEY = "acme-0123456789-abcdefgh"


@pytest.fixture
async def exchange(fake, short):
    config = ProviderConfig("acme", SourceKind.OPENAI, fake.openai_url + "/", KEY, timeouts=short)
    opened = ProviderClient(config, {"X-Own": "1"})
    yield opened
    await opened.close()


def stream(exchange) -> AsyncGenerator:
    return exchange.chunks("/chat/completions", {"stream": True, "model": "m"}, ChunkReader())


async def drain(exchange) -> tuple[list[dict], GatewayError | None]:
    events = []
    try:
        async for chunk in stream(exchange):
            events += chunk.events
    except GatewayError as error:
        return events, error
    return events, None


async def test_post_sends_json_and_its_own_headers_only(exchange, fake):
    fake.script(json_reply({"a": 1}))
    assert await exchange.post("/x", {"é": [1]}) == (b'{"a":1}', {"a": 1})
    (request,) = fake.requests
    assert (request.path, request.json) == ("/v1/x", {"é": [1]})
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Own"] == "1"


@pytest.mark.parametrize(
    ("fields", "has_steps"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}] * 100}, False),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}] * 2000}, True),
        ({"metadata": {"x": "y" * 1_000_000}}, True),
        ({"messages": [{"role": "user", "content": "x" * 10_000}] * 60}, True),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, False),
        ({"input": [[1] * 2000, [2] * 2000]}, True),
    ],
    ids=["tools", "many tools", "a long text", "long messages", "parts", "tokens"],
)
async def test_a_request_is_encoded_in_steps_by_its_whole_size(
    exchange, fake, fields, has_steps, monkeypatch
):
    encoded, encode = [], json_encoder.encode

    async def steps(value):
        encoded.append(value)
        return await encode(value)

    monkeypatch.setattr(json_encoder, "encode", steps)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}
    fake.script(json_reply({"a": 1}))
    await exchange.post("/chat/completions", body)
    assert fake.requests[0].body == orjson.dumps(body)
    assert bool(encoded) == has_steps


async def test_providers_are_told_who_asks_only_when_configured(fake, short):
    context = CallContext("r", "u1", "Ada Löw", "ada@example.org", "user", chat_id="c1")
    for identity in (None, IdentityHeaders(), IdentityHeaders()):
        config = ProviderConfig("acme", SourceKind.OPENAI, fake.openai_url, timeouts=short, identity=identity)
        opened = ProviderClient(config, {"X-Own": "1"})
        fake.script(json_reply({"a": 1}), Reply(steps=openai_stream("hi")))
        await opened.post("/x", {}, context)
        reader = ChunkReader()
        assert [chunk async for chunk in opened.chunks("/y", {}, reader, None, context)]
        await opened.close()
    told = [
        {name for name in request.headers if name.startswith(("X-Open", "X-S"))} for request in fake.requests
    ]
    names = {f"X-OpenWebUI-{name}" for name in ("User-Name", "User-Id", "User-Email", "User-Role", "Chat-Id")}
    assert told == [set(), set()] + [names | {"X-Service-Chat-Id"}] * 4
    assert fake.requests[2].headers["X-OpenWebUI-User-Name"] == "Ada L%C3%B6w"
    assert fake.requests[2].headers["X-Own"] == "1"


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (
            Reply(steps=[b"<html>"], content_type="text/html"),
            ErrorKind.UPSTREAM_FAILED,
            "200 with an HTML page",
        ),
        (
            Reply(steps=[], content_type="application/json"),
            ErrorKind.UPSTREAM_FAILED,
            "200 with an empty body",
        ),
        (Reply(steps=[b"\xff{"], content_type="application/json"), ErrorKind.UPSTREAM_FAILED, "is not JSON"),
        (json_reply([1]), ErrorKind.UPSTREAM_FAILED, "is not a JSON object"),
        (json_reply(3), ErrorKind.UPSTREAM_FAILED, "is not a JSON object"),
        (json_reply({"error": {"message": "m", "code": 429}}), ErrorKind.RATE_LIMITED, "it reported: m"),
        (Reply(302, {"Location": "/y"}), ErrorKind.UPSTREAM_FAILED, "redirects are not followed"),
        (Reply(503, steps=[b"later"]), ErrorKind.UPSTREAM_UNREACHABLE, "503 (later)"),
        (Reply(400, steps=[b"half", CUT]), ErrorKind.INVALID_REQUEST, "400 (half)"),
        (Reply(400, steps=[b"x" * 200_000]), ErrorKind.INVALID_REQUEST, "400 (xxx"),
        (Reply(before=SILENCE), ErrorKind.TIMEOUT, "no first byte"),
        (Reply(steps=[b"{", SILENCE]), ErrorKind.TIMEOUT, "it was silent for 0.2 s"),
        (Reply(steps=[b"{", CUT]), ErrorKind.UPSTREAM_FAILED, "broke off"),
    ],
)
async def test_post_failures(exchange, fake, reply, kind, said):
    if reply.before:
        exchange._client._timeouts = type(exchange._client._timeouts)(connect=0.1, first_byte=0.1)
    fake.script(reply)
    with pytest.raises(GatewayError) as caught:
        await exchange.post("/x", {})
    assert caught.value.kind is kind
    assert said in caught.value.message
    assert caught.value.message.startswith("cannot get an answer from provider 'acme': ")


async def test_rate_limit_keeps_retry_after(exchange, fake):
    fake.script(json_reply({"error": {"message": "slow down"}}, 429, Retry_After="17"))
    with pytest.raises(GatewayError) as caught:
        await exchange.post("/x", {})
    assert (caught.value.kind, caught.value.retry_after) == (ErrorKind.RATE_LIMITED, 17)


async def test_refused_key_is_not_repeated(exchange, fake):
    fake.script(json_reply({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401))
    with pytest.raises(GatewayError) as caught:
        await exchange.post("/x", {})
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    assert caught.value.message.endswith("401 (Incorrect API key provided: [redacted])")


async def test_body_that_is_not_json(exchange):
    with pytest.raises(GatewayError) as caught:
        await exchange.post("/x", {"a": object()})
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


async def test_stream(exchange, fake):
    fake.script(Reply(steps=openai_stream(["a", "b"])))
    events, error = await drain(exchange)
    assert error is None
    assert [event["choices"][0]["delta"].get("content") for event in events] == ["a", "b", None]
    assert fake.requests[0].path == "/v1/chat/completions"


async def test_connection_is_used_again_after_a_stream(exchange, fake):
    for _ in range(3):
        assert (await drain(exchange))[1] is None
    assert len({request.peer for request in fake.requests}) == 1


@pytest.mark.parametrize("kept", ["refused", "html", "hang", "error first", "garbage"])
async def test_failing_before_the_first_chunk(exchange, fake, kept):
    replies = {
        "refused": Reply(500, steps=[b"no"]),
        "html": Reply(steps=[b"<html>"], content_type="text/html"),
        "hang": Reply(steps=[SILENCE]),
        "error first": Reply(steps=[sse({"error": {"message": "no"}})]),
        "garbage": Reply(steps=[b"data: \xff\xfe\n\n"]),
    }
    fake.script(replies[kept])
    events, error = await drain(exchange)
    assert events == []
    assert error is not None
    assert error.kind is (ErrorKind.TIMEOUT if kept == "hang" else ErrorKind.UPSTREAM_FAILED)


@pytest.mark.parametrize(
    ("rest", "kind", "said"),
    [
        ([], ErrorKind.UPSTREAM_FAILED, "ended before it was complete"),
        ([SILENCE], ErrorKind.TIMEOUT, "silent for 0.2 s"),
        ([CUT], ErrorKind.UPSTREAM_FAILED, "broke off"),
        ([b"data: garbage\n\n"], ErrorKind.UPSTREAM_FAILED, "an event that is not JSON"),
        ([b'data: {"a": "\xff"}\n\n'], ErrorKind.UPSTREAM_FAILED, "an event that is not JSON"),
        ([b"data: " + b"x" * 1_100_000], ErrorKind.UPSTREAM_FAILED, "over 1048576 bytes"),
        (
            [sse({"error": {"message": "no", "type": "overloaded_error"}})],
            ErrorKind.UPSTREAM_UNREACHABLE,
            "no",
        ),
        ([b'data: {"error": "no"}'], ErrorKind.UPSTREAM_FAILED, "it reported: no"),
    ],
)
async def test_failing_after_the_first_chunk(exchange, fake, rest, kind, said):
    fake.script(Reply(steps=[sse(openai_chunk(content="a")), *rest]))
    events, error = await drain(exchange)
    assert [event["choices"][0]["delta"] for event in events] == [{"content": "a"}]
    assert error is not None
    assert error.kind is kind
    assert said in error.message


async def test_stream_without_its_last_blank_line(exchange, fake):
    fake.script(Reply(steps=[sse(openai_chunk(finish_reason="stop")).rstrip()]))
    events, error = await drain(exchange)
    assert error is None
    assert len(events) == 1


async def test_an_answer_that_was_to_be_streamed_comes_whole(exchange, fake):
    fake.script(json_reply({"choices": []}), json_reply({"error": "no"}))
    seen: list[dict] = []

    def whole(answer):
        seen.append(answer)
        return "chunk"

    chunks = exchange.chunks("/x", {}, ChunkReader(), whole)
    assert [chunk async for chunk in chunks] == ["chunk"]
    assert seen == [{"choices": []}]
    with pytest.raises(GatewayError, match="it reported: no"):
        await anext(exchange.chunks("/x", {}, ChunkReader(), whole))


async def test_aclose_closes_the_connection_of_a_silent_upstream(exchange, fake):
    fake.script(Reply(steps=[sse(openai_chunk(content="a")), SILENCE]))
    chunks = stream(exchange)
    await anext(chunks)
    await chunks.aclose()
    await asyncio.wait_for(fake.closed.wait(), 5)


@pytest.mark.parametrize("steps", [[SILENCE], [sse(openai_chunk(content="a")), SILENCE]])
async def test_cancelling_closes_the_connection_of_a_silent_upstream(fake, steps):
    config = ProviderConfig("acme", SourceKind.OPENAI, fake.openai_url)
    exchange = ProviderClient(config, {})
    fake.script(Reply(steps=steps))
    task = asyncio.create_task(drain(exchange))
    await fake.silent.wait()
    task.cancel()
    await asyncio.wait_for(fake.closed.wait(), 5)
    with pytest.raises(asyncio.CancelledError):
        await task
    await exchange.close()


async def test_cancelling_before_the_status_line(fake):
    config = ProviderConfig("acme", SourceKind.OPENAI, fake.openai_url)
    exchange = ProviderClient(config, {})
    fake.script(Reply(before=SILENCE))
    task = asyncio.create_task(exchange.post("/x", {}))
    await fake.silent.wait()
    task.cancel()
    await asyncio.wait_for(fake.closed.wait(), 5)
    with pytest.raises(asyncio.CancelledError):
        await task
    await exchange.close()


def test_objects():
    failures = ProviderFailures("acme")
    assert listed_objects({"data": [{"a": 1}, 3]}, "data", failures) == [{"a": 1}]
    assert listed_objects([{"a": 1}], "data", failures) == [{"a": 1}]
    with pytest.raises(GatewayError, match="no 'data'"):
        listed_objects({"models": []}, "data", failures)


def test_lacks_listing():
    assert lacks_listing(ProviderFailures("acme").from_answer(404, {}, b""))
    assert not lacks_listing(ProviderFailures("acme").from_answer(401, {}, b""))
