"""Tests for gatewayd.dialects.providers.message_request: chat requests for models of Anthropic."""

from typing import Any

import pytest

from gatewayd.dialects.anthropic.source import to_request
from gatewayd.dialects.providers.family import Family, family_of
from gatewayd.dialects.providers.message_request import (
    MAX_CACHE_BLOCKS,
    adapt_message_request,
    capabilities_of,
    limit_cache,
)
from gatewayd.dialects.providers.rules import NO_RULES
from gatewayd.dialects.providers.table import find_message_rules
from tests.fakes.providers.client_requests import CLIENTS, TOOL, request_of

MESSAGES = [{"role": "user", "content": "Hi"}]
ENABLED = {"type": "enabled", "budget_tokens": 9_000}
OLD, BOTH, NEW = "claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-7"


def asked(model: str, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    """The request of the messages protocol for a chat request, and what is told."""
    rules = find_message_rules(family_of("anthropic", "api.anthropic.com", model))
    request = to_request({"model": model, "messages": MESSAGES, **fields}, capabilities_of(rules))
    warnings: list[str] = []
    adapt_message_request(request, rules, warnings)
    kept = {name: value for name, value in request.items() if name not in {"model", "messages", "tools"}}
    return kept, warnings


@pytest.mark.parametrize(
    ("model", "given", "expected", "told"),
    [
        (OLD, {"max_tokens": 100_000}, {"max_tokens": 64_000}, ["from 100000 to 64000"]),
        ("claude-3-haiku-20240307", {"max_tokens": 9_000}, {"max_tokens": 4_096}, ["to 4096"]),
        (NEW, {"max_tokens": 100_000}, {"max_tokens": 100_000}, []),
        (
            OLD,
            {"max_tokens": 5, "temperature": 1.5},
            {"max_tokens": 5, "temperature": 1},
            ["changed temperature to 1"],
        ),
        (
            OLD,
            {"max_tokens": 5, "temperature": 0.5, "top_p": 0.5},
            {"max_tokens": 5, "temperature": 0.5},
            ["left out top_p"],
        ),
        (OLD, {"max_tokens": 5, "top_k": 3}, {"max_tokens": 5, "top_k": 3}, []),
        (NEW, {"max_tokens": 5, "temperature": 1, "top_k": 3}, {"max_tokens": 5}, ["temperature", "top_k"]),
        (
            NEW,
            {"max_tokens": 10_000, "thinking": ENABLED},
            {"max_tokens": 10_000, "thinking": {"type": "adaptive"}},
            ["changed thinking to 'adaptive': Claude Opus 4.7 and 4.8 takes no budget"],
        ),
        (BOTH, {"max_tokens": 10_000, "thinking": ENABLED}, {"max_tokens": 10_000, "thinking": ENABLED}, []),
        (
            OLD,
            {"max_tokens": 10_000, "thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}},
            {"max_tokens": 10_000, "thinking": {"type": "enabled", "budget_tokens": 8192}},
            ["budget of 8192", "left out effort 'medium'"],
        ),
        (
            OLD,
            {"max_tokens": 4_000, "thinking": ENABLED},
            {"max_tokens": 4_000, "thinking": {"type": "enabled", "budget_tokens": 3_999}},
            ["budget_tokens to 3999"],
        ),
        (OLD, {"max_tokens": 1_024, "thinking": ENABLED}, {"max_tokens": 1_024}, ["no room for 1024 tokens"]),
        (
            OLD,
            {"max_tokens": 10_000, "thinking": ENABLED, "temperature": 0.5, "top_p": 0.97, "top_k": 3},
            {"max_tokens": 10_000, "thinking": ENABLED, "top_p": 0.97},
            ["left out temperature: not beside", "left out top_k: not beside"],
        ),
        (
            OLD,
            {"max_tokens": 10_000, "thinking": ENABLED, "tools": [TOOL], "tool_choice": "required"},
            {"max_tokens": 10_000, "tool_choice": {"type": "any"}},
            ["left out thinking: not beside a tool"],
        ),
        (
            "claude-fable-5",
            {
                "max_tokens": 10,
                "tools": [TOOL],
                "tool_choice": {"type": "function", "function": {"name": "weather"}},
            },
            {"max_tokens": 10, "tool_choice": {"type": "auto"}},
            ["changed tool_choice to 'auto'"],
        ),
        (
            "claude-opus-4-5",
            {"max_tokens": 10, "output_config": {"effort": "max"}},
            {"max_tokens": 10, "output_config": {"effort": "high"}},
            ["from 'max' to 'high'"],
        ),
        (
            BOTH,
            {"max_tokens": 10, "output_config": {"effort": "xhigh"}},
            {"max_tokens": 10, "output_config": {"effort": "high"}},
            ["from 'xhigh' to 'high'"],
        ),
        (
            NEW,
            {"max_tokens": 10, "reasoning_effort": "none"},
            {"max_tokens": 10, "thinking": {"type": "disabled"}},
            [],
        ),
        (
            "claude-opus-5",
            {"max_tokens": 10, "thinking": {"type": "disabled"}, "output_config": {"effort": "max"}},
            {"max_tokens": 10, "thinking": {"type": "disabled"}, "output_config": {"effort": "high"}},
            ["from 'max' to 'high'"],
        ),
        (
            "claude-opus-5",
            {"max_tokens": 10, "thinking": {"type": "disabled"}, "output_config": {"effort": "low"}},
            {"max_tokens": 10, "thinking": {"type": "disabled"}, "output_config": {"effort": "low"}},
            [],
        ),
        (
            "claude-omega-9",
            {"max_tokens": 10, "reasoning_effort": "xhigh"},
            {"max_tokens": 10, "thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}},
            [],
        ),
    ],
)
def test_fields(model: str, given: dict, expected: dict, told: list[str]) -> None:
    request, warnings = asked(model, **given)
    assert request == expected
    assert len(warnings) == len(told)
    assert all(words in sentence for words, sentence in zip(told, warnings, strict=True)), warnings


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("model", [OLD, BOTH, NEW, "claude-fable-5", "claude-3-haiku"])
def test_what_clients_send_keeps_the_rules_of_the_protocol(client: str, model: str) -> None:
    body = {
        name: value for name, value in request_of(client, model).items() if name not in {"messages", "model"}
    }
    request, _ = asked(model, **body)
    thinking = request.get("thinking", {})
    assert model != NEW or not {"temperature", "top_p", "top_k"} & request.keys()
    assert not {"temperature", "top_p"} <= request.keys()
    assert thinking.get("type") != "enabled" or 1024 <= thinking["budget_tokens"] < request["max_tokens"]
    assert thinking.get("type") != "enabled" or model in {OLD, BOTH, "claude-3-haiku"}
    assert thinking.get("type") != "adaptive" or model in {BOTH, NEW, "claude-fable-5"}
    assert model != "claude-fable-5" or request.get("tool_choice", {}).get("type") not in {"any", "tool"}


def test_only_the_last_marks_of_the_cache_stay() -> None:
    marked = {"cache_control": {"type": "ephemeral"}}
    parts = [{"type": "text", "text": str(number), **marked} for number in range(4)]
    tool = {**TOOL, **marked}
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "a", **marked}]},
        {"role": "user", "content": parts},
    ]
    body = {"model": NEW, "messages": messages, "tools": [tool]}
    rules = find_message_rules(Family("anthropic", NEW, "anthropic"))
    request = to_request(body, capabilities_of(rules))
    warnings: list[str] = []
    adapt_message_request(request, rules, warnings)
    limit_cache(request, warnings)
    assert str(request).count("cache_control") == MAX_CACHE_BLOCKS
    assert "cache_control" not in str(request["tools"]) + str(request["system"])
    assert str(body).count("cache_control") == 6
    assert warnings == ["left out cache_control of all but the last 4 blocks"]


def test_only_claude_has_rules() -> None:
    assert find_message_rules(family_of("anthropic", "api.deepseek.com", "deepseek-v4")) is NO_RULES
    assert find_message_rules(
        family_of("anthropic", "bedrock.amazonaws.com", f"us.anthropic.{NEW}-v1:0")
    ).title
    assert capabilities_of(NO_RULES) is None
