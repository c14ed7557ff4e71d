"""Answers that are passed on as they come."""

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.upstream.config import ProviderConfig, SourceKind
from gatewayd.upstream.exchange import Exchange
from tests.fakes.upstream import CUT, FakeUpstream, Reply, json_reply


@pytest.fixture
async def fake():
    async with FakeUpstream() as made:
        yield made


@pytest.fixture
async def exchange(fake):
    made = Exchange(ProviderConfig("p", SourceKind.OPENAI, fake.openai_url), {"Authorization": "Bearer k"})
    yield made
    await made.close()


async def test_the_bytes_come_as_they_were_sent(fake, exchange):
    fake.script(Reply(steps=[b"one\n", b"two"], content_type="application/x-ndjson"))
    reply = await exchange.forward("POST", "/any", {"model": "m"})
    assert (reply.status, reply.content_type) == (200, "application/x-ndjson")
    assert b"".join([read async for read in reply]) == b"one\ntwo"
    await reply.aclose()
    assert fake.requests[0].json == {"model": "m"}


async def test_a_refusal_names_the_provider(fake, exchange):
    fake.script(json_reply({"error": "no such thing"}, 404))
    with pytest.raises(GatewayError, match=r"provider 'p': it answered 404 \(no such thing\)") as caught:
        await exchange.forward("GET", "/any", None)
    assert caught.value.kind is Kind.NOT_FOUND


async def test_a_cut_answer_raises(fake, exchange):
    fake.script(Reply(steps=[b"one", CUT]))
    reply = await exchange.forward("POST", "/any", {})
    with pytest.raises(GatewayError, match="broke off") as caught:
        async for _ in reply:
            pass
    assert caught.value.kind is Kind.UPSTREAM_FAILED
    await reply.aclose()


async def test_leaving_closes_the_connection(fake, exchange):
    fake.script(Reply(steps=[b"one", *[b"x" * 65536] * 400]))
    reply = await exchange.forward("POST", "/any", {})
    assert await anext(reply)
    await reply.aclose()
    await fake.closed.wait()
