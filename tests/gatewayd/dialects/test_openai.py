"""Tests for gatewayd.dialects.openai."""

from typing import Any

import orjson
import pytest

from gatewayd.completions.records import Completion
from gatewayd.dialects import openai
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.providers.completion_assembler import Gatherer

MESSAGES = [{"role": "user", "content": "hi"}]


def test_every_field_but_our_own_is_forwarded_untouched() -> None:
    sent: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": "required",
        "response_format": {"type": "json_schema", "json_schema": {}},
        "stream": True,
        "stream_options": {"include_usage": True},
        "logit_bias": {"5": -1},
        "metadata": {"a": "b"},
        "something_new": [1],
    }
    request = openai.parse_request({**sent, "chat_id": "c", "session_id": "s", "features": {}})
    assert request.body == sent
    assert request.stream
    assert request.options == {"chat_id": "c", "session_id": "s", "features": {}}


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"model": 5}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [*MESSAGES, {"content": "x"}]}, "messages[1].role"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"stream": "yes"}, "stream"),
        ({"n": "2"}, "n"),
        ({"n": True}, "n"),
        ({"n": 1.5}, "n"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function"}, "f"]}, "tools[1]"),
        ({"tool_choice": 5}, "tool_choice"),
        ({"tool_choice": True}, "tool_choice"),
        ({"stream": True, "stream_options": True}, "stream_options"),
        ({"stream_options": []}, "stream_options"),
        ({"response_format": "json"}, "response_format"),
        ({"params": {"tools": 5}}, "tools"),
        ({"files": {}}, "files"),
        ({"files": [{"type": "file"}]}, "files[0]"),
        ({"files": ["f"]}, "files[0]"),
        ({"files": [{"type": "collection", "id": 3}]}, "files[0]"),
        ({"files": [{"type": "text", "id": 3}]}, "files[0]"),
        ({"files": [{"type": "text"}, {"docs": {}}]}, "files[1]"),
        ({"files": [{"docs": [], "type": 3}]}, "files[0]"),
        ({"params": []}, "params"),
        ({"params": {"custom_params": 1}}, "params.custom_params"),
    ],
)
def test_wrong_field_is_named(change: dict[str, Any], param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        openai.parse_request({"model": "m", "messages": MESSAGES, **change})
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == param
    assert param in caught.value.message


def test_params_are_spread_without_the_gateways_own_and_never_over_the_body() -> None:
    params = {"temperature": 0.5, "top_p": 0.1, "function_calling": "native", "custom_params": {"seed": 7}}
    request = openai.parse_request(
        {"model": "m", "messages": MESSAGES, "temperature": 0, "params": {**params, "model": "other"}}
    )
    assert request.body == {
        "model": "m",
        "messages": MESSAGES,
        "temperature": 0,
        "top_p": 0.1,
        "seed": 7,
    }


def test_custom_params_of_a_request_may_be_json_text() -> None:
    custom = {"thinking": '{"type": "disabled"}', "top_k": "40", "user": "Ann"}
    request = openai.parse_request({"model": "m", "messages": MESSAGES, "params": {"custom_params": custom}})
    assert request.body == {
        "model": "m",
        "messages": MESSAGES,
        "thinking": {"type": "disabled"},
        "top_k": 40,
        "user": "Ann",
    }


def test_stream_may_be_null() -> None:
    assert openai.parse_request({"model": "m", "messages": MESSAGES, "stream": None}).stream is False


def test_sources_frame_has_choices_for_strict_clients() -> None:
    frame = orjson.loads(openai.render_sources([{"document": []}], "m", "r", 5).removeprefix(b"data: "))
    assert frame["choices"] == []
    assert frame["object"] == "chat.completion.chunk"
    assert frame["sources"] == [{"document": []}]


@pytest.mark.parametrize("name", ["n", "tools", "tool_choice", "stream_options", "response_format"])
def test_null_is_as_good_as_absent(name: str) -> None:
    request = openai.parse_request({"model": "m", "messages": MESSAGES, "stream": True, name: None})
    assert request.body[name] is None


def test_what_only_the_provider_reads_is_its_to_judge() -> None:
    odd = {"temperature": "hot", "max_tokens": -1, "logit_bias": 5, "tools": [], "tool_choice": "any"}
    request = openai.parse_request({"model": "m", "messages": MESSAGES, **odd})
    assert request.body == {"model": "m", "messages": MESSAGES, **odd}


@pytest.mark.parametrize("stream", [False, None])
def test_stream_options_need_a_stream(stream: bool | None) -> None:
    sent = {"model": "m", "messages": MESSAGES, "stream": stream, "stream_options": {"include_usage": True}}
    before = orjson.dumps(sent)
    assert "stream_options" not in openai.parse_request(sent).body
    assert orjson.dumps(sent) == before


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"include_usage": True}, True),
        ({"include_usage": 1}, False),
        ({}, False),
        (None, False),
        ("x", False),
    ],
)
def test_usage_is_asked_for(options: object, wanted: bool) -> None:
    assert openai.wants_usage({"stream_options": options}) is wanted
    assert openai.wants_usage({}) is False


def frames(body: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    made = openai.render_completion(Completion(body=body), new_id=lambda: "new", clock=lambda: 7, **options)
    assert all(frame.startswith(b"data: ") and frame.endswith(b"\n\n") for frame in made)
    return [orjson.loads(frame.removeprefix(b"data: ")) for frame in made]


USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def test_completion_becomes_frames() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "hi", "reasoning_content": "hm", "tool_calls": [call, call]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "system_fingerprint": "fp",
        "choices": [choice],
        "usage": USAGE,
        "sources": [{"document": []}],
        "event": {"type": "execute"},
        "citations": ["x"],
    }
    head = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "m",
        "system_fingerprint": "fp",
    }
    calls = [{"index": 0, **call}, {"index": 1, **call}]
    delta = {"index": 0, "delta": {**message, "tool_calls": calls}, "logprobs": None, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    assert frames(body, include_usage=True) == [
        {**head, "choices": [], "sources": [{"document": []}]},
        {**head, "citations": ["x"], "choices": [delta]},
        {**head, "choices": [last]},
        {**head, "choices": [], "usage": USAGE},
    ]


def test_usage_is_a_frame_only_when_asked_for_and_known() -> None:
    body = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}
    assert len(frames({**body, "usage": USAGE})) == 2
    assert len(frames(dict(body), include_usage=True)) == 2
    assert len(frames({**body, "usage": None}, include_usage=True)) == 2


def test_frames_of_a_poor_completion_are_whole() -> None:
    first, last, second, end = frames(
        {
            "choices": [
                {"message": None},
                {"message": {"content": "b"}},
            ]
        }
    )
    assert {key: first[key] for key in ("id", "created", "model")} == {
        "id": "chatcmpl-new",
        "created": 7,
        "model": "",
    }
    assert first["choices"] == [{"index": 0, "delta": {}, "finish_reason": None}]
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert second["choices"][0]["index"] == end["choices"][0]["index"] == 1
    assert second["choices"][0]["delta"] == {"content": "b"}
    assert frames({"choices": None}) == []


def test_frames_gather_to_the_same_completion() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    message = {"role": "assistant", "content": "hi", "tool_calls": [call]}
    choices = [{"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}]
    head = {"id": "c", "object": "chat.completion", "created": 5, "model": "m"}
    body = {**head, "choices": choices, "usage": USAGE}
    gatherer = Gatherer()
    gatherer.feed(frames(body, include_usage=True))
    assert gatherer.completion() == body


def test_error_frame_has_both_bodies() -> None:
    frame = openai.render_error(GatewayError(ErrorKind.TIMEOUT, "cannot wait"), "api_error")
    event = orjson.loads(frame.removeprefix(b"data: "))
    assert event["error"]["message"] == event["detail"] == "cannot wait"
    assert event["error"]["code"] == "timeout"


def test_references_that_carry_documents_need_no_id() -> None:
    files: list[dict[str, Any]] = [
        {"type": "file", "id": "f1", "status": "processed"},
        {"type": "text", "content": "words"},
        {"type": "text", "id": "t1", "file": {"data": {"content": "words"}}},
        {"type": "url", "url": "https://example.org"},
        {"type": "web_search", "collection_name": "w"},
        {"type": "collection", "legacy": True, "collection_names": ["a"]},
        {"docs": [{"content": "words"}]},
        {"type": "note", "id": "n1"},
    ]
    request = openai.parse_request({"model": "m", "messages": MESSAGES, "files": files})
    assert request.files == files
