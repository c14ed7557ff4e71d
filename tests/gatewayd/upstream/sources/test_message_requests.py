"""Tests for gatewayd.upstream.sources.message_requests, with real sources for the hosts."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.upstream.sources.anthropic import AnthropicSource
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.message_requests import MessageRequests
from gatewayd.upstream.sources.model_rules import ModelRules
from tests.fakes.providers.strict.aws_events import aws_event
from tests.fakes.providers.upstream import (
    FakeUpstream,
    Reply,
    anthropic_message,
    anthropic_stream,
    json_reply,
)

MODEL = Model("v/m", "m", "anthropic", "claude", "m:1")
BODY = {"model": "m:1", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def requests(url: str = "https://api.anthropic.com", **fields: Any) -> MessageRequests:
    config = ProviderConfig("claude", SourceKind.ANTHROPIC, url, **fields)
    return MessageRequests(config, ModelRules(config))


def context(betas: str = "", **headers: str) -> CallContext:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return CallContext("r", "u", client_headers=sent | ({"anthropic-beta": betas} if betas else {}))


def test_a_plain_request_is_unchanged() -> None:
    asked = requests().native(BODY, MODEL, context(), stream=True)
    assert asked.body == {**BODY, "stream": True}
    assert asked.headers == {"anthropic-version": "2023-06-01"}


def test_denied_betas_go_with_their_parts() -> None:
    made = requests(denied_betas=("context-management", "fast-mode-2026-*", "anthropic-odd", "user-profiles"))
    asked_by = context(
        "context-management-2025-06-27,effort-2025-11-24,fast-mode-2026-02-01",
        anthropic_odd="x", anthropic_even="y", anthropic_user_profile_id="z",
    )  # fmt: skip
    body = {**BODY, "context_management": {}, "output_config": {"effort": "low"}, "speed": "fast"}
    asked = made.native(body, MODEL, asked_by, stream=False)
    assert asked.body == {**BODY, "output_config": {"effort": "low"}, "stream": False}
    assert asked.headers == {
        "anthropic-version": "2023-06-01",
        "anthropic-even": "y",
        "anthropic-beta": "effort-2025-11-24",
    }
    (warning,) = asked_by.warnings
    for name in ("context-management-2025-06-27", "fast-mode-2026-02-01", "context_management", "speed"):
        assert name in warning
    # The field without its header too: the provider would refuse it.
    assert made.native(body, MODEL, context(), stream=False).body == asked.body


def test_a_host_without_a_beta_does_not_get_its_part() -> None:
    made = requests("https://us-east5-aiplatform.googleapis.com/v1/projects/p/publishers/anthropic")
    asked_by = context("effort-2025-11-24,advanced-tool-use-2025-11-20,claude-code-20250219")
    body = {**BODY, "output_config": {"effort": "low"}, "tools": [{"name": "f", "defer_loading": True}]}
    asked = made.native(body, MODEL, asked_by, stream=True)
    assert asked.path == "/models/m:1:streamRawPredict"
    assert asked.headers == {"anthropic-beta": "tool-search-tool-2025-10-19"}
    assert asked.body == {
        "anthropic_version": "vertex-2023-10-16",
        **{name: value for name, value in body.items() if name not in {"model", "output_config"}},
        "stream": True,
    }
    assert "effort-2025-11-24" in asked_by.warnings[0]


@pytest.mark.parametrize("maker", ["bedrock", "vertex", "azure", ""])
async def test_answers_of_hosts(maker: str) -> None:
    sse = anthropic_stream(["Hello"])
    events = [line for step in sse for line in step.splitlines() if line.startswith(b"data: ")]
    binary = [aws_event(line.removeprefix(b"data: ")) for line in events]
    async with FakeUpstream() as fake:
        config = ProviderConfig(
            "claude", SourceKind.ANTHROPIC, fake.base_url, "hunter2", models=("m:1",), maker=maker
        )
        source = AnthropicSource(config)
        try:
            if maker in {"bedrock", "vertex"}:
                assert [model.upstream_id for model in await source.list_models()] == ["m:1"]
            fake.requests.clear()
            is_binary = maker == "bedrock"
            stream = Reply(
                steps=binary if is_binary else sse,
                content_type="application/vnd.amazon.eventstream" if is_binary else "text/event-stream",
            )
            fake.script(json_reply(anthropic_message("Hello")), stream, stream)
            whole = await source.complete_message(BODY, MODEL, context())
            native = b"".join([chunk.raw async for chunk in source.stream_message(BODY, MODEL, context())])
            converted = [
                event for event_chunk in [chunk async for chunk in source.stream(BODY, MODEL, context())]
                for event in event_chunk.events
            ]  # fmt: skip
        finally:
            await source.close()
        assert whole.body["content"] == [{"type": "text", "text": "Hello"}]
        assert b'"text":"Hello"' in native
        assert native.endswith(b'data: {"type":"message_stop"}\n\n')
        said = "".join(event["choices"][0]["delta"].get("content") or "" for event in converted)
        assert said == "Hello"
        check_requests(maker, [(item.path, item.headers, item.json) for item in fake.requests])


def check_requests(maker: str, sent: list[tuple[str, Mapping[str, str], Any]]) -> None:
    paths = [path for path, _, _ in sent]
    streamed, whole = {
        "bedrock": ("/model/m%3A1/invoke-with-response-stream", "/model/m%3A1/invoke"),
        "vertex": ("/models/m:1:streamRawPredict", "/models/m:1:rawPredict"),
    }.get(maker, ("/v1/messages", "/v1/messages"))
    assert [path.replace("m:1/", "m%3A1/") for path in paths] == [whole, streamed, streamed]
    for _, headers, body in sent:
        is_bearer = maker in {"bedrock", "vertex"}
        assert headers.get("Authorization") == ("Bearer hunter2" if is_bearer else None)
        assert headers.get("x-api-key") == (None if is_bearer else "hunter2")
        assert ("model" in body) is not is_bearer
        assert ("anthropic_version" in body) is is_bearer
        assert orjson.dumps(body)


async def test_several_keys_of_a_host_are_bearer_tokens() -> None:
    async with FakeUpstream() as fake:
        config = ProviderConfig(
            "claude", SourceKind.ANTHROPIC, fake.base_url, "one", keys=("two",), maker="vertex"
        )
        source = AnthropicSource(config)
        fake.script(*[json_reply(anthropic_message("Hello"))] * 2)
        try:
            for _ in range(2):
                await source.complete_message(BODY, MODEL, context())
        finally:
            await source.close()
        assert [item.headers["Authorization"] for item in fake.requests] == ["Bearer one", "Bearer two"]
        assert all("x-api-key" not in item.headers for item in fake.requests)


def test_betas_of_a_body_are_names() -> None:
    made = requests("https://bedrock-runtime.us-east-1.amazonaws.com", models=("m:1",))
    asked_by = context("x" * 5_000)
    body = {**BODY, "betas": ["y" * 1_000_000, "a b", "two,betas"]}
    asked = made.native(body, MODEL, asked_by, stream=False)
    assert "anthropic_beta" not in asked.body
    (sentence,) = asked_by.warnings
    assert len(sentence) < 300
    assert "yy" not in sentence


async def test_headers_of_the_settings_go_before_those_of_callers(fake: FakeUpstream) -> None:
    config = ProviderConfig(
        "claude",
        SourceKind.ANTHROPIC,
        fake.openai_url,
        headers=(("Anthropic-Version", "2030-01-01"), ("Anthropic-Beta", "ours-1"), ("Anthropic-Team", "a")),
    )
    source = AnthropicSource(config)
    fake.script(json_reply(anthropic_message("a")))
    asked_by = context("theirs-1", anthropic_version="1", anthropic_team="b", anthropic_other="c")
    await source.complete_message(BODY, MODEL, asked_by)
    await source.close()
    sent = fake.requests[0].headers
    names = ("anthropic-version", "anthropic-beta", "anthropic-team", "anthropic-other")
    assert [sent.getall(name) for name in names] == [["2030-01-01"], ["ours-1,theirs-1"], ["a"], ["c"]]
