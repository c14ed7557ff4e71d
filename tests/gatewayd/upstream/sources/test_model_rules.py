"""Tests for gatewayd.upstream.sources.model_rules, and of sources over strict providers."""

import logging
from collections.abc import Sequence

import orjson
import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.dialects.providers.rules import CONVERTED_RULES, NO_RULES, Protocol
from gatewayd.errors import GatewayError
from gatewayd.upstream.sources import model_rules
from gatewayd.upstream.sources.anthropic import AnthropicSource
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.model_rules import ModelRules
from gatewayd.upstream.sources.openai import OpenAiSource
from tests.fakes.providers.client_requests import CLIENTS, is_converted, request_of
from tests.fakes.providers.strict import histories, makers, minimax, openai
from tests.fakes.providers.strict.anthropic import StrictAnthropic
from tests.fakes.providers.strict.base import Check, StrictProvider, StrictRefusalError

MODEL = Model("m", "m", "openai", "acme", "m")
STAND_INS: Sequence[tuple[str, str, Sequence[Check]]] = [
    *(("openai", model, openai.checks(model)) for model in openai.FAMILIES if not model.startswith("gpt-6")),
    *((maker, model, [check]) for maker, models in makers.MAKERS.items() for model, check in models.items()),
]
CLAUDES = [
    *("claude-3-5-haiku-20241022", "claude-haiku-4-5", "claude-opus-4-1", "claude-opus-4-5"),
    *("claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-7", "claude-sonnet-5", "claude-fable-5"),
]
ENGINES = {"vllm": "vllm", "llamacpp": "llamacpp", "ollama": "library", "lmstudio": "organization_owner"}


def rules(
    base_url: str = "http://acme.test", kind: SourceKind = SourceKind.OPENAI, **more: object
) -> ModelRules:
    return ModelRules(ProviderConfig("acme", kind, base_url, **more))  # type: ignore[arg-type]


def named(model_id: str, listed: dict | None = None, **more: object) -> Model:
    return Model(model_id, model_id, "x", "acme", model_id, detail={"openai": listed or {}}, **more)  # type: ignore[arg-type]


def test_a_warning_is_told_always_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(model_rules, "adapt", lambda body, rules, **_: ({"changed": True}, ["left out x"]))
    contexts = [CallContext(name, "u1", is_converted=True) for name in ("r1", "r2")]
    chosen = rules()
    with caplog.at_level(logging.WARNING):
        for context in contexts:
            assert chosen.adapt({"x": 1}, MODEL, context) == {"changed": True}
    assert [context.warnings for context in contexts] == [["left out x"], ["left out x"]]
    assert [record.message for record in caplog.records] == ["request changed: left out x"]


def test_one_caller_cannot_use_up_the_memory_of_what_was_logged(caplog: pytest.LogCaptureFixture) -> None:
    chosen, context = rules(), CallContext("r1", "u1")
    flood = [f"left out x{number}, y of tools: Groq does not take it" for number in range(300)]
    flood += [f"changed effort from 'a{number}' to 'low': Groq takes no other" for number in range(300)]
    with caplog.at_level(logging.WARNING):
        for sentence in flood * 2:
            chosen.warn(sentence, MODEL, context)
        assert len(caplog.records) == 2 * model_rules.MAX_LOGGED_OF_FORM
        caplog.clear()
        for model in (MODEL, named("other")):
            for _ in range(2):
                chosen.warn("left out thinking: max_tokens leaves no room for 1024 tokens", model, context)
    assert len(caplog.records) == 2
    assert len(context.warnings) == len(flood) * 2 + 4


@pytest.mark.parametrize(
    ("maker", "model", "checks"), STAND_INS, ids=lambda value: value if isinstance(value, str) else ""
)
async def test_no_client_is_refused_by_a_strict_provider(
    maker: str, model: str, checks: Sequence[Check]
) -> None:
    """A stand-in that lists its models under the name of an engine needs no setting."""
    owned_by = ENGINES.get(maker, "strict")
    async with StrictProvider(*checks, models=[model], owned_by=owned_by) as provider:
        config = ProviderConfig(
            "acme", SourceKind.OPENAI, provider.base_url, maker="" if maker in ENGINES else maker
        )
        source = OpenAiSource(config)
        (found,) = await source.list_models()
        for client in CLIENTS:
            context = CallContext("r1", "u1", is_converted=is_converted(client))
            body = request_of(client, model)
            if "tools" in body and model in {"gpt-5.4", "gpt-5.5", "gpt-5.6-sol"}:
                # These go to Responses as soon as they have tools.
                body = {name: value for name, value in body.items() if name not in {"tools", "tool_choice"}}
            if body.get("stream"):
                async for _ in source.stream(body, found, context):
                    pass
            else:
                await source.complete(body, found, context)
        await source.close()
    assert provider.refused == []
    assert len(provider.answered) == len(CLIENTS)


LONG_CHAT: Sequence[dict] = [
    {"role": "system", "content": "be short"},
    {"role": "developer", "content": "be kind"},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "user", "content": "what now?"},
    {"role": "tool", "tool_call_id": "gone", "content": "late"},
    {"role": "system", "content": "be quick"},
    {"role": "user", "content": "go on"},
]  # fmt: skip
"""Several instructions, one in the middle, a call without a result and a result without a call."""


@pytest.mark.parametrize(
    ("maker", "model", "checks"),
    [
        ("cohere", "command-a-03-2025", [makers.cohere, histories.paired]),
        ("minimax", "MiniMax-M2.1", [makers.minimax, minimax.instructions, minimax.results]),
    ],
)
async def test_cohere_and_minimax_take_what_they_would_refuse(
    maker: str, model: str, checks: Sequence[Check]
) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    fields = {
        "temperature": 0 if maker == "minimax" else 1.7,
        "n": 1,
        "max_completion_tokens": 9,
        "store": True,
    }
    body = {"model": model, "messages": list(LONG_CHAT), "tools": [tool], "tool_choice": "auto", **fields}
    async with StrictProvider(*checks, models=[model]) as provider:
        refused = 0
        for check in checks:
            try:
                check(body)
            except StrictRefusalError:
                refused += 1
        assert refused >= 2
        source = OpenAiSource(ProviderConfig("acme", SourceKind.OPENAI, provider.base_url, maker=maker))
        (found,) = await source.list_models()
        context = CallContext("r1", "u1")
        await source.complete(await source.prepare(body, found, context), found, context)
        await source.close()
    assert provider.refused == []
    (sent,) = provider.answered
    assert (sent["max_tokens"], sent["temperature"]) == (9, 0.01 if maker == "minimax" else 1)
    assert any("temperature" in sentence for sentence in context.warnings)
    texts = str(sent["messages"])
    assert all(text in texts for text in ("be short", "be kind", "be quick", "late"))


@pytest.mark.parametrize("model", CLAUDES)
async def test_no_client_of_another_protocol_is_refused_by_anthropic(model: str) -> None:
    """Requests that are made from chat requests; those in the protocol itself are passed on as they are."""
    async with StrictAnthropic(models=[model]) as provider:
        source = AnthropicSource(ProviderConfig("acme", SourceKind.ANTHROPIC, provider.base_url, "hunter2"))
        (found,) = await source.list_models()
        for client in CLIENTS:
            context = CallContext("r1", "u1", is_converted=is_converted(client))
            body = await source.prepare(request_of(client, model), found, context)
            if body.get("stream"):
                async for _ in source.stream(body, found, context):
                    pass
            else:
                await source.complete(body, found, context)
        await source.close()
    assert [refused.body for refused in provider.refused] == []
    assert len(provider.answered) == len(CLIENTS)


def test_rules_are_worked_out_once_for_a_model() -> None:
    chosen = rules("https://api.openai.com/v1")
    model = named("gpt-5")
    assert chosen.of(model) is chosen.of(model)
    assert chosen.of(named("gpt-5", {"x": 1})).title == "gpt-5"
    assert rules().of(named("llama")) is NO_RULES
    assert rules().of(named("llama")) is not CONVERTED_RULES


def test_a_plain_request_to_a_tolerant_source_stays_as_it_is() -> None:
    chosen, model, context = rules(), named("llama"), CallContext("r1", "u1")
    body = {**request_of("plain", "llama"), "temperature": 0.3, "max_tokens": 100}
    assert chosen.adapt(body, model, context) is body


def test_remembered_rules_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_rules, "MAX_REMEMBERED_MODELS", 3)
    chosen = rules()
    for number in range(10):
        chosen.of(named(f"m{number}"))
    assert len(chosen._chosen) <= 3


def test_the_family_of_a_record_goes_before_the_id() -> None:
    chosen = rules("https://acme.openai.azure.com")
    assert chosen.of(named("prod")).title == "Azure"
    assert chosen.of(named("prod", family="gpt-5.2")).title == "gpt-5.2 and 5.3"


def test_live_lists_go_before_tables_and_settings_before_those_and_records_last() -> None:
    listed = {
        "id": "claude-opus-4-6",
        "max_input_tokens": 1_000_000,
        "max_tokens": 5_000,
        "capabilities": {
            "effort": {"supported": True, "low": {"supported": True}, "max": {"supported": False}},
            "thinking": {
                "supported": True,
                "types": {"enabled": {"supported": True}, "adaptive": {"supported": False}},
            },
        },
    }
    changes = orjson.dumps({"max_output_tokens": 300}).decode()
    more = {"base_url": "https://api.anthropic.com", "kind": SourceKind.ANTHROPIC}
    live = rules(**more).of(named("claude-opus-4-6", listed))
    assert (live.efforts, live.thinking_types, live.max_output) == (("low",), ("enabled", "disabled"), 5_000)
    set_by = rules(**more, rules=(("claude-*", changes), ("other*", "{}"))).of(
        named("claude-opus-4-6", listed)
    )
    assert set_by.max_output == 300
    recorded = named("claude-opus-4-6", listed, rules={"max_output_tokens": 7, "protocol": "responses"})
    last = rules(**more, rules=(("claude-*", changes),)).of(recorded)
    assert (last.max_output, last.protocol) == (7, Protocol.RESPONSES)
    with pytest.raises(GatewayError, match=r"meta\.provider_rules\.drop"):
        rules().of(named("x", rules={"drop": 7}))


async def test_rules_of_messages_can_be_set() -> None:
    changes = orjson.dumps({"system_messages": "first", "drop_empty_texts": True}).decode()
    chosen = rules(rules=(("x-*", changes),))
    plain, set_by = named("y-1"), named("x-1")
    assert not chosen.repairs(plain)
    assert chosen.repairs(set_by)
    messages = [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}]
    body, context = {"messages": messages}, CallContext("r1", "u1")
    assert await chosen.repair(body, plain, context) is body
    repaired = (await chosen.repair(body, set_by, context))["messages"]
    assert [message["role"] for message in repaired if message["role"] == "system"] in ([], ["system"])
    assert repaired != messages


@pytest.mark.parametrize(
    ("listed", "dropped", "efforts"),
    [
        ({"supported_parameters": ["temperature", "reasoning"]}, {"seed", "top_k", "stop"}, ("none",)),
        ({"supported_parameters": ["seed"]}, {"temperature"}, ()),
        ({"supported_parameters": "seed"}, set(), ("none",)),
        ({"supported_parameters": [7, None]}, {"temperature"}, ()),
        ({}, set(), ("none",)),
    ],
)
def test_what_the_list_of_openrouter_tells(listed: dict, dropped: set[str], efforts: tuple[str, ...]) -> None:
    found = rules("https://openrouter.ai/api/v1").of(named("acme/x", listed))
    assert dropped <= found.dropped
    assert "temperature" in found.dropped or "temperature" not in dropped
    assert (found.efforts or ())[: len(efforts)] == efforts
    limited = rules("https://openrouter.ai/api/v1").of(
        named("acme/x", {**listed, "top_provider": {"max_completion_tokens": 9}})
    )
    assert limited.max_output == 9


@pytest.mark.parametrize("limit", [0, -1, True, "9", 10**12, None])
def test_odd_limits_of_a_list_are_not_believed(limit: object) -> None:
    assert rules().of(named("m", {"max_completion_tokens": limit})).max_output == 0
