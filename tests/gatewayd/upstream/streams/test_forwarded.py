"""Answers that are passed on as they come."""

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.provider_client import ProviderClient
from tests.fakes.providers.upstream import CUT, SILENCE, FakeUpstream, Reply, json_reply, sse


@pytest.fixture
async def fake():
    async with FakeUpstream() as made:
        yield made


@pytest.fixture
async def exchange(fake):
    made = ProviderClient(
        ProviderConfig("p", SourceKind.OPENAI, fake.openai_url), {"Authorization": "Bearer k"}
    )
    yield made
    await made.close()


async def test_the_bytes_come_as_they_were_sent(fake, exchange):
    fake.script(Reply(201, steps=[b'{"one" :\n', b"2.0}"], content_type="application/json"))
    reply = await exchange.forward("POST", "/any", {"model": "m"})
    assert (reply.status, reply.content_type) == (201, "application/json")
    assert b"".join([read async for read in reply]) == b'{"one" :\n2.0}'
    await reply.aclose()
    assert fake.requests[0].json == {"model": "m"}


@pytest.mark.parametrize(
    ("content_type", "step", "said"),
    [
        ("application/json", b"x", "its answer is not JSON"),
        ("application/json", b'{"error": "no, canary-key-0123"}', r"it reported: no, \[redacted\]"),
        ("text/event-stream", b"data: x\n\n", "an event that is not JSON"),
        ("text/event-stream; charset=utf-8", b'data: {"type":"error","message":"no"}\n\n', "reported: no"),
    ],
)
async def test_what_is_no_answer_raises_and_closes(fake, content_type, step, said):
    config = ProviderConfig("p", SourceKind.OPENAI, fake.openai_url, key="canary-key-0123")
    exchange = ProviderClient(config, {})
    fake.script(Reply(steps=[step], headers={"Content-Type": content_type}, content_type=""))
    reply = await exchange.forward("POST", "/any", {})
    with pytest.raises(GatewayError, match=f"provider 'p': .*{said}"):
        await anext(reply)
    await exchange.close()


async def test_the_key_is_not_passed_on(fake):
    exchange = ProviderClient(ProviderConfig("p", SourceKind.OPENAI, fake.openai_url, key="canary"), {})
    fake.script(json_reply({"said": "canary"}))
    reply = await exchange.forward("POST", "/any", {})
    assert await anext(reply) == b'{"said":"[redacted]"}'
    await exchange.close()


async def test_a_refusal_names_the_provider(fake, exchange):
    fake.script(json_reply({"error": "no such thing"}, 404))
    with pytest.raises(GatewayError, match=r"provider 'p': it answered 404 \(no such thing\)") as caught:
        await exchange.forward("GET", "/any", None)
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_cut_answer_raises(fake, exchange):
    fake.script(Reply(steps=[sse({"a": 1}), b"data: {", CUT]))
    reply = await exchange.forward("POST", "/any", {})
    assert await anext(reply) == b'data: {"a":1}\n\n'
    with pytest.raises(GatewayError, match="broke off") as caught:
        async for _ in reply:
            pass
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    await reply.aclose()


async def test_leaving_closes_the_connection(fake, exchange):
    fake.script(Reply(steps=[sse({"a": 1}), *[sse({"a": "x" * 65536})] * 400]))
    reply = await exchange.forward("POST", "/any", {})
    assert await anext(reply)
    await reply.aclose()
    await fake.closed.wait()


async def test_nothing_is_waited_for_after_the_end(fake, exchange):
    fake.script(Reply(steps=[sse({"a": 1}), sse(b"[DONE]"), SILENCE]))
    reply = await exchange.forward("POST", "/any", {})
    assert b"".join([read async for read in reply]) == b'data: {"a":1}\n\ndata: [DONE]\n\n'
    await fake.closed.wait()
    with pytest.raises(StopAsyncIteration):
        await anext(reply)
