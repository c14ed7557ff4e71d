import pytest

from gatewayd.dialects.anthropic.source import JSON_ONLY, to_request
from gatewayd.errors import ErrorKind, GatewayError


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
        ({"metadata": {"team": "x"}, "user": "y"}, {"metadata": {"user_id": "y"}}),
        ({"metadata": {"team": "x"}}, {"metadata": None}),
        ({"service_tier": "default"}, {"service_tier": "standard_only"}),
        ({"service_tier": "auto"}, {"service_tier": "auto"}),
        ({"service_tier": "flex"}, {"service_tier": None}),
        (
            {"seed": 1, "presence_penalty": 1, "frequency_penalty": 1, "logit_bias": {}, "logprobs": True},
            dict.fromkeys(("seed", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs")),
        ),
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}, "output_config": None}),
        (
            {"reasoning_effort": "high", "output_config": {"effort": "max"}},
            {"output_config": {"effort": "max"}},
        ),
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


@pytest.mark.parametrize(
    ("most", "given", "limit"),
    [(0, None, 4096), (4096, None, 4096), (2000, None, 2000), (128_000, None, 32_000), (128_000, 7, 7)],
)
def test_limit_of_an_answer(most, given, limit):
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": given}
    assert to_request(body, None, most)["max_tokens"] == limit


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


def test_a_json_object_is_asked_for_in_words():
    asked = {"response_format": {"type": "json_object"}}
    assert convert({"role": "user", "content": "hi"}, **asked)["system"] == JSON_ONLY
    system = {"role": "system", "content": "one"}
    assert convert(system, **asked)["system"] == f"one\n\n{JSON_ONLY}"


def test_capabilities_reach_the_reasoning():
    able = {"thinking": {"types": {"adaptive": {"supported": True}}}}
    request = to_request({"messages": [], "reasoning_effort": "low"}, able)
    assert request["thinking"] == {"type": "adaptive"}
    assert "output_config" not in request


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


def test_thoughts_that_the_provider_would_refuse_are_left_out():
    signed = {"type": "thinking", "thinking": "hm", "signature": "s"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    unsigned = [{"type": "thinking", "thinking": "hm"}, {"type": "redacted_thinking"}, {"type": []}, 3]
    request = convert(
        {
            "role": "assistant",
            "thinking_blocks": [signed, *unsigned, hidden],
            "content": [unsigned[0], {"type": "text", "text": "a"}],
        }
    )
    assert request["messages"][0]["content"] == [signed, hidden, {"type": "text", "text": "a"}]


def test_blocks_of_server_tools_go_back():
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    ]
    request = convert({"role": "assistant", "server_tool_blocks": blocks, "content": "a"})
    assert request["messages"][0]["content"] == [*blocks, {"type": "text", "text": "a"}]


def test_a_file_of_the_providers_own_passes():
    image = {"type": "image", "source": {"type": "file", "file_id": "f"}}
    assert convert({"role": "user", "content": [image]})["messages"][0]["content"] == [image]


def test_a_tools_own_words_are_no_error():
    request = convert({"role": "tool", "tool_call_id": "c1", "content": "Error: none"})
    (result,) = request["messages"][0]["content"]
    assert result == {"type": "tool_result", "tool_use_id": "c1", "content": "Error: none"}


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
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == param


@pytest.mark.parametrize(
    "message",
    [
        {"role": "x" * 9000},
        {"role": "user", "content": [{"type": "x" * 9000}]},
        {"role": "user", "content": [{"type": {"x": "x" * 9000}}]},
    ],
)
def test_a_refusal_repeats_no_more_than_the_start(message):
    with pytest.raises(GatewayError) as caught:
        convert(message)
    assert len(caught.value.message) < 200
