"""Tests for gatewayd.dialects.openai."""

from typing import Any

import orjson
import pytest

from gatewayd.catalog.replies import Completion
from gatewayd.dialects import openai
from gatewayd.errors import GatewayError, Kind

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
        ({"files": {}}, "files"),
        ({"files": [{"type": "file"}]}, "files[0]"),
        ({"files": ["f"]}, "files[0]"),
        ({"params": []}, "params"),
        ({"params": {"custom_params": 1}}, "params.custom_params"),
    ],
)
def test_wrong_field_is_named(change: dict[str, Any], param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        openai.parse_request({"model": "m", "messages": MESSAGES, **change})
    assert caught.value.kind is Kind.INVALID_REQUEST
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


def test_stream_may_be_null() -> None:
    assert openai.parse_request({"model": "m", "messages": MESSAGES, "stream": None}).stream is False


def test_sources_frame_has_choices_for_strict_clients() -> None:
    frame = orjson.loads(openai.render_sources([{"document": []}], "m", "r", 5).removeprefix(b"data: "))
    assert frame["choices"] == []
    assert frame["object"] == "chat.completion.chunk"
    assert frame["sources"] == [{"document": []}]


def test_completion_becomes_frames() -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    frames = openai.render_completion(Completion(body={"id": "c", "choices": [choice]}))
    events = [orjson.loads(frame.removeprefix(b"data: ")) for frame in frames]
    assert events[0]["choices"][0]["delta"]["content"] == "hi"
    assert events[1]["choices"][0]["finish_reason"] == "stop"


def test_error_frame_has_both_bodies() -> None:
    frame = openai.render_error(GatewayError(Kind.TIMEOUT, "cannot wait"), "api_error")
    event = orjson.loads(frame.removeprefix(b"data: "))
    assert event["error"]["message"] == event["detail"] == "cannot wait"
    assert event["error"]["code"] == "timeout"
