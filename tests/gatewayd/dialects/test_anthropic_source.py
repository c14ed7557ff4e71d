import pytest

from gatewayd.dialects.anthropic_source import (
    finish_reason,
    json_schema,
    parse_arguments,
    parse_data_url,
    to_completion,
    to_request,
    to_usage,
)
from gatewayd.errors import GatewayError, Kind


def convert(*messages, **fields):
    return to_request({"model": "m", "messages": list(messages), **fields})


def test_plain_request():
    request = convert(
        {"role": "user", "content": "hi"}, stream=True, temperature=0.0, top_p=0.5, seed=3, user="u1"
    )
    assert request == {
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "max_tokens": 4096,
        "stream": True,
        "temperature": 0.0,
        "top_p": 0.5,
        "metadata": {"user_id": "u1"},
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_completion_tokens": 6, "max_tokens": 5}, {"max_tokens": 6}),
        ({"stop": "a"}, {"stop_sequences": ["a"]}),
        ({"stop": ["a", "b"]}, {"stop_sequences": ["a", "b"]}),
        ({"reasoning_effort": "low"}, {"output_config": {"effort": "low"}}),
        ({"metadata": {"user_id": "x"}, "user": "y"}, {"metadata": {"user_id": "x"}}),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 9}},
            {"thinking": {"type": "enabled", "budget_tokens": 9}},
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {"type": "object"}},
                }
            },
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        ),
    ],
)
def test_fields(fields, expected):
    request = convert({"role": "user", "content": "hi"}, **fields)
    assert {name: request.get(name) for name in expected} == expected


def test_system_messages():
    request = convert(
        {"role": "system", "content": "one"},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": [{"type": "text", "text": "two"}]},
    )
    assert request["system"] == "one\n\ntwo"
    assert len(request["messages"]) == 1


def test_system_with_cache_control_stays_blocks():
    block = {"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}
    request = convert({"role": "system", "content": [block]})
    assert request["system"] == [block]


def test_images_and_files():
    request = convert(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "text", "text": ""},
                {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUJD"}},
                {"type": "image_url", "image_url": "https://acme.test/a.png"},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,QUJD"}},
            ],
        }
    )
    assert request["messages"][0]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QUJD"}},
        {"type": "image", "source": {"type": "url", "url": "https://acme.test/a.png"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}},
    ]


def test_tool_round():
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    request = convert(
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": calls, "thinking_blocks": [thought]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}, image]},
        {"role": "user", "content": "and"},
        {"role": "assistant", "content": ""},
    )
    user, assistant, results = request["messages"]
    assert user["role"] == "user"
    assert assistant == {
        "role": "assistant",
        "content": [
            thought,
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
        ],
    }
    assert results["role"] == "user"
    one, two, text = results["content"]
    assert one == {"type": "tool_result", "tool_use_id": "c1", "content": "one"}
    assert [block["type"] for block in two["content"]] == ["text", "image"]
    assert text == {"type": "text", "text": "and"}


FUNCTION = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
}


def test_tools():
    request = convert(
        tools=[FUNCTION, {"type": "function", "function": {"name": "g"}}, {"type": "web_search_1"}]
    )
    assert request["tools"] == [
        {"name": "f", "input_schema": {"type": "object"}, "description": "d"},
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
        {"type": "web_search_1"},
    ]
    assert "tool_choice" not in request


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"type": "tool", "name": "f"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        (
            {"parallel_tool_calls": False, "tool_choice": "required"},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        ({"parallel_tool_calls": False, "tool_choice": "none"}, {"type": "none"}),
        ({"parallel_tool_calls": True}, None),
    ],
)
def test_tool_choice(fields, choice):
    assert convert(tools=[FUNCTION], **fields).get("tool_choice") == choice


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": {}}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"role": "robot"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [3]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "messages[0].content[0].type",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ftp://x"}}]}
                ]
            },
            "messages[0].content[0]",
        ),
        (
            {"messages": [{"role": "system", "content": [{"type": "image_url", "image_url": "https://x/"}]}]},
            "messages[0].content",
        ),
        ({"messages": [{"role": "assistant", "tool_calls": ["x"]}]}, "messages[0].tool_calls[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": "[1]"}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"n": 2}, "n"),
        ({"tools": {"a": 1}}, "tools"),
        ({"tools": [3]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"tools": [FUNCTION], "tool_choice": "maybe"}, "tool_choice"),
    ],
)
def test_bad_requests_name_the_field(body, param):
    with pytest.raises(GatewayError) as caught:
        to_request({"model": "m", **body})
    assert caught.value.kind is Kind.INVALID_REQUEST
    assert caught.value.param == param


def test_completion():
    message = {
        "id": "msg_1",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "a"},
            {"type": "text", "text": "b"},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    body = to_completion(message, 7)
    assert (body["id"], body["object"], body["created"], body["model"]) == (
        "msg_1",
        "chat.completion",
        7,
        "m",
    )
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "ab",
        "reasoning_content": "hm",
        "thinking_blocks": [message["content"][0]],
        "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
    }


def test_completion_of_calls_only_has_no_content():
    body = to_completion({"content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}, 7)
    assert body["choices"][0]["message"]["content"] is None
    assert to_completion({"content": []}, 7)["choices"][0]["message"]["content"] == ""


def test_usage_counts_the_cache_as_prompt():
    usage = to_usage(
        {
            "input_tokens": 1,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 100,
            "output_tokens": 5,
        }
    )
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (111, 5, 116)
    assert usage["prompt_tokens_details"] == {"cached_tokens": 100}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("new_thing", "stop"),
        (None, "stop"),
    ],
)
def test_finish_reasons(reason, expected):
    assert finish_reason(reason) == expected


def test_arguments():
    assert parse_arguments(None, "x") == {}
    assert parse_arguments({"a": 1}, "x") == {"a": 1}
    with pytest.raises(GatewayError, match="cannot read x"):
        parse_arguments("{", "x")


@pytest.mark.parametrize("url", ["data:image/png,abc", "data:image/png;base64", "abc", None, 3])
def test_bad_data_urls(url):
    with pytest.raises(GatewayError, match="cannot read x"):
        parse_data_url(url, "x")


def test_json_schema():
    assert json_schema({"type": "json_object"}) is None
    assert json_schema({"type": "json_schema", "json_schema": "x"}) is None
    assert json_schema("x") is None
