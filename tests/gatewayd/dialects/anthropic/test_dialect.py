"""Tests for gatewayd.dialects.anthropic.dialect: whole requests in, whole answers out."""

import copy
from typing import Any

import orjson
import pytest
from anthropic.types import Message

from gatewayd.dialects.anthropic.dialect import (
    FOREIGN_FIELDS,
    FOREIGN_MESSAGE_FIELDS,
    FOREIGN_PART_FIELDS,
    error_object,
    parse_request,
    render_completion,
    render_error_event,
    without_foreign,
)
from gatewayd.dialects.anthropic.source import to_request
from gatewayd.errors import ErrorKind, GatewayError

CACHE = {"type": "ephemeral"}
TURN = {"role": "user", "content": "hi"}
LEAST = {"model": "m", "max_tokens": 5, "messages": [TURN]}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}}
BY_URL = {"type": "document", "source": {"type": "url", "url": "https://acme.test/a.pdf"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
REDACTED = {"type": "redacted_thinking", "data": "x"}

RICH: dict[str, Any] = {
    "model": "m",
    "max_tokens": 4096,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": CACHE}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE, PDF, BY_URL]},
        {
            "role": "assistant",
            "content": [
                THOUGHT,
                REDACTED,
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": [1, None, "ü"]}},
                {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [{"type": "text", "text": "two", "cache_control": CACHE}],
                },
                {"type": "text", "text": "go on", "cache_control": CACHE},
            ],
        },
    ],
    "tools": [
        {"name": "f", "description": "d", "input_schema": {"type": "object"}},
        {"name": "g", "input_schema": {"type": "object"}, "cache_control": CACHE},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "stop_sequences": ["a", "b"],
    "temperature": 1,
    "top_p": 0.5,
    "top_k": 3,
    "service_tier": "standard_only",
    "metadata": {"user_id": "u" * 100},
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "stream": True,
}


def test_the_least_request():
    request = parse_request(LEAST)
    assert request.model == "m"
    assert request.body == LEAST
    assert request.native == LEAST
    assert not request.stream
    assert (request.files, request.options, request.warnings) == ([], {}, [])


def test_a_stream_asks_for_usage():
    request = parse_request({**LEAST, "stream": True})
    assert request.stream
    assert request.body["stream"] is True
    assert request.body["stream_options"] == {"include_usage": True}
    assert parse_request({**LEAST, "stream": None}).stream is False


def test_the_gateways_own_fields_are_not_the_providers():
    own = {"files": [{"type": "file", "id": "f"}], "chat_id": "c", "tool_ids": ["t"], "features": {}}
    request = parse_request({**LEAST, **own})
    assert request.native == request.body == LEAST
    assert request.files == own["files"]
    assert request.options == {"tool_ids": ["t"], "features": {}}
    assert request.warnings == []


def test_no_chat_is_named_to_plugins():
    named = {"chat_id": "c", "id": "m", "session_id": "s", "parent_id": None, "message_ids": []}
    request = parse_request({**LEAST, **named, "filter_ids": ["f"]})
    assert request.options == {"filter_ids": ["f"]}
    assert request.native == LEAST


def test_unknown_fields_are_named_and_harmless_ones_are_not():
    request = parse_request(
        {**LEAST, "container": "c", "speed": "fast", "cache_control": CACHE, "betas": ["b"]}
    )
    assert request.warnings == [
        "cannot convert container, speed: only a provider that speaks the messages protocol gets it"
    ]
    assert request.body == LEAST
    assert request.native["container"] == "c"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"files": {}}, "files"),
    ],
)
def test_a_wrong_field_is_named(change, param):
    with pytest.raises(GatewayError) as caught:
        parse_request({**LEAST, **change})
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == param
    assert param in caught.value.message


@pytest.mark.parametrize("name", ["model", "messages"])
def test_a_missing_field_is_named(name):
    with pytest.raises(GatewayError) as caught:
        parse_request({key: value for key, value in LEAST.items() if key != name})
    assert caught.value.param == name


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"system": 5}, "system"),
        ({"tool_choice": {"type": "maybe"}}, "tool_choice.type"),
        ({"output_config": {"effort": "extreme"}}, "output_config.effort"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0].type"),
        ({"messages": ["x"]}, "messages[0]"),
    ],
)
def test_what_only_a_source_of_the_protocol_may_know_is_refused_for_all_others(change, param):
    request = parse_request({**LEAST, **change})
    assert request.native == {**LEAST, **change}
    assert request.unconvertible.kind is ErrorKind.INVALID_REQUEST
    assert request.unconvertible.param == param


def test_system_blocks_within_a_conversation():
    said = [{"type": "mid_conv_system", "content": [{"type": "text", "text": "be brief"}]}]
    request = parse_request({**LEAST, "messages": [{"role": "user", "content": said}]})
    assert request.body["messages"] == [{"role": "user", "content": "be brief"}]


def test_a_source_that_speaks_the_protocol_gets_what_was_sent():
    sent = copy.deepcopy(RICH)
    request = parse_request(RICH)
    assert request.warnings == []
    assert sent == RICH
    assert request.native == RICH
    assert to_request(request.body) == RICH


@pytest.mark.parametrize(
    "change",
    [
        {"output_config": {"effort": "max"}},
        {"output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}},
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        {"tool_choice": {"type": "tool", "name": "f"}},
        {"tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "none"}},
    ],
)
def test_fields_go_and_come_back(change):
    value = {**{name: field for name, field in RICH.items() if name != "thinking"}, **change}
    assert to_request(parse_request(value).body) == value


def test_what_only_this_protocol_knows_is_taken_out():
    value = copy.deepcopy(RICH)
    value["messages"][0]["content"].remove(BY_URL)
    body = parse_request({**value, "output_config": {"effort": "high"}}).body
    before = copy.deepcopy(body)
    plain = without_foreign(body)
    assert body == before
    text = orjson.dumps(plain).decode()
    for name in (*FOREIGN_MESSAGE_FIELDS, *FOREIGN_PART_FIELDS, "redacted_thinking"):
        assert name not in text
    assert not set(FOREIGN_FIELDS) & plain.keys()
    system, user, assistant, one, two, last = plain["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert [part["type"] for part in user["content"]] == ["text", "image_url", "file"]
    assert assistant["content"] == "so"
    assert (one["content"], two["content"], last["content"]) == ("one", "two", "go on")
    assert plain["reasoning_effort"] == "high"
    assert plain["tools"][1] == {
        "type": "function",
        "function": {"name": "g", "parameters": {"type": "object"}},
    }


def test_texts_are_joined_where_providers_take_no_parts():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": CACHE}]
    messages = [{"role": role, "content": parts} for role in ("system", "assistant", "tool", "user")]
    plain = without_foreign({"model": "m", "messages": messages})["messages"]
    assert [message["content"] for message in plain[:3]] == ["a\nb"] * 3
    assert plain[3]["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    "block", [BY_URL, {"type": "image", "source": {"type": "file", "file_id": "f"}}], ids=["url", "file"]
)
def test_what_no_other_provider_takes_is_refused_there(block):
    body = parse_request({**LEAST, "messages": [{"role": "user", "content": [block]}]}).body
    assert to_request(body)["messages"][0]["content"] == [block]
    with pytest.raises(GatewayError) as caught:
        without_foreign(body)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert block["source"]["type"] in caught.value.message


def test_without_foreign_leaves_odd_bodies_alone():
    body = {"messages": ["x", {"role": "user"}, {"role": "user", "content": ["a", None]}], "tools": [None]}
    assert without_foreign(body) == body
    assert without_foreign({"model": "m"}) == {"model": "m"}


def answer(finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def render(body: dict[str, Any], **fields: Any) -> dict[str, Any]:
    message = render_completion(body, "asked", lambda: "0-1", **fields)
    assert Message.model_validate(message, strict=False).model == "asked"
    return message


def call(arguments: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "t1", "type": "function", "function": {"name": "f", "arguments": arguments}, **fields}


def test_a_text():
    body = {**answer(content="Hi"), "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    assert render(body) == {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "asked",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 2,
        },
    }


def test_blocks_stand_in_order():
    thinking = answer("stop", content="Hi", reasoning_content="hm", tool_calls=[call('{"a": 1}')])
    message = render(thinking, mark="gatewayd.deepseek")
    assert message["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "gatewayd.deepseek"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
    ]
    assert message["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        (None, {}),
        ("null", {}),
        ("{}", {}),
        ('{"a": ', {"INVALID_JSON": '{"a": '}),
        ("[1]", {"INVALID_JSON": "[1]"}),
        ("plain", {"INVALID_JSON": "plain"}),
        ("[" * 300 + "]" * 300, {"INVALID_JSON": "[" * 300 + "]" * 300}),
    ],
)
def test_input_is_an_object_and_no_byte_is_lost(arguments, expected):
    message = render(answer(content=None, tool_calls=[call(arguments)]))
    assert message["content"][0]["input"] == expected
    orjson.dumps(message)


def test_a_call_without_an_id_gets_one_and_equal_calls_stay_two():
    calls = [call('{"a": 1}', id=None), call('{"a": 1}', id=None)]
    numbers = iter("12345")
    message = render_completion(answer(tool_calls=calls), "m", lambda: next(numbers))
    assert [block["id"] for block in message["content"]] == ["toolu_2", "toolu_3"]


def test_the_older_function_call():
    message = render(answer("function_call", content=None, function_call={"name": "f", "arguments": "{}"}))
    assert message["content"][0]["name"] == "f"
    assert message["stop_reason"] == "tool_use"


def test_estimates_stand_in_for_usage():
    usage = render(answer(content="a" * 8), input_tokens=9)["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (9, 2)


def test_the_first_choice_counts():
    body = answer(content="yes")
    body["choices"].insert(0, {"index": 1, "message": {"content": "no"}})
    assert render(body)["content"][0]["text"] == "yes"


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": [5]}, {"error": "x", "choices": None}])
def test_no_answer_is_a_failure(body):
    with pytest.raises(GatewayError) as caught:
        render_completion(body, "m", lambda: "x")
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


def test_error_event():
    assert render_error_event(GatewayError(ErrorKind.INTERNAL, "cannot go on"), "api_error") == (
        b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"cannot go on"}}\n\n'
    )


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("it answered 400 (maximum context length is 9)", "prompt is too long: it answered 400 (maximum"),
        ("it answered 400 (prompt is too long: 9 > 8)", "it answered 400 (prompt is too long: 9 > 8)"),
    ],
)
def test_a_request_that_is_too_long_is_told_as_clients_know_it(message, told):
    error = GatewayError(ErrorKind.INVALID_REQUEST, message, provider_code="context_length_exceeded")
    found = error_object(error, "invalid_request_error")
    assert found["message"].startswith(told)
    assert found.keys() == {"type", "message"}
