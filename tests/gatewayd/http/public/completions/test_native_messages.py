"""The official clients on a strict provider of messages, and on a provider of the OpenAI protocol."""

import platform
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from typing import Any

import anthropic
import openai
import orjson
import pytest

from gatewayd.catalog.service import Catalog, CatalogOptions
from gatewayd.http.public.completions.chat import ChatRoutes
from gatewayd.http.public.completions.messages import MessageRoutes
from gatewayd.pipeline.pipeline import NoFilters, NoTools, Pipeline
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.factory import open_source
from tests.fakes.documents.no_documents import NoAttachments
from tests.fakes.http.public_app import Client, bearer, serving
from tests.fakes.providers.catalog import ACTORS, ADMIN, local_counts
from tests.fakes.providers.models import FakeRecords
from tests.fakes.providers.strict.anthropic import StrictAnthropic, refusal, thought
from tests.fakes.providers.upstream import (
    FakeUpstream,
    Reply,
    json_reply,
    openai_chunk,
    openai_completion,
    sse,
)

# The clients ask for it at their first request, which starts a process.
platform.uname().processor  # noqa: B018

MODEL = "s.claude-opus-4-6"
HI: list[Any] = [{"role": "user", "content": "hi"}]
USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}
TOOLS: list[Any] = [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]


class Runs:
    """Answers chats by the pipeline alone."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.answer = pipeline.run


class Site:
    """A gateway with both providers, and a client of each dialect, made when it is first used."""

    def __init__(self, strict: StrictAnthropic, plain: FakeUpstream, client: Client) -> None:
        self.strict = strict
        self.plain = plain
        self.client = client

    @cached_property
    def anthropic(self) -> anthropic.AsyncAnthropic:
        """The client of messages."""
        return anthropic.AsyncAnthropic(api_key="admin", base_url=str(self.client.make_url("/")))

    @cached_property
    def openai(self) -> openai.AsyncOpenAI:
        """The client of chats."""
        return openai.AsyncOpenAI(api_key="admin", base_url=str(self.client.make_url("/v1")))

    async def close(self) -> None:
        """Close the clients that were used."""
        for name in vars(self).keys() & {"anthropic", "openai"}:
            await vars(self)[name].close()

    async def post(self, body: dict[str, Any], **headers: str) -> tuple[int, bytes, Any]:
        """Return status, body and headers of the reply to a message request."""
        reply = await self.client.post(
            "/v1/messages?beta=true", json=body, headers={**bearer("admin"), **headers}
        )
        return reply.status, await reply.read(), reply.headers


@asynccontextmanager
async def opened(denied: Sequence[str] = (), **rules: Any) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        tasks = TaskRegistry()
        stack.push_async_callback(tasks.close)
        strict = await stack.enter_async_context(
            StrictAnthropic(models=["claude-opus-4-6", "claude-opus-4-7", "claude-haiku-4-5"], **rules)
        )
        plain = await stack.enter_async_context(FakeUpstream())
        sources = [
            open_source(
                ProviderConfig(
                    "strict", SourceKind.ANTHROPIC, strict.base_url, "hunter2", prefix="s.",
                    denied_betas=tuple(denied),
                )
            ),
            open_source(ProviderConfig("plain", SourceKind.OPENAI, plain.openai_url, prefix="o.")),
        ]  # fmt: skip
        for source in sources:
            stack.push_async_callback(source.close)
        catalog = Catalog(FakeRecords(), tasks, CatalogOptions())
        catalog.use(sources)
        await catalog.list(ADMIN)
        plain.requests.clear()
        strict.requests.clear()
        pipeline = Pipeline(catalog, NoFilters(), NoAttachments(), NoTools())
        rows = [
            *MessageRoutes(pipeline, local_counts(catalog), body_limit=1_000_000).routes(),
            *ChatRoutes(Runs(pipeline), body_limit=1_000_000).routes(),
        ]
        client = await stack.enter_async_context(serving(rows, ACTORS))
        site = Site(strict, plain, client)
        stack.push_async_callback(site.close)
        yield site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with opened() as made:
        yield made


def ask(model: str = MODEL, **fields: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 2000, "messages": HI, **fields}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_call_has_another_id_than_those_before(site: Site, stream: bool) -> None:
    # Claude Code drops a call whose id it knows.
    call = {"index": 0, "id": "f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    used = {"type": "tool_use", "id": "f:0", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "f:0", "content": "1"}
    history = [*HI, {"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
    for messages, is_kept in ((HI, True), (history, False)):
        whole = json_reply(openai_completion("", tool_calls=[call]))
        steps = [sse(openai_chunk(tool_calls=[call])), sse(openai_chunk("m", "tool_calls")), sse(b"[DONE]")]
        site.plain.script(Reply(steps=steps) if stream else whole)
        _, raw, _ = await site.post({**ask("o.m"), "messages": messages, "tools": TOOLS, "stream": stream})
        assert b'"type":"tool_use"' in raw
        assert (b'"f:0"' in raw) is is_kept


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 5}}, "budget_tokens"),
        ({"model": "s.claude-opus-4-7", "temperature": 0.5}, "`temperature` is deprecated"),
        ({"model": "s.claude-opus-4-7", "thinking": {"type": "enabled", "budget_tokens": 1024}}, "adaptive"),
        ({"context_management": {"edits": []}}, "context_management: Extra inputs are not permitted"),
        ({"messages": [*HI, {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": "forged"}]}, *HI]}, "Invalid `signature`"),
        ({"messages": [*HI, {"role": "assistant", "content": [USE]}, *HI]}, "without `tool_result`"),
        ({"messages": [{"role": "user", "content": [RESULT]}]}, "unexpected `tool_use_id`"),
        ({"messages": [*HI, {"role": "assistant", "content": "I"}]}, "prefill"),
        ({"messages": [{"role": "system", "content": "be"}, *HI]}, 'Unexpected role "system"'),
        ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}, "Input tag 'hologram'"),
        ({"system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}] * 5}, "Found 5"),
        ({"messages": [{"role": "user", "content": "x" * 900_000}]}, "prompt is too long"),
        ({"future": 1}, "future: Extra inputs are not permitted"),
    ],
)  # fmt: skip
async def test_refusals_reach_the_caller_byte_for_byte(
    site: Site, fields: dict[str, Any], words: str, *, stream: bool
) -> None:
    status, body, headers = await site.post(ask(**fields, stream=stream))
    (refused,) = site.strict.refused
    assert (status, body) == (400, refused.body.encode())
    assert words in orjson.loads(body)["error"]["message"]
    assert headers["x-provider-request-id"] == "req_strict"


CLAUDE_CODE = {
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,"
    "prompt-caching-scope-2026-01-05,mid-conversation-system-2026-04-07,advanced-tool-use-2025-11-20,"
    "effort-2025-11-24,extended-cache-ttl-2025-04-11",
    "anthropic-version": "2023-06-01",
    "x-claude-code-session-id": "s",
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_request_of_claude_code_is_taken_by_a_strict_provider(site: Site, *, stream: bool) -> None:
    cached = {"cache_control": {"type": "ephemeral", "ttl": "1h", "scope": "global"}}
    site.strict.script([thought("hm"), USE], [{"type": "text", "text": "done"}])
    body = ask(
        system=[{"type": "text", "text": "be", **cached}],
        thinking={"type": "adaptive", "display": "omitted"},
        output_config={"effort": "max"},
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        tools=[{**TOOLS[0], "defer_loading": True, **cached}],
        messages=[*HI, {"role": "system", "content": "now"}],
        stream=stream,
    )
    status, raw, headers = await site.post(body, **CLAUDE_CODE)
    assert (status, site.strict.refused) == (200, [])
    assert "X-Gateway-Warning" not in headers
    (asked,) = site.strict.requests
    assert asked.body == {**body, "model": "claude-opus-4-6"}
    for name in ("anthropic-beta", "anthropic-version"):
        assert {key.lower(): value for key, value in asked.headers.items()}[name] == CLAUDE_CODE[name]
    turn = {"role": "assistant", "content": [thought("hm"), USE]}
    if not stream:
        assert orjson.loads(raw)["content"] == turn["content"]
        assert orjson.loads(raw)["usage"]["inference_geo"] == "us"
    body["messages"] += [turn, {"role": "user", "content": [RESULT]}]
    assert (await site.post(body, **CLAUDE_CODE))[0] == 200


async def test_no_tokens_fill_the_cache(site: Site) -> None:
    message = await site.anthropic.messages.create(**ask(max_tokens=0))
    assert (message.content, message.stop_reason) == ([], "max_tokens")


async def test_a_denied_beta_goes_with_its_part() -> None:
    async with opened(["context-management"], refuses_lone_betas=True) as site:
        status, _, headers = await site.post(ask(context_management={"edits": []}), **CLAUDE_CODE)
        assert (status, site.strict.refused) == (200, [])
        assert "context_management" in headers["X-Gateway-Warning"]
        assert "context-management" not in dict(site.strict.requests[0].headers)["anthropic-beta"]


async def test_the_key_of_the_gateway_is_no_ones_login(site: Site) -> None:
    site.strict.script(refusal("invalid x-api-key hunter2", 401, "authentication_error"))
    with pytest.raises(anthropic.APIStatusError) as caught:
        await site.anthropic.messages.create(**ask())
    assert caught.value.status_code == 502
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert "hunter2" not in str(caught.value)
    assert len(site.strict.requests) == 1
    site.plain.script(json_reply({"error": {"message": "bad key", "code": "invalid_api_key"}}, 401))
    with pytest.raises(openai.InternalServerError) as failed:
        await site.openai.chat.completions.create(model="o.m", messages=HI)
    assert (failed.value.status_code, failed.value.code) == (502, "provider_auth")
    assert len(site.plain.requests) == 1


NO_MONEY = {"message": "You exceeded your quota.", "type": "insufficient_quota", "code": "insufficient_quota"}
TOO_LONG = "This model's maximum context length is 8 tokens. Please reduce the length of the messages."


async def test_missing_credit_is_not_tried_again(site: Site) -> None:
    for stream in (False, True):
        site.plain.script(json_reply({"error": NO_MONEY}, 429), json_reply({"error": NO_MONEY}, 429))
        with pytest.raises(openai.RateLimitError) as caught:
            await site.openai.chat.completions.create(model="o.m", messages=HI, stream=stream)
        assert (caught.value.code, caught.value.type) == ("insufficient_quota", "insufficient_quota")
        with pytest.raises(anthropic.APIStatusError, match="credit balance is too low") as refused:
            await site.anthropic.messages.create(**ask("o.m"), stream=stream)
        assert (refused.value.status_code, refused.value.body["error"]["type"]) == (402, "billing_error")
    assert len(site.plain.requests) == 4
    low = refusal("Your credit balance is too low to access the Anthropic API.")
    site.strict.script(low, refusal("limit", 429, "rate_limit_error", x_should_retry="false"))
    with pytest.raises(openai.RateLimitError) as missing:
        await site.openai.chat.completions.create(model=MODEL, messages=HI)
    assert missing.value.code == "insufficient_quota"
    with pytest.raises(anthropic.RateLimitError):
        await site.anthropic.messages.create(**ask())
    assert len(site.strict.requests) == 2


async def test_a_too_long_request_is_known_in_both_dialects(site: Site) -> None:
    site.plain.script(json_reply({"error": {"message": TOO_LONG}}, 400), json_reply({"error": TOO_LONG}, 400))
    with pytest.raises(openai.BadRequestError, match="maximum context length") as caught:
        await site.openai.chat.completions.create(model="o.m", messages=HI)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        await site.anthropic.messages.create(**ask("o.m"))
    long = [{"role": "user", "content": "x" * 900_000}]
    with pytest.raises(openai.BadRequestError, match="prompt is too long") as exceeded:
        await site.openai.chat.completions.create(model=MODEL, messages=long)
    assert (exceeded.value.code, exceeded.value.param) == ("context_length_exceeded", "messages")


async def test_overload_is_told_in_the_words_of_each_dialect(site: Site) -> None:
    busy = refusal("Overloaded", 529, "overloaded_error")
    site.strict.script(busy, busy)
    patient = site.anthropic.with_options(max_retries=0)
    with pytest.raises(anthropic.APIStatusError) as caught:
        await patient.messages.create(**ask())
    assert (caught.value.status_code, caught.value.body["error"]["type"]) == (529, "overloaded_error")
    with pytest.raises(openai.InternalServerError) as refused:
        await site.openai.with_options(max_retries=0).chat.completions.create(model=MODEL, messages=HI)
    assert (refused.value.status_code, refused.value.code) == (503, "server_is_overloaded")
    assert refused.value.type == "service_unavailable_error"


async def test_limits_reach_both_clients_in_their_words(site: Site) -> None:
    limits = {"X_RateLimit_Remaining_Tokens": "9", "X_RateLimit_Reset_Tokens": "6m0s", "X_Request_Id": "p1"}
    site.plain.script(*[json_reply(openai_completion("a"), **limits)] * 2)
    theirs = await site.openai.chat.completions.with_raw_response.create(model="o.m", messages=HI)
    assert theirs.headers["x-ratelimit-reset-tokens"] == "6m0s"
    ours = await site.anthropic.messages.with_raw_response.create(**ask("o.m"))
    assert ours.headers["anthropic-ratelimit-tokens-remaining"] == "9"
    assert ours.headers["anthropic-ratelimit-tokens-reset"].startswith("20")
    assert ours.headers["x-provider-request-id"] == theirs.headers["x-provider-request-id"] == "p1"
    native = await site.anthropic.messages.with_raw_response.create(**ask())
    assert native.headers["anthropic-ratelimit-requests-reset"] == "2099-01-01T00:00:00Z"
    chat = await site.openai.chat.completions.with_raw_response.create(model=MODEL, messages=HI)
    assert chat.headers["x-ratelimit-remaining-requests"] == "49"
    assert not any(name.startswith("anthropic-ratelimit") for name in chat.headers)


async def test_openai_clients_meet_no_refusal_with_tools_and_thinking(site: Site) -> None:
    site.strict.script([thought("hm"), USE])
    tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    first = await site.openai.chat.completions.create(
        model=MODEL, messages=HI, tools=tools, reasoning_effort="high", max_completion_tokens=4000
    )
    said = first.choices[0].message
    assert said.tool_calls is not None
    turn = said.model_dump(exclude_none=True)
    result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "1"}
    second = await site.openai.chat.completions.create(
        model=MODEL, messages=[*HI, turn, result], tools=tools, reasoning_effort="high"
    )
    assert second.choices[0].message.content == "Hello."
    assert site.strict.refused == []
