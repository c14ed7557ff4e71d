"""Tests for gatewayd.dialects.providers.adaptation: what becomes of a field, and what is told of it."""

import copy

import pytest

from gatewayd.dialects.providers.adaptation import adapt
from gatewayd.dialects.providers.family import Family, family_of
from gatewayd.dialects.providers.formats import MAX_SCHEMA_BYTES
from gatewayd.dialects.providers.parts import NO_PICTURE
from gatewayd.dialects.providers.rules import NO_RULES, ImageForm, Rules
from gatewayd.dialects.providers.schemas import MAX_SCHEMA_NODES, is_strict_schema
from gatewayd.dialects.providers.table import find_rules
from tests.fakes.providers.client_requests import CLIENTS, TOOL, claude_code, is_converted, request_of

CHOICE = {"type": "function", "function": {"name": "weather"}}
OTHER_TOOL = {"type": "function", "function": {"name": "other"}}


def rules_of(maker: str, model: str) -> Rules:
    return find_rules(family_of("openai", "", model, "", maker))


@pytest.mark.parametrize(
    ("maker", "model", "given", "expected", "told"),
    [
        ("openai", "gpt-4o", {"max_tokens": 5}, {"max_completion_tokens": 5}, []),
        ("openai", "gpt-4o", {"max_tokens": 5, "max_completion_tokens": 7}, {"max_completion_tokens": 7}, []),
        ("openai", "gpt-4o", {"reasoning_effort": "none"}, {}, []),
        ("openai", "gpt-4o", {"reasoning_effort": "low"}, {}, ["left out reasoning_effort 'low'"]),
        (
            "openai",
            "gpt-5",
            {"reasoning_effort": "none"},
            {"reasoning_effort": "minimal"},
            ["'none' to 'minimal'"],
        ),
        ("openai", "gpt-5", {"reasoning_effort": "max"}, {"reasoning_effort": "high"}, ["'max' to 'high'"]),
        ("openai", "gpt-5", {"reasoning_effort": "x" * 99}, {}, ["left out reasoning_effort"]),
        ("openai", "gpt-5.1", {"thinking": {"type": "adaptive"}}, {"reasoning_effort": "medium"}, []),
        ("openai", "gpt-5.5", {"thinking": {"type": "adaptive"}}, {}, []),
        ("openai", "gpt-5.5", {"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}, []),
        ("openai", "gpt-5.2", {"temperature": 0.3}, {"temperature": 0.3}, []),
        (
            "openai",
            "gpt-5.2",
            {"temperature": 0.3, "reasoning_effort": "low"},
            {"reasoning_effort": "low"},
            ["left out temperature: gpt-5.2 and 5.3 takes it only while reasoning_effort is 'none'"],
        ),
        ("openai", "gpt-5.2", {"logit_bias": {}}, {}, ["left out logit_bias"]),
        ("openai", "gpt-5.5", {"tools": [TOOL]}, None, ["strict of tools", "'medium' to 'none'"]),
        ("openai", "gpt-4o", {"tools": [], "tool_choice": "auto"}, {}, ["only beside tools"]),
        ("openai", "gpt-4o", {"temperature": 3}, {"temperature": 2}, ["changed temperature from 3 to 2"]),
        ("openai", "gpt-4o", {"stop": ["a"] * 9}, {"stop": ["a"] * 4}, ["left out stop[4] and later"]),
        (
            "openai",
            "gpt-4o",
            {"service_tier": "flex"},
            {},
            ["left out service_tier 'flex': gpt-3.5 and gpt-4"],
        ),
        ("deepseek", "deepseek-v4", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, []),
        (
            "deepseek",
            "deepseek-v4",
            {"reasoning_effort": "low"},
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
            ["'low' to 'high'"],
        ),
        (
            "deepseek",
            "deepseek-v4",
            {"thinking": {"type": "enabled", "budget_tokens": 9}, "tool_choice": "required", "tools": [TOOL]},
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high", "tools": [TOOL]},
            ["changed thinking from 'low' to 'high'", "left out tool_choice 'required'"],
        ),
        (
            "kimi",
            "kimi-k2.5",
            {"temperature": 0.2},
            {},
            ["left out temperature 0.2: kimi-k2.5 and newer takes only 1"],
        ),
        ("kimi", "kimi-k2.5", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, []),
        (
            "kimi",
            "kimi-k2.7-code",
            {"reasoning_effort": "none"},
            {"thinking": {"type": "enabled"}},
            ["left out"],
        ),
        (
            "dashscope",
            "qwen-plus",
            {"thinking": {"type": "enabled", "budget_tokens": 5000}, "stream": True},
            {"enable_thinking": True, "thinking_budget": 5000, "stream": True},
            [],
        ),
        ("dashscope", "qwen3-max", {"stream": False}, {"stream": False, "enable_thinking": False}, []),
        (
            "dashscope",
            "qwen3-max",
            {"reasoning_effort": "high"},
            {"enable_thinking": False},
            ["changed enable_thinking to False"],
        ),
        ("mistral", "mistral-large", {"seed": 3}, {"random_seed": 3}, []),
        (
            "mistral",
            "mistral-large",
            {"tools": [TOOL, OTHER_TOOL], "tool_choice": CHOICE},
            {"tools": [TOOL], "tool_choice": "any"},
            [],
        ),
        (
            "openrouter",
            "acme/x",
            {"reasoning_effort": "max"},
            {"reasoning": {"effort": "xhigh"}},
            ["to 'xhigh'"],
        ),
        ("openrouter", "acme/x", {"reasoning": {"effort": "low", "exclude": True}}, None, []),
        ("openrouter", "acme/x", {"thinking": {"type": "adaptive"}}, {"reasoning": {"enabled": True}}, []),
        (
            "openrouter",
            "acme/x",
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            {"reasoning": {"max_tokens": 2048}},
            [],
        ),
        (
            "vllm",
            "qwen3",
            {"reasoning_effort": "none", "chat_template_kwargs": {"x": 1}},
            {"chat_template_kwargs": {"enable_thinking": False, "x": 1}},
            [],
        ),
        ("lmstudio", "x", {"response_format": {"type": "json_object"}}, None, []),
        ("ollama", "x", {"tools": [OTHER_TOOL], "tool_choice": "none"}, {}, ["left out tools"]),
        ("ollama", "x", {"tools": [OTHER_TOOL], "tool_choice": "auto"}, {"tools": [OTHER_TOOL]}, []),
        ("ollama", "x", {"n": 2}, {}, ["left out n: Ollama does not take it"]),
        ("xai", "grok-4.3", {"stop": ["x"]}, {}, ["left out stop"]),
        ("gemini", "gemini-2.5-flash", {"odd": 1}, {}, ["left out odd"]),
        ("gemini", "gemini-2.5-flash", {"odd": None}, {}, []),
        (
            "groq",
            "qwen3-32b",
            {"reasoning_effort": "high"},
            {"reasoning_effort": "default"},
            ["to 'default'"],
        ),
        ("tolerant", "gpt-5", {"temperature": 1}, {"temperature": 1}, []),
        ("", "llama", {"odd": 1, "reasoning_effort": "max"}, {"odd": 1, "reasoning_effort": "max"}, []),
        ("", "gpt-5", {"temperature": 1}, {}, ["left out temperature"]),
        ("", "claude-opus-4-7", {"temperature": 1}, {}, ["left out temperature"]),
    ],
)
def test_fields(maker: str, model: str, given: dict, expected: dict | None, told: list[str]) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], **given}
    before = copy.deepcopy(body)
    changed, warnings = adapt(body, rules_of(maker, model))
    assert body == before
    if expected is not None:
        assert {
            name: value for name, value in changed.items() if name not in {"model", "messages"}
        } == expected
    assert len(warnings) == len(told)
    assert all(words in sentence for words, sentence in zip(told, warnings, strict=True)), warnings


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("model", ["gpt-5.6-sol", "gpt-4o", "o3"])
def test_nothing_of_the_request_is_written_to(client: str, model: str) -> None:
    body = request_of(client, model)
    before = copy.deepcopy(body)
    adapt(body, rules_of("openai", model), is_converted=is_converted(client))
    assert body == before


def test_a_request_without_a_rule_is_itself() -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0.5}
    for rules in (
        NO_RULES,
        rules_of("openai", "gpt-4o"),
        rules_of("vllm", "x"),
        rules_of("gemini", "gemini-3-pro"),
    ):
        assert adapt(body, rules)[0] is body


def test_a_converted_request_to_an_unknown_maker_has_words_that_most_know() -> None:
    changed, warnings = adapt(claude_code(), NO_RULES, is_converted=True)
    assert changed["reasoning_effort"] == "high"
    assert warnings == [
        "changed reasoning_effort from 'max' to 'high': this provider takes only none, minimal, low,"
        " medium, high"
    ]
    assert (
        adapt(claude_code(thinking={"type": "disabled"}), NO_RULES, is_converted=True)[0]["reasoning_effort"]
        == "none"
    )


def test_roles_of_instructions() -> None:
    messages = [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, "odd"]
    for model, role in (("gpt-4o", "system"), ("gpt-5", "developer"), ("o1-mini", "user")):
        changed, warnings = adapt({"messages": messages}, rules_of("openai", model))
        assert [message["role"] for message in changed["messages"][:2]] == [role, role]
        assert warnings == []
    assert adapt({"messages": messages}, rules_of("azure", "our-own"))[0]["messages"] is messages


def test_pictures() -> None:
    address = {"type": "image_url", "image_url": {"url": "https://a.test/b.png"}}
    data = {"type": "image_url", "image_url": "data:image/png;base64,AA=="}
    odd = {"type": "image_url", "image_url": 7}
    body = {"messages": [{"role": "user", "content": [address, data, odd, "text", address]}]}
    changed, warnings = adapt(body, Rules(title="X", images=ImageForm.DATA))
    gone = {"type": "text", "text": NO_PICTURE}
    whole = {"type": "image_url", "image_url": {"url": data["image_url"]}}
    assert changed["messages"][0]["content"] == [gone, whole, odd, "text", gone]
    assert warnings == ["left out addresses of pictures: X does not take them"]
    changed, warnings = adapt(body, Rules(title="X", images=ImageForm.NONE))
    assert changed["messages"][0]["content"] == [gone, gone, gone, "text", gone]


def test_a_schema_becomes_an_instruction() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    body = {"messages": [{"role": "system", "content": "a"}, {"role": "user"}], "response_format": form}
    changed, warnings = adapt(body, rules_of("deepseek", "deepseek-chat"))
    assert changed["response_format"] == {"type": "json_object"}
    assert [message["role"] for message in changed["messages"]] == ["system", "system", "user"]
    assert changed["messages"][1]["content"].endswith('{"type":"object"}')
    assert "changed to an instruction" in warnings[0]
    form["json_schema"]["schema"] = {"description": "x" * MAX_SCHEMA_BYTES}
    changed, warnings = adapt(body, rules_of("deepseek", "deepseek-chat"))
    assert len(changed["messages"]) == 2
    assert warnings[0].startswith("left out")


STRICT = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("change", "is_strict"),
    [
        ({}, True),
        ({"required": []}, False),
        ({"required": ["b"]}, False),
        ({"required": ["a", "a"]}, False),
        ({"additionalProperties": True}, False),
        ({"properties": {"a": {"type": "string", "minLength": 1}}}, False),
        ({"properties": {"a": {"$ref": "#/$defs/b", "description": "x"}}}, False),
        ({"properties": {"a": {"type": "array", "items": {}}}}, False),
        ({"properties": {"a": {"anyOf": [STRICT, {"type": "null"}]}}}, True),
        ({"properties": {"a": {"anyOf": [{**STRICT, "required": []}]}}}, False),
        ({"$defs": {"b": {"oneOf": []}}}, False),
        ({"properties": {"a": 7}}, False),
        ({"properties": [], "required": []}, True),
        ({"properties": [1]}, False),
    ],
)
def test_strict_schemas(change: dict, is_strict: bool) -> None:
    assert is_strict_schema({**STRICT, **change}) is is_strict


def test_a_schema_that_is_deep_or_wide_is_not_strict_and_costs_little() -> None:
    deep: dict = {"type": "string"}
    for _ in range(MAX_SCHEMA_NODES + 1):
        deep = {**STRICT, "properties": {"a": deep}}
    assert not is_strict_schema(deep)
    names = [str(number) for number in range(MAX_SCHEMA_NODES + 1)]
    wide = {**STRICT, "properties": {name: {"type": "string"} for name in names}, "required": names}
    assert not is_strict_schema(wide)
    assert not is_strict_schema(None)


def test_what_goes_to_responses_keeps_its_effort_beside_tools() -> None:
    body = {"messages": [], "tools": [OTHER_TOOL], "reasoning_effort": "high"}
    rules = find_rules(Family("openai", "gpt-5.6-sol", "openai"))
    assert adapt(body, rules, is_responses=True) == (body, [])
    assert adapt(body, rules)[0]["reasoning_effort"] == "none"
