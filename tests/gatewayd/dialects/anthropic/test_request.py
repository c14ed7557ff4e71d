"""Tests for gatewayd.dialects.anthropic.request: the fields beside the messages."""

import hashlib

import pytest

from gatewayd.dialects.anthropic.content import OmittedFields
from gatewayd.dialects.anthropic.request import add_fields
from gatewayd.errors import ErrorKind, GatewayError

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
TOOL = {"name": "f", "input_schema": SCHEMA}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def convert(omitted=None, **fields):
    body = {}
    add_fields(body, {"max_tokens": 5, **fields}, omitted or OmittedFields())
    assert body.pop("max_tokens") == 5
    return body


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {}),
        ({"temperature": 0, "top_p": 1.0, "top_k": 3}, {"temperature": 0, "top_p": 1.0, "top_k": 3}),
        ({"temperature": None, "tools": None, "metadata": None, "stop_sequences": None}, {}),
        ({"stop_sequences": ["a"]}, {"stop": ["a"]}),
        ({"stop_sequences": []}, {}),
        ({"service_tier": "auto"}, {"service_tier": "auto"}),
        ({"metadata": {"user_id": "u"}}, {"metadata": {"user_id": "u"}, "user": "u"}),
        ({"metadata": {}}, {"metadata": {}}),
        ({"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        (
            {"output_config": {"effort": "max"}},
            {"output_config": {"effort": "max"}, "reasoning_effort": "max"},
        ),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}},
        ),
        ({"output_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
        ({"tools": []}, {}),
        ({"tool_choice": {"type": "any"}}, {}),
        ({"tools": [TOOL]}, {"tools": [FUNCTION]}),
        ({"tools": [{**TOOL, "type": "custom"}]}, {"tools": [FUNCTION]}),
        (
            {"tools": [{"name": "f", "description": "d"}]},
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {
                            "name": "f",
                            "parameters": {"type": "object", "properties": {}},
                            "description": "d",
                        },
                    }
                ]
            },
        ),
        ({"tools": [TOOL], "tool_choice": {"type": "auto"}}, {"tools": [FUNCTION], "tool_choice": "auto"}),
        ({"tools": [TOOL], "tool_choice": {"type": "any"}}, {"tools": [FUNCTION], "tool_choice": "required"}),
        ({"tools": [TOOL], "tool_choice": {"type": "none"}}, {"tools": [FUNCTION], "tool_choice": "none"}),
        (
            {
                "tools": [TOOL],
                "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
            },
            {
                "tools": [FUNCTION],
                "tool_choice": {"type": "function", "function": {"name": "f"}},
                "parallel_tool_calls": False,
            },
        ),
    ],
)
def test_fields(fields, expected):
    assert convert(**fields) == expected


@pytest.mark.parametrize(
    ("budget", "effort"),
    [(1, "low"), (4_095, "low"), (4_096, "medium"), (16_383, "medium"), (16_384, "high"), (99_999, "high")],
)
def test_a_budget_is_an_effort(budget, effort):
    thinking = {"type": "enabled", "budget_tokens": budget}
    assert convert(thinking=thinking) == {"thinking": thinking, "reasoning_effort": effort}
    assert convert(thinking=thinking, reasoning_effort="none")["reasoning_effort"] == "none"


def test_a_long_user_fits():
    user = convert(metadata={"user_id": "u" * 65})["user"]
    assert user == hashlib.sha256(b"u" * 65).hexdigest()
    assert len(user) == 64
    assert convert(metadata={"user_id": "u" * 64})["user"] == "u" * 64


def test_tools_of_the_provider_are_left_out_and_named():
    omitted = OmittedFields()
    choice = {"type": "tool", "name": "web_search"}
    body = convert(omitted, tools=[TOOL, SEARCH], tool_choice=choice)
    assert body == {"tools": [FUNCTION]}
    [sentence] = omitted.sentences()
    assert "tools[1] of type 'web_search_20250305', tool_choice" in sentence
    assert convert(tools=[SEARCH], tool_choice=choice) == {}


def test_other_fields_of_tools_are_named_once():
    omitted = OmittedFields()
    assert convert(omitted, tools=[{**TOOL, "strict": True}] * 3) == {"tools": [FUNCTION] * 3}
    assert omitted.sentences()[0].startswith("cannot convert strict of tools: ")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"temperature": "warm"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_k": 1.5}, "top_k"),
        ({"service_tier": 1}, "service_tier"),
        ({"metadata": "u"}, "metadata"),
        ({"thinking": True}, "thinking"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"stop_sequences": "a"}, "stop_sequences"),
        ({"stop_sequences": [1]}, "stop_sequences"),
        ({"output_config": 1}, "output_config"),
        ({"output_config": {"effort": "huge"}}, "output_config.effort"),
        ({"output_config": {"effort": ["low"]}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format"),
        ({"output_format": "json"}, "output_format"),
        ({"tools": {}}, "tools"),
        ({"tools": ["f"]}, "tools[0]"),
        ({"tools": [TOOL, {"input_schema": {}}]}, "tools[1].name"),
        ({"tools": [{**TOOL, "description": 1}]}, "tools[0].description"),
        ({"tools": [{**TOOL, "input_schema": "x"}]}, "tools[0].input_schema"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
    ],
)
def test_a_wrong_field_is_named(fields, param):
    with pytest.raises(GatewayError) as caught:
        convert(**fields)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == param
    assert param in caught.value.message
