import logging
from typing import Any

import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.errors import GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.key_ring import KeyRing
from gatewayd.upstream.sources.provider_client import ProviderClient
from gatewayd.upstream.streams.sse import ChunkReader
from tests.fakes.providers.upstream import Reply, json_reply

SECRETS = ("first-secret-1", "second-secret-2", "third-secret-3")


def test_keys_in_turn_and_at_rest():
    now = [0.0]
    ring = KeyRing(["a", "b", "c"], lambda: now[0])
    assert [ring.take() for _ in range(4)] == ["a", "b", "c", "a"]
    assert ring.rest("b", 60)
    assert [ring.take() for _ in range(3)] == ["c", "a", "c"]
    assert ring.rest("c", 30)
    assert not ring.rest("a", 90)
    assert [ring.take() for _ in range(2)] == ["c", "c"]
    now[0] = 61.0
    assert sorted(ring.take() for _ in range(4)) == ["b", "b", "c", "c"]


@pytest.fixture
async def exchange(fake, short):
    config = ProviderConfig(
        "acme",
        SourceKind.OPENAI,
        fake.openai_url,
        SECRETS[0],
        keys=SECRETS[1:],
        headers=(("X-Team", "our-secret-team"), ("X-Tier", "a")),
        timeouts=short,
    )
    opened = ProviderClient(config, config.key_headers(SECRETS[0]))
    yield opened
    await opened.close()


def used(fake):
    return [
        SECRETS.index(request.headers["Authorization"].removeprefix("Bearer ")) for request in fake.requests
    ]


class Content:
    """A body in pieces."""

    media_type = "text/plain"
    length = None
    is_spent = False

    async def pieces(self):
        yield b"a"


async def test_an_upload_is_sent_with_one_key_only(exchange, fake):
    context = CallContext("r", "u")
    fake.script(json_reply({"error": {"message": "no"}}, 401))
    with pytest.raises(GatewayError):
        await exchange.exchange("/audio/transcriptions", Content(), context)
    for _ in range(3):
        fake.script(json_reply({"text": "hi"}))
        await (await exchange.exchange("/audio/transcriptions", Content(), context)).aclose()
    assert used(fake) == [0, 1, 2, 1]
    assert {request.body for request in fake.requests} == {b"a"}


async def test_nothing_is_sent_at_once(exchange, fake):
    context, called = CallContext("r", "u"), []
    path, arrived = "/chat/completions", lambda: called.append(1)
    assert exchange.post_at_once(path, {}, context, arrived, lambda raw, answer: answer) is None
    assert exchange.chunks_at_once(path, {}, ChunkReader(), context, arrived) is None
    assert not called
    assert not fake.requests


@pytest.mark.parametrize("status", [401, 402, 403, 429])
async def test_a_refused_key_rests(exchange, fake, status, caplog):
    fake.script(json_reply({"error": {"message": f"API key {SECRETS[0]} is not valid"}}, status))
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            await exchange.get("/models")
    assert used(fake) == [0, 1, 2, 1, 2]
    assert {request.headers["X-Team"] for request in fake.requests} == {"our-secret-team"}
    (record,) = caplog.records
    assert (record.provider, record.key_number, record.status) == ("acme", 1, status)
    assert "secret" not in str(record.__dict__)


async def test_when_no_key_is_taken_the_refusal_is_told(exchange, fake):
    told = f"no {SECRETS[0]} nor {SECRETS[2]}, our-secret-team, tier a"
    fake.script(*[json_reply({"error": {"message": told}}, 401)] * 3)
    with pytest.raises(GatewayError) as caught:
        await exchange.get("/models")
    assert used(fake) == [0, 1, 2]
    assert "secret" not in caught.value.message
    assert "tier a" in caught.value.message


@pytest.mark.parametrize(("told", "following"), [("0", [0, 1, 2, 0]), ("900", [0, 1, 2, 1])])
async def test_a_rate_limit_rests_as_long_as_it_says(exchange, fake, told, following):
    fake.script(Reply(429, {"Retry-After": told}, [b"{}"], content_type="application/json"))
    for _ in range(3):
        await exchange.get("/models")
    assert used(fake) == following


def gemini(quota_id: str, delay: str) -> dict[str, Any]:
    details = [{"violations": [{"quotaId": quota_id}]}, {"retryDelay": delay}]
    return {"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details}}


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (gemini("RequestsPerMinute", "12.5s"), 13.0),
        (gemini("RequestsPerDay", "12.5s"), 600.0),
        ({"error": {"code": "insufficient_quota"}}, 600.0),
        ({"error": {"message": "slow down"}}, 60.0),
    ],
)
async def test_a_rate_limit_rests_as_its_body_says(exchange, fake, body, seconds, caplog):
    fake.script(json_reply(body, 429))
    with caplog.at_level(logging.WARNING):
        await exchange.get("/models")
    (record,) = caplog.records
    assert (record.status, record.rests_seconds) == (429, seconds)


async def test_other_failures_are_not_repeated(exchange, fake):
    fake.script(json_reply({"error": {"message": "broken"}}, 500))
    with pytest.raises(GatewayError, match="broken"):
        await exchange.get("/models")
    assert used(fake) == [0]


RIGHTS = "The caller does not have permission to execute the specified operation"


@pytest.mark.parametrize(
    "refusal",
    [
        {"error": {"message": "not that", "code": "content_filter"}},
        {"code": RIGHTS, "error": "Content violates usage guidelines."},
        {"error": {"message": "Your request was flagged.", "type": "forbidden"}},
        {"error": {"message": "not in your country", "code": 403}},
        {"error": {"message": "say nothing of any kind"}},
        [],
        {},
    ],
)
@pytest.mark.parametrize("is_upload", [False, True])
async def test_refused_content_is_not_sent_with_the_next_key(exchange, fake, refusal, is_upload):
    fake.script(json_reply(refusal, 403))
    with pytest.raises(GatewayError):
        if is_upload:
            await exchange.exchange("/audio/transcriptions", Content(), CallContext("r", "u"))
        else:
            await exchange.post("/chat/completions", {"model": "m", "messages": []})
    for _ in range(3):
        await exchange.get("/models")
    assert used(fake) == [0, 1, 2, 0]


def test_headers_carry_no_second_key():
    with pytest.raises(GatewayError, match="beside a key"):
        ProviderConfig(
            "acme", SourceKind.OPENAI, "http://a.example", keys=SECRETS, headers=(("authorization", "x"),)
        )
