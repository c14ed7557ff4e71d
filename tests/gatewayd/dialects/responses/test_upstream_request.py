import pytest

from gatewayd.dialects.responses.reasoning_details import detail_of
from gatewayd.dialects.responses.upstream_request import ResponsesOptions, to_request
from gatewayd.errors import GatewayError

OPTIONS = ResponsesOptions("acme")
USER = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FUNCTION = {"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA}}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"a":"b"}'}}
SECOND = {"id": "c2", "type": "function", "function": {"name": "now", "arguments": ""}}


def converted(options=OPTIONS, warnings=None, **fields):
    body = {"model": "gpt-6-astra", "messages": [USER], **fields}
    return to_request(body, options, [] if warnings is None else warnings)


def items(*messages, options=OPTIONS):
    return converted(options, messages=list(messages))["input"]


def test_a_plain_request():
    assert converted() == {
        "model": "gpt-6-astra",
        "store": False,
        "input": [USER],
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
    }


def test_a_model_without_reasoning():
    request = converted(ResponsesOptions("acme", reasons=False))
    assert "include" not in request
    assert "reasoning" not in request


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"reasoning_effort": "high"}, {"effort": "high", "summary": "auto"}),
        ({"reasoning_effort": "none"}, {"effort": "none"}),
        ({"reasoning": {"effort": "low", "summary": "detailed"}}, {"effort": "low", "summary": "detailed"}),
    ],
)
def test_reasoning(given, expected):
    assert converted(**given)["reasoning"] == expected


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        ({"max_completion_tokens": 99, "max_tokens": 5}, "max_output_tokens", 99),
        ({"max_tokens": 50}, "max_output_tokens", 50),
        ({"max_tokens": 1}, "max_output_tokens", 16),
        ({"stream": True}, "stream", True),
        ({"temperature": 0, "top_p": 0.5}, "temperature", 0),
        ({"prompt_cache_key": "k"}, "prompt_cache_key", "k"),
        ({"verbosity": "low"}, "text", {"verbosity": "low"}),
        ({"response_format": {"type": "json_object"}}, "text", {"format": {"type": "json_object"}}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
            "text",
            {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": False}},
        ),
        (
            {"tools": [FUNCTION]},
            "tools",
            [
                {
                    "type": "function",
                    "name": "weather",
                    "description": "d",
                    "parameters": SCHEMA,
                    "strict": False,
                }
            ],
        ),
        (
            {"tools": [{"type": "custom", "custom": {"name": "p", "format": {"type": "text"}}}]},
            "tools",
            [{"type": "custom", "name": "p", "format": {"type": "text"}}],
        ),
        ({"tools": [{"type": "web_search"}]}, "tools", [{"type": "web_search"}]),
        ({"tools": [FUNCTION], "tool_choice": "required"}, "tool_choice", "required"),
        (
            {"tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "weather"}}},
            "tool_choice",
            {"type": "function", "name": "weather"},
        ),
        (
            {
                "tools": [FUNCTION],
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "required", "tools": [FUNCTION]},
                },
            },
            "tool_choice",
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "weather"}],
            },
        ),
        (
            {"logprobs": True, "top_logprobs": 2},
            "include",
            ["reasoning.encrypted_content", "message.output_text.logprobs"],
        ),
    ],
)
def test_fields(given, name, expected):
    assert converted(**given)[name] == expected


def test_parts():
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"}},
    ]
    assert items({"role": "user", "content": content}) == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"},
                {
                    "type": "input_file",
                    "file_data": "data:application/pdf;base64,AA",
                    "filename": "a.pdf",
                },
            ],
        }
    ]


def test_a_turn_with_calls():
    first = detail_of({"id": "rs_1", "encrypted_content": "ONE"}, "acme", 0, 0)
    second = detail_of({"id": "rs_2", "encrypted_content": "TWO"}, "acme", 1, 1)
    turn = {
        "role": "assistant",
        "content": "I look",
        "reasoning_content": "not sent",
        "reasoning_details": [first, second],
        "tool_calls": [CALL, SECOND],
    }
    results = [{"role": "tool", "tool_call_id": name, "content": f"result {name}"} for name in ("c1", "c2")]
    assert items(USER, turn, *results) == [
        USER,
        {"type": "reasoning", "summary": [], "encrypted_content": "ONE", "id": "rs_1"},
        {"role": "assistant", "content": "I look"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"a":"b"}'},
        {"type": "reasoning", "summary": [], "encrypted_content": "TWO", "id": "rs_2"},
        {"type": "function_call", "call_id": "c2", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "result c1"},
        {"type": "function_call_output", "call_id": "c2", "output": "result c2"},
    ]


@pytest.mark.parametrize(
    ("detail", "is_sent"),
    [
        (detail_of({"encrypted_content": "ONE"}, "acme", 0, 0), True),
        (detail_of({"encrypted_content": "ONE"}, "other", 0, 0), False),
        ({"type": "reasoning.encrypted", "format": "openai-responses-v1", "data": "ONE"}, True),
        ({"type": "reasoning.encrypted", "format": "anthropic-claude-v1", "data": "ONE"}, False),
        ({"type": "reasoning.text", "text": "ONE"}, False),
        ("nonsense", False),
    ],
)
def test_only_its_own_reasoning_is_sent(detail, is_sent):
    turn = {"role": "assistant", "content": "A", "reasoning_details": [detail]}
    found = items(turn)
    assert [item.get("encrypted_content") for item in found] == (["ONE", None] if is_sent else [None])
    assert items(turn, options=ResponsesOptions("acme", keeps_reasoning=False)) == found[-1:]


def test_reasoning_that_nothing_follows_is_not_sent():
    detail = detail_of({"encrypted_content": "ONE"}, "acme", 0, 0)
    assert items(USER, {"role": "assistant", "content": "", "reasoning_details": [detail]}) == [USER]


def test_custom_calls():
    turn = {
        "role": "assistant",
        "tool_calls": [{"id": "c9", "type": "custom", "custom": {"name": "patch", "input": "x"}}],
    }
    assert items(
        turn, {"role": "tool", "tool_call_id": "c9", "content": [{"type": "text", "text": "y"}]}
    ) == [
        {"type": "custom_tool_call", "call_id": "c9", "name": "patch", "input": "x"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c9",
            "output": [{"type": "input_text", "text": "y"}],
        },
    ]


def test_what_is_left_out_is_told():
    warnings = []
    request = converted(warnings=warnings, stop=["x"], seed=1, min_p=0.1, max_tokens=3, logit_bias={})
    assert "stop" not in request
    assert warnings == [
        "max_tokens was raised from 3 to 16, the least of this model",
        "left out, as the Responses protocol does not have it: min_p, seed, stop",
    ]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"messages": [5]}, "messages[0]"),
        ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "messages[0].content[0].type",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0].image_url",
        ),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": {}}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"tools": [FUNCTION], "tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": [FUNCTION], "tool_choice": {"type": "function"}}, "tool_choice"),
    ],
)
def test_refusals(fields, param):
    with pytest.raises(GatewayError) as caught:
        converted(**fields)
    assert caught.value.param == param
