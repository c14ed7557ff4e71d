"""Tests for gatewayd.dialects.responses.request and tools: fields and tools of requests."""

from typing import Any

import pytest

from gatewayd.dialects.responses.request import parse_request
from gatewayd.dialects.responses.tools import (
    ToolIdentity,
    ToolNames,
    custom_arguments,
    custom_input,
    function_name,
)
from gatewayd.errors import GatewayError

FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}
SCHEMA = {"type": "object", "properties": {}}


def fields(**given: Any) -> dict[str, Any]:
    return parse_request({"model": "m", "input": "hi", **given}).fields


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"temperature": None, "top_p": 0.5}, {"top_p": 0.5}),
        ({"max_output_tokens": 9}, {"max_tokens": 9}),
        ({"reasoning": {"effort": "high", "summary": "auto"}}, {"reasoning_effort": "high"}),
        ({"text": {"verbosity": "low", "format": {"type": "text"}}}, {"verbosity": "low"}),
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
                }
            },
        ),
        ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
        ({"tools": [], "tool_choice": "auto", "parallel_tool_calls": False}, {}),
        ({"prompt_cache_key": "k", "user": "u", "service_tier": "flex"}, ...),
    ],
)
def test_fields_of_the_chat_request(given: dict[str, Any], expected: Any) -> None:
    assert fields(**given) == (given if expected is ... else expected)


def test_a_function_keeps_its_schema_and_is_strict_only_if_asked() -> None:
    made = fields(tools=[{**FUNCTION, "description": "d", "strict": True}, {**FUNCTION, "name": "g"}])
    assert made["tools"] == [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"type": "object"}, "description": "d", "strict": True},
        },
        {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}},
    ]


def test_a_custom_tool_takes_one_text_and_its_grammar_is_told() -> None:
    form = {"type": "grammar", "syntax": "lark", "definition": "start: WORD"}
    (tool,) = fields(tools=[{"type": "custom", "name": "p", "description": "d", "format": form}])["tools"]
    function = tool["function"]
    assert function["parameters"]["required"] == ["input"]
    assert "(lark)" in function["description"]
    assert function["description"].endswith("start: WORD")


def test_tools_of_namespaces_have_distinct_names_that_providers_accept() -> None:
    names = ToolNames()
    given = [
        ToolIdentity("read", "files"),
        ToolIdentity("files__read"),
        ToolIdentity("read", "odd name.ä"),
        ToolIdentity("r" * 80, "files"),
        ToolIdentity("r" * 81, "files"),
    ]
    made = [names.add(tool) for tool in given]
    assert made[0] == "files__read"
    assert len(set(made)) == len(made)
    assert all(len(name) <= 64 and name.isascii() for name in made)
    assert [names.tool(name) for name in made] == given
    assert [names.function(tool.name, tool.namespace) for tool in given] == made
    assert names.tool("unknown") == ToolIdentity("unknown")
    assert names.function("gone", "n") == function_name("gone", "n") == "n__gone"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (custom_arguments("a\nb"), "a\nb"),
        ("{}", ""),
        ("plain", "plain"),
        ('{"input": 7}', '{"input": 7}'),
        ('{"other": "x"}', '{"other": "x"}'),
    ],
)
def test_input_of_a_custom_tool(arguments: str, expected: str) -> None:
    assert custom_input(arguments) == expected


def test_allowed_tools_are_the_only_ones() -> None:
    space = {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]}
    choice = {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "g", "namespace": "n"}, {"type": "web_search"}],
    }
    made = fields(tools=[FUNCTION, space], tool_choice=choice)
    assert [tool["function"]["name"] for tool in made["tools"]] == ["n__g"]
    assert made["tool_choice"] == "required"


def test_a_chosen_tool() -> None:
    made = fields(tools=[FUNCTION], tool_choice={"type": "function", "name": "f"}, parallel_tool_calls=False)
    assert made["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert made["parallel_tool_calls"] is False


def test_what_no_chat_request_has_is_left_out_with_a_warning() -> None:
    asked = parse_request(
        {
            "model": "m",
            "input": "hi",
            "tools": [{"type": "web_search"}, {"type": "image_generation"}],
            "tool_choice": {"type": "web_search"},
            "truncation": "auto",
            "context_management": [{"type": "compaction"}],
            "max_tool_calls": 3,
            "odd": None,
        }
    )
    assert asked.fields == {}
    (sentence,) = asked.left_out.sentences()
    for name in ("'web_search'", "'image_generation'", "tool_choice", "truncation", "context_management"):
        assert name in sentence
    assert "max_tool_calls" in sentence
    assert "odd" not in sentence
    quiet = parse_request({"model": "m", "truncation": "disabled", "background": False, "stream": False})
    assert quiet.left_out.sentences() == []


def test_a_response_repeats_its_request() -> None:
    echo = parse_request({"model": "m", "tools": [FUNCTION], "metadata": {"a": "b"}, "store": False}).echo
    assert echo["tools"] == [{**FUNCTION, "strict": False}]
    assert (echo["metadata"], echo["store"], echo["background"]) == ({"a": "b"}, False, False)
    assert (echo["parallel_tool_calls"], echo["tool_choice"], echo["truncation"]) == (
        True,
        "auto",
        "disabled",
    )
    assert echo["text"] == {"format": {"type": "text"}}
    assert echo["reasoning"] == {"effort": None, "summary": None}


def test_own_fields_are_options_but_those_of_stored_chats() -> None:
    asked = parse_request(
        {"model": "m", "files": [{"type": "file", "id": "f"}], "tool_ids": ["t"], "chat_id": "c", "id": "i"}
    )
    assert asked.options == {"tool_ids": ["t"]}
    assert asked.files == [{"type": "file", "id": "f"}]
    chat = asked.chat_request([{"role": "user", "content": "hi"}], ["g", "g"])
    assert chat.files == [{"type": "file", "id": "f"}, {"type": "file", "id": "g"}]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"model": 7}, "model"),
    ({"Model": "x"}, "model"),
    ({"stream": "yes"}, "stream"),
    ({"store": 1}, "store"),
    ({"background": 1}, "background"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"prompt": {"id": "p"}}, "prompt"),
    ({"include": "x"}, "include"),
    ({"include": [7]}, "include[0]"),
    ({"instructions": ["x"]}, "instructions"),
    ({"previous_response_id": 7}, "previous_response_id"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"max_output_tokens": True}, "max_output_tokens"),
    ({"max_tool_calls": "x"}, "max_tool_calls"),
    ({"temperature": "hot"}, "temperature"),
    ({"metadata": []}, "metadata"),
    ({"reasoning": "high"}, "reasoning"),
    ({"reasoning": {"effort": 7}}, "reasoning.effort"),
    ({"text": 7}, "text"),
    ({"text": {"format": "text"}}, "text.format"),
    ({"text": {"format": {"type": "odd"}}}, "text.format.type"),
    ({"text": {"format": {"type": ["text"]}}}, "text.format.type"),
    ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
    ({"tools": {}}, "tools"),
    ({"tools": [7]}, "tools[0]"),
    ({"tools": [{"type": 7}]}, "tools[0].type"),
    ({"tools": [{"type": "function"}]}, "tools[0].name"),
    ({"tools": [{"type": "function", "name": ""}]}, "tools[0].name"),
    ({"tools": [{**FUNCTION, "parameters": 7}]}, "tools[0].parameters"),
    ({"tools": [{**FUNCTION, "strict": 7}]}, "tools[0].strict"),
    (
        {"tools": [{"type": "custom", "name": "c", "format": {"type": "grammar"}}]},
        "tools[0].format.definition",
    ),
    ({"tools": [{"type": "namespace", "name": "n", "tools": [7]}]}, "tools[0].tools[0]"),
    ({"tool_choice": 7}, "tool_choice"),
    ({"tool_choice": "odd"}, "tool_choice"),
    ({"tool_choice": {"type": "function", "name": "gone"}}, "tool_choice.name"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "odd"}}, "tool_choice.mode"),
    ({"tool_choice": {"type": "allowed_tools", "tools": [7]}}, "tool_choice.tools[0]"),
    ({"parallel_tool_calls": "x"}, "parallel_tool_calls"),
    ({"top_logprobs": -1}, "top_logprobs"),
    ({"files": 7}, "files"),
    ({"tools": [FUNCTION] * 2001}, "tools"),
    ({"tools": [{"type": "namespace", "name": "n", "tools": [FUNCTION] * 2001}]}, "tools"),
    ({"tools": [{"type": "namespace", "name": "n", "tools": [FUNCTION] * 1500}] * 2}, "tools"),
]


@pytest.mark.parametrize(("given", "param"), BAD)
def test_a_bad_field_is_named(given: dict[str, Any], param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        parse_request({"model": "m", "input": "hi", **given})
    assert caught.value.param == param


def test_a_request_without_messages_is_refused() -> None:
    with pytest.raises(GatewayError) as caught:
        parse_request({"model": "m"}).chat_request([])
    assert caught.value.param == "input"
