import pytest

from gatewayd.dialects.ollama_source import ReplyDecoder, finish_reason, to_completion, to_request, to_usage
from gatewayd.errors import GatewayError, Kind


def convert(*messages, **fields):
    return to_request({"model": "m", "messages": list(messages), **fields}, stream=True)


def new_id():
    return "new"


def test_plain_request():
    assert convert({"role": "user", "content": "hi"}, unknown=1) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
    }


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"temperature": 0, "top_p": 0.5, "seed": 3}, {"temperature": 0, "top_p": 0.5, "seed": 3}),
        ({"stop": "a"}, {"stop": ["a"]}),
        ({"stop": ["a", "b"]}, {"stop": ["a", "b"]}),
        ({"max_tokens": 5}, {"num_predict": 5}),
        ({"max_completion_tokens": 6, "max_tokens": 5}, {"num_predict": 6}),
        ({"num_predict": 7, "max_tokens": 5}, {"num_predict": 7}),
        ({"frequency_penalty": 1, "presence_penalty": 2}, {"frequency_penalty": 1, "presence_penalty": 2}),
        ({"temperature": 1, "options": {"temperature": 0, "odd": 1}}, {"temperature": 0, "odd": 1}),
        ({"temperature": None}, None),
    ],
)
def test_options(fields, options):
    assert convert(**fields).get("options") == options


SCHEMA = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"keep_alive": "5m"}, {"keep_alive": "5m"}),
        ({"response_format": {"type": "json_object"}}, {"format": "json"}),
        ({"response_format": SCHEMA}, {"format": {"type": "object"}}),
        ({"response_format": {"type": "text"}, "format": "json"}, {"format": "json"}),
        ({"think": False, "reasoning_effort": "low"}, {"think": False}),
        ({"reasoning_effort": "low"}, {"think": "low"}),
        ({"reasoning_effort": "none"}, {"think": False}),
        ({"tools": [{"type": "function"}]}, {"tools": [{"type": "function"}]}),
        ({"tools": [{"type": "function"}], "tool_choice": "none"}, {"tools": None}),
    ],
)
def test_fields(fields, expected):
    request = convert(**fields)
    assert {name: request.get(name) for name in expected} == expected


def test_parts_and_images():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    request = convert(
        {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
    )
    assert request["messages"] == [
        {"role": "system", "content": "a\nb"},
        {"role": "user", "content": "look", "images": ["QUJD"]},
    ]


def test_tool_round():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    request = convert(
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
    )
    assert request["messages"] == [
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}],
        },
        {"role": "tool", "content": "one", "tool_name": "f", "tool_call_id": "c1"},
    ]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": {"a": 1}}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [3]}]}, "messages[0].content[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "messages[0].content[0].type",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/"}}]}
                ]
            },
            "messages[0].content[0]",
        ),
        ({"messages": [{"role": "assistant", "tool_calls": [3]}]}, "messages[0].tool_calls[0]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": "x"}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"n": 2}, "n"),
    ],
)
def test_bad_requests_name_the_field(body, param):
    with pytest.raises(GatewayError) as caught:
        to_request({"model": "m", **body}, stream=False)
    assert caught.value.kind is Kind.INVALID_REQUEST
    assert caught.value.param == param


CALL = {"function": {"name": "f", "arguments": {"a": 1}}}
REPLY = {
    "model": "m",
    "message": {"role": "assistant", "content": "hi", "thinking": "hm", "tool_calls": [CALL]},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 3,
    "eval_count": 2,
    "total_duration": 9,
}


def test_completion():
    body = to_completion(REPLY, 7, new_id)
    assert (body["id"], body["created"], body["object"], body["model"]) == (
        "chatcmpl-new",
        7,
        "chat.completion",
        "m",
    )
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "hi",
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "call_new", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
        ],
    }
    assert body["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5,
        "total_duration": 9,
        "prompt_eval_count": 3,
        "eval_count": 2,
    }


def test_usage_without_counters():
    assert to_usage({}) == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def test_finish_reasons():
    assert finish_reason("length", called=False) == "length"
    assert finish_reason("unload", called=False) == "stop"
    assert finish_reason("length", called=True) == "tool_calls"


def test_stream():
    decoder = ReplyDecoder(7, new_id, include_usage=True)
    first = decoder.decode({"model": "m", "message": {"content": "", "thinking": "hm"}})
    second = decoder.decode({"model": "m", "message": {"content": "a", "tool_calls": [CALL]}})
    third = decoder.decode({"model": "m", "message": {"tool_calls": [{**CALL, "id": "own"}]}})
    assert first[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "reasoning_content": "hm"}
    (one,) = second[0]["choices"][0]["delta"]["tool_calls"]
    (two,) = third[0]["choices"][0]["delta"]["tool_calls"]
    assert (one["index"], one["id"], two["index"], two["id"]) == (0, "call_new", 1, "own")
    assert not decoder.is_complete
    end, usage = decoder.decode({"model": "m", "message": {"content": ""}, "done": True, "eval_count": 2})
    assert end["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "tool_calls"}
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 2)
    assert decoder.is_done
    assert decoder.is_complete
    assert {chunk["id"] for chunk in (*first, *second, *third, end, usage)} == {"chatcmpl-new"}


def test_stream_error():
    decoder = ReplyDecoder(7, new_id, include_usage=False)
    assert decoder.decode({"error": "out of memory"}) == []
    assert decoder.error == "out of memory"
    assert not decoder.is_done
