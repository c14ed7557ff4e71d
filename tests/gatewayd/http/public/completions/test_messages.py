"""Tests for gatewayd.http.public.completions.messages, from client to provider."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import orjson
import pytest

from gatewayd.accounts.records import Actor
from gatewayd.catalog.interfaces import NativeProtocol, NativeRefusalError, RefusedAnswer
from gatewayd.catalog.records import Model
from gatewayd.catalog.service import Catalog
from gatewayd.completions.records import Completion, CompletionChunk
from gatewayd.dialects.tokenizers import count_locally
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.public.completions.messages import PATHS, MessageRoutes, NativeMessageFrames
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.routes import Route
from gatewayd.pipeline.filters.inputs import InputFilters
from gatewayd.pipeline.pipeline import NoFilterChain, NoFilters, NoTools, Pipeline
from gatewayd.pipeline.records import ChatRequest
from gatewayd.pipeline.token_counts import TokenCounts
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.http.public_app import Client, bearer
from tests.fakes.providers.catalog import three_providers
from tests.fakes.providers.upstream import (
    CUT,
    SILENCE,
    FakeUpstream,
    Reply,
    anthropic_events,
    anthropic_message,
    anthropic_stream,
    json_reply,
    ndjson,
    ollama_reply,
    ollama_stream,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)

MODELS = ("acme.m", "claude.m", "local.m")
LIMIT = 50_000
SHORT = 0.02


def ask(model: str = "acme.m", **fields: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **fields}


class NoticingFilter:
    """Sees that a request and its chunks come by."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    async def inlet(self, request: ChatRequest, model: Model, actor: Actor) -> None:
        self.seen.append(request.body["messages"])

    async def stream(self, chunk: CompletionChunk) -> CompletionChunk:
        self.seen.append(chunk.events)
        return chunk

    async def outlet(self, completion: Completion, actor: Actor) -> None:
        self.seen.append(completion.body)


class OneFilter:
    """Chooses one filter for every request."""

    def __init__(self, item: NoticingFilter) -> None:
        self._item = item

    async def choose(self, request: ChatRequest, model: Model, actor: Actor) -> NoFilterChain:
        return NoFilterChain(inlets=(self._item,), streams=(self._item,))

    async def are_on(self, model_id: str) -> bool:
        return True


class Gateway:
    """The routes over sources of all three kinds, whose provider is `fake`."""

    def __init__(self, fake: FakeUpstream, client: Client) -> None:
        self.fake = fake
        self.client = client

    async def post(self, body: object, path: str = PATHS[0], **headers: str) -> tuple[int, Any]:
        """Return status and JSON of an answer, to an administrator unless `headers` say who asks."""
        reply = await self.client.post(path, json=body, headers=headers or bearer("admin"))
        return reply.status, await reply.json()

    async def stream(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events of a streamed answer."""
        reply = await self.client.post(PATHS[0], json={**body, "stream": True}, headers=bearer("admin"))
        assert reply.status == 200, await reply.text()
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        return parse(await reply.read())


def parse(raw: bytes) -> list[dict[str, Any]]:
    frames = raw.split(b"\n\n")
    assert frames.pop() == b""
    events = []
    for frame in frames:
        name, data = frame.split(b"\n")
        events.append(orjson.loads(data.removeprefix(b"data: ")))
        assert name == b"event: " + events[-1]["type"].encode()
    return events


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def said(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"].get("text", "") for event in events if "delta" in event)


@asynccontextmanager
async def opened(
    chosen: NoFilters | OneFilter, ping_seconds: float = 15.0
) -> AsyncIterator[tuple[FakeUpstream, Client]]:
    def rows(catalog: Catalog) -> Sequence[Route]:
        pipeline = Pipeline(catalog, chosen, NoAttachments(), NoTools())
        counts = TokenCounts(catalog, InputFilters(catalog, chosen), count_locally)
        streams = AnswerStreams(seconds=ping_seconds)
        return MessageRoutes(pipeline, counts, body_limit=LIMIT, streams=streams).routes()

    async with three_providers(rows) as made:
        yield made


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with opened(NoFilters()) as (fake, client):
        yield Gateway(fake, client)


@pytest.fixture
async def impatient() -> AsyncIterator[Gateway]:
    async with opened(NoFilters(), SHORT) as (fake, client):
        yield Gateway(fake, client)


@pytest.fixture
async def sdk(gateway: Gateway) -> AsyncIterator[anthropic.AsyncAnthropic]:
    base = str(gateway.client.make_url("/api"))
    async with anthropic.AsyncAnthropic(api_key="admin", base_url=base, max_retries=0) as made:
        yield made


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("tail", ["", "/count_tokens"])
async def test_answers_under_every_alias_to_those_who_may(gateway: Gateway, path: str, tail: str) -> None:
    status, refusal = await gateway.post(ask(), path + tail, Accept="*/*")
    assert status == 401
    assert (refusal["type"], refusal["error"]["type"]) == ("error", "authentication_error")
    status, refusal = await gateway.post(ask(), path + tail, **bearer("pending"))
    assert (status, refusal["error"]["type"]) == (403, "permission_error")
    for headers in (bearer("admin"), {"x-api-key": "admin"}):
        status, answer = await gateway.post(ask(), f"{path}{tail}?beta=true", **headers)
        assert status == 200
        assert "input_tokens" in answer if tail else answer["content"][0]["text"] == "Hello from m"


async def test_a_model_that_one_may_not_use_is_not_found(gateway: Gateway) -> None:
    for model, user in (("acme.m", "user"), ("nope", "admin")):
        status, refusal = await gateway.post(ask(model), **bearer(user))
        assert (status, refusal["error"]["type"]) == (404, "not_found_error")
        assert model in refusal["error"]["message"]
        assert refusal["detail"] == refusal["error"]["message"]


@pytest.mark.parametrize("model", MODELS)
async def test_a_message_from_every_kind_of_source(gateway: Gateway, model: str) -> None:
    status, message = await gateway.post(ask(model))
    assert status == 200
    assert (message["type"], message["role"], message["model"]) == ("message", "assistant", model)
    assert message["id"].startswith("msg_")
    assert message["content"] == [{"type": "text", "text": "Hello from m"}]
    assert (message["stop_reason"], message["stop_sequence"]) == ("end_turn", None)
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (3, 2)


@pytest.mark.parametrize("model", MODELS)
async def test_a_stream_from_every_kind_of_source(gateway: Gateway, model: str) -> None:
    events = await gateway.stream(ask(model))
    assert events[0]["message"]["model"] == model
    assert said(events) == "Hello from m"
    assert kinds(events).count("ping") == 1
    assert [kind for kind in kinds(events) if kind not in ("ping", "content_block_delta")] == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[-2]["delta"]["stop_reason"] == "end_turn"
    assert events[-2]["usage"]["output_tokens"] > 0


async def test_a_source_that_speaks_the_dialect_gets_the_request_as_it_is(gateway: Gateway) -> None:
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    system = [{"type": "text", "text": "be", "cache_control": {"type": "ephemeral"}}]
    body = ask("claude.m", tools=tools, system=system, thinking={"type": "adaptive"})
    headers = {**bearer("admin"), "Anthropic-Beta": "new", "anthropic-odd": "x", "x-claude-code-odd": "y"}
    await gateway.post({**body, "chat_id": "c"}, f"{PATHS[0]}?beta=true", **headers)
    (request,) = gateway.fake.requests
    assert request.json == {**body, "model": "m", "stream": False}
    assert (request.headers["anthropic-beta"], request.headers["anthropic-odd"]) == ("new", "x")
    assert "x-claude-code-odd" not in request.headers


UNKNOWN = {
    "max_tokens": 0,
    "messages": [{"role": "robot", "content": [{"type": "hologram", "parts": [1]}]}, {"role": 5}],
    "output_config": {"effort": "extreme", "x": 1},
    "tool_choice": {"type": "maybe"},
    "system": [{"type": "odd"}],
    "future": {"a": [1]},
}


async def test_what_only_the_provider_knows_passes_and_is_refused_elsewhere(gateway: Gateway) -> None:
    status, _ = await gateway.post(ask("claude.m", **UNKNOWN))
    assert status == 200
    assert gateway.fake.requests[-1].json == {**UNKNOWN, "model": "m", "stream": False}
    for model in ("acme.m", "local.m"):
        status, refusal = await gateway.post(ask(model, **UNKNOWN))
        assert (status, refusal["error"]["type"]) == (400, "invalid_request_error")
        assert "system[0].type" in refusal["error"]["message"]
    assert len(gateway.fake.requests) == 1


@pytest.mark.parametrize("odd", [5, [], {}, None, ["x"], {"type": "x"}])
async def test_what_is_no_block_is_no_fault_of_the_gateway(gateway: Gateway, odd: Any) -> None:
    content = [{"type": odd, "id": odd, "signature": odd}, odd]
    turns = [{"role": role, "content": content} for role in ("user", "assistant", "user")]
    status, _ = await gateway.post(ask("claude.m", messages=turns))
    assert status == 200
    assert gateway.fake.requests[-1].json["messages"] == turns


async def test_filters_do_not_change_the_words_of_a_refusal() -> None:
    said = json_reply({"type": "error", "error": {"type": "x", "message": "thinking"}}, 418)
    async with opened(OneFilter(NoticingFilter())) as (fake, client):
        fake.script(said, said)
        for stream in (False, True):
            body = ask("claude.m", stream=stream)
            reply = await client.post(PATHS[0], json=body, headers=bearer("admin"))
            assert (reply.status, await reply.read()) == (418, b"".join(said.steps))


def test_a_refusal_of_several_lines_is_one_event() -> None:
    said = RefusedAnswer(NativeProtocol.ANTHROPIC, 400, "application/json", b'{"a": 1,\r\n "b": 2}\n')
    error = NativeRefusalError(GatewayError(ErrorKind.INVALID_REQUEST, "no"), said)
    frame = NativeMessageFrames().fail(error)
    assert frame == b'event: error\ndata: {"a": 1,\ndata:  "b": 2}\n\n'
    other = NativeRefusalError(error, RefusedAnswer(NativeProtocol.OLLAMA, 400, "", b"x"))
    assert b"invalid_request_error" in NativeMessageFrames().fail(other)


async def test_filters_do_not_see_half_a_request() -> None:
    noticing = NoticingFilter()
    async with opened(OneFilter(noticing)) as (fake, client):
        status, refusal = await Gateway(fake, client).post(ask("claude.m", **UNKNOWN))
    assert (status, noticing.seen, fake.requests) == (400, [], [])
    assert "system[0].type" in refusal["error"]["message"]


@pytest.mark.parametrize(
    "headers",
    [
        [("anthropic-odd", "\u00e9")],
        [(f"anthropic-{number}", "x") for number in range(40)],
    ],
)
async def test_headers_of_the_protocol_are_checked(gateway: Gateway, headers: list[tuple[str, str]]) -> None:
    sent = [*bearer("admin").items(), *headers]
    reply = await gateway.client.post(PATHS[0], json=ask("claude.m"), headers=sent)
    assert (reply.status, gateway.fake.requests) == (400, [])
    assert "anthropic-" in (await reply.json())["error"]["message"]


async def test_betas_of_the_caller_on_the_converted_path() -> None:
    # A beta goes only with its part, which the conversion may drop.
    betas = "interleaved-thinking-2025-05-14,context-management-2025-06-27,effort-2025-11-24"
    async with opened(OneFilter(NoticingFilter())) as (fake, client):
        fields = {"context_management": {"edits": []}, "output_config": {"effort": "low"}}
        headers = {**bearer("admin"), "anthropic-beta": betas}
        status, _ = await Gateway(fake, client).post(ask("claude.m", **fields), **headers)
    assert status == 200
    assert fake.requests[0].json["output_config"] == {"effort": "low"}
    assert fake.requests[0].headers["anthropic-beta"] == "interleaved-thinking-2025-05-14,effort-2025-11-24"


async def test_bytes_of_a_source_that_speaks_the_dialect_pass(gateway: Gateway) -> None:
    odd = b'{ "type":"content_block_delta", "index":0, "delta":{"type":"text_delta","text":"\\u00e9"} }'
    stream = anthropic_stream(["a"])
    gateway.fake.script(Reply(steps=[*stream[:3], sse(odd), *stream[3:]]))
    reply = await gateway.client.post(PATHS[0], json=ask("claude.m", stream=True), headers=bearer("admin"))
    assert b"event: content_block_delta\ndata: " + odd + b"\n\n" in await reply.read()


async def test_filters_see_what_a_source_that_speaks_the_dialect_would_get_as_it_is() -> None:
    noticing = NoticingFilter()
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    async with opened(OneFilter(noticing)) as (fake, client):
        gateway = Gateway(fake, client)
        fake.script(json_reply(anthropic_message("", content=[thought, {"type": "text", "text": "a"}])))
        _, message = await gateway.post(ask("claude.m"))
        assert noticing.seen == [[{"role": "user", "content": "hi"}]]
        assert message["content"] == [thought, {"type": "text", "text": "a"}]
        fake.script(Reply(steps=signed_thought()))
        events = await gateway.stream(ask("claude.m"))
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert deltas == [
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "s"},
        {"type": "text_delta", "text": "a"},
    ]
    assert len(noticing.seen) >= 3


@pytest.mark.parametrize(
    ("reason", "sequence"),
    [
        ("end_turn", None),
        ("max_tokens", None),
        ("stop_sequence", "END"),
        ("refusal", None),
        ("pause_turn", None),
        ("compaction", None),
        ("model_context_window_exceeded", None),
    ],
)
async def test_why_it_ended_survives_the_conversion_there_and_back(reason: str, sequence: str | None) -> None:
    ended = {"stop_reason": reason, "stop_sequence": sequence}
    *begin, _, stop = anthropic_stream(["a"])
    usage = {"input_tokens": 7, "cache_read_input_tokens": 4, "output_tokens": 5, "speed": "fast"}
    usage |= {"iterations": [{"type": "message"}], "fallback_credit": {"a": 1}, "inference_geo": "us"}
    delta = anthropic_events({"type": "message_delta", "delta": ended, "usage": usage})
    async with opened(OneFilter(NoticingFilter())) as (fake, client):
        gateway = Gateway(fake, client)
        fake.script(
            json_reply(anthropic_message("a", usage=usage, **ended)), Reply(steps=[*begin, delta, stop])
        )
        body = ask("claude.m", stop_sequences=["END", "FIN"])
        _, message = await gateway.post(body)
        *_, last, _ = await gateway.stream(body)
    for told, counted in ((message, message["usage"]), (last["delta"], last["usage"])):
        assert (told["stop_reason"], told["stop_sequence"]) == (reason, sequence)
        assert {name: counted[name] for name in usage} == usage


def signed_thought() -> list[bytes]:
    start, _, _, *rest = anthropic_stream([])
    delta = {"type": "content_block_delta", "index": 0}
    return [
        start,
        anthropic_events(
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "thinking", "thinking": ""},
            },
            {**delta, "delta": {"type": "thinking_delta", "thinking": "hm"}},
            {**delta, "delta": {"type": "signature_delta", "signature": "s"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "a"}},
            {"type": "content_block_stop", "index": 1},
        ),
        *rest[1:],
    ]


LIMITED = {"X_RateLimit_Reset_Requests": "1m0s", "X_RateLimit_Limit_Tokens": "9", "X_Request_Id": "p1"}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("status", [200, 429])
async def test_limits_of_a_provider_reach_the_caller(gateway: Gateway, model: str, status: int) -> None:
    whole = {
        "acme.m": openai_completion("a"),
        "claude.m": anthropic_message("a"),
        "local.m": ollama_reply("a"),
    }
    body = whole[model] if status == 200 else {"error": {"message": "slow"}}
    gateway.fake.script(*[json_reply(body, status, **LIMITED, Retry_After_Ms="1")] * 2)
    for stream in (False, True):
        reply = await gateway.client.post(PATHS[0], json=ask(model, stream=stream), headers=bearer("admin"))
        assert reply.status == status
        assert reply.headers["anthropic-ratelimit-tokens-limit"] == "9"
        assert reply.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
        assert reply.headers["x-provider-request-id"] == "p1"
        assert not any(name.lower().startswith("x-ratelimit") for name in reply.headers)
        assert ("retry-after-ms" in reply.headers) is (status == 429)


async def test_every_reply_carries_the_request_id(gateway: Gateway) -> None:
    admin, anyone = bearer("admin"), {"Accept": "*/*"}
    for body, headers in ((ask(), admin), (ask(stream=True), admin), (ask("nope"), admin), (ask(), anyone)):
        reply = await gateway.client.post(PATHS[0], json=body, headers=headers)
        assert reply.headers["request-id"] == reply.headers["X-Request-Id"]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"model": 3}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"max_tokens": "x"}, "max_tokens"),
        ({"stream": "yes"}, "stream"),
    ],
)
async def test_a_bad_field_is_named(gateway: Gateway, changes: dict[str, Any], param: str) -> None:
    status, refusal = await gateway.post({**ask(), **changes})
    assert (status, refusal["error"]["type"]) == (400, "invalid_request_error")
    assert param in refusal["error"]["message"]


async def test_bodies_that_cannot_be_read(gateway: Gateway) -> None:
    status, refusal = await gateway.post(ask(system="x" * LIMIT))
    assert (status, refusal["error"]["type"]) == (413, "request_too_large")
    for data in (b"{", b"[]", b"\xff", b""):
        reply = await gateway.client.post(
            PATHS[0], data=data, headers={**bearer("admin"), "Content-Type": "application/json"}
        )
        assert reply.status == 400
        assert (await reply.json())["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("model", ["acme.m", "claude.m"])
async def test_what_could_not_be_used_is_said_in_a_header(gateway: Gateway, model: str) -> None:
    body = ask(model, files=[{"type": "file", "id": "f1"}])
    if model == "claude.m":
        gateway.fake.script(json_reply(anthropic_message("a")), Reply(steps=anthropic_stream(["a"])))
    for stream in (False, True):
        reply = await gateway.client.post(PATHS[0], json={**body, "stream": stream}, headers=bearer("admin"))
        assert reply.status == 200
        assert "f1" in reply.headers["X-Gateway-Warning"]


async def test_count_tokens(gateway: Gateway) -> None:
    path = f"{PATHS[0]}/count_tokens"
    body = {"model": "nope", "messages": [{"role": "user", "content": "hello " * 100}]}
    status, short = await gateway.post({**body, "messages": [{"role": "user", "content": "hi"}]}, path)
    assert status == 200
    _, long = await gateway.post(body, path)
    assert 0 < short["input_tokens"] < long["input_tokens"]
    assert gateway.fake.requests == []
    for wrong, param in (({"model": "m"}, "messages"), ({"messages": body["messages"]}, "model")):
        status, refusal = await gateway.post(wrong, path)
        assert (status, refusal["error"]["type"]) == (400, "invalid_request_error")
        assert param in refusal["error"]["message"]


async def test_a_provider_that_can_count_is_asked_once(gateway: Gateway) -> None:
    path = f"{PATHS[0]}/count_tokens"
    body = {**ask("claude.m"), "system": "s", "stream": True, "metadata": {"user_id": "u"}}
    gateway.fake.script(json_reply({"input_tokens": 77}), json_reply({"input_tokens": 78}))
    for asked in (body, body, {**body, "system": "other"}):
        reply = await gateway.client.post(path, json=asked, headers=bearer("admin"))
        assert reply.headers["X-Gateway-Token-Count"] == "provider"
        assert await reply.json() == {"input_tokens": 78 if asked["system"] == "other" else 77}
    sent = [(request.path, request.json) for request in gateway.fake.requests]
    assert [path for path, _ in sent] == ["/v1/messages/count_tokens"] * 2
    # The endpoint refuses what is for answers only.
    assert sent[0][1] == {"model": "m", "messages": body["messages"], "system": "s"}


async def test_what_is_counted_has_its_placeholders_filled(gateway: Gateway) -> None:
    path = f"{PATHS[0]}/count_tokens"
    gateway.fake.script(json_reply({"input_tokens": 77}))
    body = {**ask("claude.m"), "system": "for {{X}}", "variables": {"{{X}}": "x " * 400}}
    reply = await gateway.client.post(path, json=body, headers=bearer("admin"))
    assert await reply.json() == {"input_tokens": 77}
    assert gateway.fake.requests[-1].json["system"] == "for " + "x " * 400
    counts = [
        (await gateway.post({**body, "model": "nope", **more}, path))[1]["input_tokens"]
        for more in ({}, {"variables": {}})
    ]
    assert counts[0] > counts[1] + 100


@pytest.mark.parametrize(
    "answer",
    [
        json_reply({"error": {"message": "no such path"}}, 404),
        json_reply({"input_tokens": "7"}),
        json_reply({"input_tokens": True}),
        json_reply({"error": {"message": "slow down"}}, 429, Retry_After="7"),
        Reply(steps=[b"<html>"], content_type="text/html"),
    ],
)
async def test_a_provider_that_does_not_count_is_replaced(gateway: Gateway, answer: Reply) -> None:
    gateway.fake.script(answer)
    path = f"{PATHS[0]}/count_tokens"
    reply = await gateway.client.post(path, json=ask("claude.m"), headers=bearer("admin"))
    assert reply.headers["X-Gateway-Token-Count"] == "tokenizer"
    assert (await reply.json())["input_tokens"] > 0


async def test_no_text_leaves_for_a_count_without_the_right_to_the_model(gateway: Gateway) -> None:
    path = f"{PATHS[0]}/count_tokens"
    reply = await gateway.client.post(path, json=ask("claude.m"), headers=bearer("user"))
    assert (reply.status, reply.headers["X-Gateway-Token-Count"]) == (200, "tokenizer")
    assert gateway.fake.requests == []


async def test_a_filter_that_sees_requests_is_not_passed_by_for_a_count() -> None:
    async with opened(OneFilter(NoticingFilter())) as (fake, client):
        path = f"{PATHS[0]}/count_tokens"
        reply = await client.post(path, json=ask("claude.m"), headers=bearer("admin"))
        assert (reply.status, reply.headers["X-Gateway-Token-Count"]) == (200, "tokenizer")
        assert fake.requests == []


async def test_probes(gateway: Gateway) -> None:
    for method, path in (("HEAD", "/api"), ("HEAD", "/api/"), ("GET", "/api")):
        reply = await gateway.client.request(method, path)
        assert reply.status == 200
    assert await reply.json() == {"status": True}


# What a provider may do before its first event, with the status and type that callers see.
HTML = Reply(503, steps=[b"<html>down</html>"], content_type="text/html")
REFUSALS = [
    (json_reply({"error": {"message": "slow down"}}, 429, Retry_After="7"), 429, "rate_limit_error"),
    (json_reply({"error": {"message": "bad key"}}, 401), 502, "api_error"),
    (json_reply({"error": {"message": "too long"}}, 400), 400, "invalid_request_error"),
    (json_reply({"error": {"message": "boom"}}, 500), 502, "api_error"),
    (json_reply({"error": {"message": "busy"}}, 529), 529, "overloaded_error"),
    (HTML, 503, "overloaded_error"),
    (Reply(steps=[b"<html></html>"], content_type="text/html"), 502, "api_error"),
    (Reply(302, {"Location": "http://127.0.0.1:9/"}), 502, "api_error"),
    (Reply(before=CUT), 502, "api_error"),
    (Reply(steps=[b"{garbage\n\n"]), 502, "api_error"),
    (Reply(steps=[b"data: \xff\n\n"]), 502, "api_error"),
    (Reply(steps=[]), 502, "api_error"),
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("reply", "status", "kind"), REFUSALS)
async def test_a_failure_before_the_first_event_is_a_status(
    gateway: Gateway, model: str, stream: bool, reply: Reply, status: int, kind: str
) -> None:
    # Twice, as a kept connection that turns out to be closed is replaced.
    gateway.fake.script(reply, reply)
    answer = await gateway.client.post(PATHS[0], json=ask(model, stream=stream), headers=bearer("admin"))
    refusal = await answer.json()
    assert answer.headers.get("Retry-After") == ("7" if status == 429 else None)
    if model == "claude.m" and reply.content_type == "application/json" and reply.status != 401:
        assert (answer.status, await answer.read()) == (reply.status, b"".join(reply.steps))
        return
    assert (answer.status, refusal["type"], refusal["error"]["type"]) == (status, "error", kind)
    assert f"provider '{model.partition('.')[0]}'" in refusal["error"]["message"]


STARTS = {
    "acme.m": openai_stream(["some"])[:1],
    "claude.m": anthropic_stream(["some"])[:4],
    "local.m": ollama_stream(["some"])[:1],
}
ERRORS = {
    "acme.m": sse({"error": {"message": "Overloaded", "type": "overloaded_error"}}),
    "claude.m": anthropic_events(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    ),
    "local.m": ndjson({"error": "Overloaded"}),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("break_", ["cut", "end", "error", "html", "garbage"])
async def test_a_failure_after_the_first_event_is_one_too(gateway: Gateway, model: str, break_: str) -> None:
    steps = {"cut": [CUT], "end": [], "error": [ERRORS[model]], "html": [b"<html>\n\n"]}
    ending = steps.get(break_, [b"data: {gar\n\nbage"])
    gateway.fake.script(Reply(steps=[*STARTS[model], *ending]))
    events = await gateway.stream(ask(model))
    assert said(events) == "some"
    assert kinds(events)[0] == "message_start"
    assert kinds(events)[-1] == "error"
    assert not {"message_delta", "message_stop"} & set(kinds(events))
    if (model, break_) == ("claude.m", "error"):
        assert events[-1] == {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        return
    assert f"provider '{model.partition('.')[0]}'" in events[-1]["error"]["message"]
    if break_ == "error":
        assert "Overloaded" in events[-1]["error"]["message"]
        if model != "local.m":
            assert events[-1]["error"]["type"] == "overloaded_error"


@pytest.mark.parametrize("model", MODELS)
async def test_a_silent_source_is_pinged_for_and_closed_with_its_client(
    impatient: Gateway, model: str
) -> None:
    impatient.fake.script(Reply(steps=[*STARTS[model], SILENCE]))
    reply = await impatient.client.post(PATHS[0], json=ask(model, stream=True), headers=bearer("admin"))
    seen = b""
    async with asyncio.timeout(10):
        while seen.count(b"event: ping\n") < 4 or not seen.endswith(b"\n\n"):
            seen += await reply.content.readany()
        assert kinds(parse(seen))[-2:] == ["ping", "ping"]
        assert not impatient.fake.closed.is_set()
        reply.close()
        await impatient.fake.closed.wait()


@pytest.mark.parametrize("model", MODELS)
async def test_a_source_silent_from_the_start_is_closed_with_its_client(gateway: Gateway, model: str) -> None:
    gateway.fake.script(Reply(before=SILENCE))
    waiting = asyncio.get_running_loop().create_task(
        gateway.client.post(PATHS[0], json=ask(model, stream=True), headers=bearer("admin"))
    )
    async with asyncio.timeout(10):
        await gateway.fake.silent.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        await gateway.fake.closed.wait()


async def test_a_provider_cannot_send_events_of_its_own(gateway: Gateway) -> None:
    forged = b"event: execute\nid: 7\nretry: 1\n" + sse({"type": "ping", "event": {"type": "execute"}})
    start, *rest = anthropic_stream(["a"])
    gateway.fake.script(Reply(steps=[start, forged, *rest]))
    assert all("event" not in event for event in await gateway.stream(ask("claude.m")))


@pytest.mark.parametrize(
    ("model", "whole"),
    [("acme.m", openai_completion("hi")), ("claude.m", anthropic_message("hi"))],
)
async def test_an_answer_that_comes_whole_is_streamed(
    gateway: Gateway, model: str, whole: dict[str, Any]
) -> None:
    gateway.fake.script(json_reply(whole))
    events = await gateway.stream(ask(model))
    assert said(events) == "hi"
    assert kinds(events)[-1] == "message_stop"


async def test_the_official_client_reads_a_message(sdk: anthropic.AsyncAnthropic) -> None:
    for model in MODELS:
        message = await sdk.messages.create(**ask(model))
        assert message.content[0].text == "Hello from m"
        assert message._request_id
        counted = await sdk.messages.count_tokens(model=model, messages=ask()["messages"])
        assert counted.input_tokens > 0


async def test_the_official_client_reads_a_stream(sdk: anthropic.AsyncAnthropic) -> None:
    for model in MODELS:
        async with sdk.messages.stream(**ask(model)) as stream:
            text = "".join([part async for part in stream.text_stream])
            message = await stream.get_final_message()
        assert text == message.content[0].text == "Hello from m"
        assert (message.model, message.stop_reason) == (model, "end_turn")
        assert message.usage.output_tokens > 0


CALLS = [
    {"index": n, "id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": f'{{"n":{n}}}'}}
    for n in range(2)
]
TOOL = {"name": "look", "description": "d", "input_schema": {"type": "object"}}


async def test_the_official_client_gets_parallel_calls(
    gateway: Gateway, sdk: anthropic.AsyncAnthropic
) -> None:
    done = openai_completion("", tool_calls=CALLS)
    done["choices"][0]["finish_reason"] = "tool_calls"
    pieces = [openai_chunk(tool_calls=[call]) for call in CALLS]
    gateway.fake.script(
        json_reply(done), Reply(steps=[sse(*pieces, openai_chunk(finish_reason="tool_calls"), b"[DONE]")])
    )
    asked = ask(tools=[TOOL], tool_choice={"type": "any"})
    whole = await sdk.messages.create(**asked)
    async with sdk.messages.stream(**asked) as stream:
        streamed = await stream.get_final_message()
    for message in (whole, streamed):
        assert [(block.id, block.name, block.input) for block in message.content] == [
            ("c0", "look", {"n": 0}),
            ("c1", "look", {"n": 1}),
        ]
        assert message.stop_reason == "tool_use"
    assert gateway.fake.requests[0].json["tool_choice"] == "required"


async def test_the_official_client_raises_what_it_should(
    gateway: Gateway, sdk: anthropic.AsyncAnthropic
) -> None:
    with pytest.raises(anthropic.NotFoundError):
        await sdk.messages.create(**ask("nope"))
    gateway.fake.script(json_reply({"error": {"message": "slow"}}, 429))
    with pytest.raises(anthropic.RateLimitError):
        await sdk.messages.create(**ask())
    gateway.fake.script(Reply(steps=[*STARTS["acme.m"], CUT]))
    with pytest.raises(anthropic.APIStatusError):
        async with sdk.messages.stream(**ask()) as stream:
            await stream.get_final_message()


async def test_a_runtime_answers_in_pieces(gateway: Gateway) -> None:
    gateway.fake.script(
        Reply(steps=[ndjson(ollama_reply("", done=False, thinking="hm")), *ollama_stream(["a", "b"])])
    )
    events = await gateway.stream(ask("local.m"))
    starts = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    assert starts == ["thinking", "text"]
    assert said(events) == "ab"


@pytest.mark.parametrize("stream", [False, True])
async def test_only_a_converted_request_is_warned_about(gateway: Gateway, stream: bool) -> None:
    for model, is_warned in (("acme.m", True), ("claude.m", False)):
        form = ask(model=model, odd_field=1, stream=stream)
        reply = await gateway.client.post(PATHS[0], json=form, headers=bearer("admin"))
        assert reply.status == 200
        assert ("odd_field" in reply.headers.get("X-Gateway-Warning", "")) is is_warned
    assert gateway.fake.requests[-1].json["odd_field"] == 1


async def test_thinking_of_others_is_not_counted_by_a_provider(gateway: Gateway) -> None:
    question, text = {"role": "user", "content": "hi"}, {"type": "text", "text": "a"}
    thoughts = [
        {"type": "thinking", "thinking": "hm", "signature": "gatewayd.deepseek"},
        {"type": "thinking", "thinking": "hm"},
    ]
    body = {
        **ask("claude.m"),
        "messages": [question, {"role": "assistant", "content": [*thoughts, text]}, question],
    }
    gateway.fake.script(json_reply({"input_tokens": 7}))
    reply = await gateway.client.post(f"{PATHS[0]}/count_tokens", json=body, headers=bearer("admin"))
    assert await reply.json() == {"input_tokens": 7}
    sent = gateway.fake.requests[0].json["messages"]
    assert sent == [question, {"role": "assistant", "content": [text]}, question]
