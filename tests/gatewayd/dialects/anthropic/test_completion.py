"""Tests for gatewayd.dialects.anthropic.completion."""

import pytest

from gatewayd.dialects.anthropic.completion import finish_reason, to_annotations, to_completion, to_usage


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
        ("pause_turn", "length"),
        ("model_context_window_exceeded", "length"),
        ("new_thing", "stop"),
        (None, "stop"),
    ],
)
def test_finish_reasons(reason, expected):
    assert finish_reason(reason) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"stop_reason": "end_turn", "stop_sequence": None}, {"finish_reason": "stop"}),
        (
            {"stop_reason": "stop_sequence", "stop_sequence": "END"},
            {"finish_reason": "stop", "matched_stop": "END"},
        ),
        (
            {"stop_reason": "pause_turn"},
            {"finish_reason": "length", "native_finish_reason": "pause_turn"},
        ),
        (
            {"stop_reason": "refusal"},
            {"finish_reason": "content_filter", "native_finish_reason": "refusal"},
        ),
        ({}, {"finish_reason": "stop"}),
    ],
)
def test_why_it_ended(fields, expected):
    (choice,) = to_completion({"content": [], **fields}, 7)["choices"]
    assert {name: value for name, value in choice.items() if value and name != "message"} == expected


def test_what_openai_has_no_place_for_is_kept():
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "a"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    page = {"type": "web_search_result_location", "url": "https://acme.test/", "title": "A"}
    char = {"type": "char_location", "document_index": 0}
    blocks = [
        call,
        result,
        {"type": "text", "text": "see "},
        {"type": "text", "text": "there", "citations": [page, char]},
    ]
    message = to_completion({"content": blocks}, 7)["choices"][0]["message"]
    assert message["content"] == "see there"
    assert message["server_tool_blocks"] == [call, result]
    assert message["citations"] == [page, char]
    place = {"start_index": 4, "end_index": 9}
    cited = {"url": "https://acme.test/", "title": "A", **place}
    assert message["annotations"] == [{"type": "url_citation", "url_citation": cited}]
    assert to_annotations([3, {"url": 4}], 0, 1) == []


def test_details_of_usage_are_kept():
    usage = to_usage(
        {
            "output_tokens": 5,
            "output_tokens_details": {"thinking_tokens": 4},
            "server_tool_use": {"web_search_requests": 1},
            "service_tier": "standard",
        }
    )
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 4}
    assert usage["server_tool_use"] == {"web_search_requests": 1}
    assert usage["service_tier"] == "standard"
