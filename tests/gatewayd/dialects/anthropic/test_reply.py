"""Tests for gatewayd.dialects.anthropic.reply."""

import pytest

from gatewayd.dialects.anthropic.reply import message_id, render_usage, stop_reason_of


@pytest.mark.parametrize(
    ("choice", "has_calls", "expected"),
    [
        ({}, False, ("end_turn", None)),
        ({"finish_reason": 5}, False, ("end_turn", None)),
        ({"finish_reason": "stop"}, True, ("tool_use", None)),
        ({"finish_reason": None}, True, ("tool_use", None)),
        ({"finish_reason": "tool_calls"}, True, ("tool_use", None)),
        ({"finish_reason": "tool_calls"}, False, ("end_turn", None)),
        ({"finish_reason": "length"}, True, ("max_tokens", None)),
        ({"finish_reason": "content_filter"}, True, ("refusal", None)),
        ({"finish_reason": "stop", "matched_stop": "END"}, False, ("stop_sequence", "END")),
        ({"finish_reason": "stop", "matched_stop": "END"}, True, ("tool_use", None)),
        ({"finish_reason": "length", "matched_stop": "END"}, False, ("max_tokens", None)),
        ({"finish_reason": "stop", "native_finish_reason": "stop"}, False, ("end_turn", None)),
        ({"finish_reason": "length", "native_finish_reason": "pause_turn"}, False, ("pause_turn", None)),
    ],
)
def test_stop_reasons(choice, has_calls, expected):
    assert stop_reason_of(choice, has_calls, None) == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, (9, 0, 0, 2)),
        ({"input_tokens": 9, "output_tokens": 2}, (9, 0, 0, 2)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, (5, 0, 4, 3)),
        ({"prompt_tokens": 9, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}, (3, 2, 4, 3)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 9}}, (0, 0, 9, 3)),
        ({"prompt_tokens": 2, "prompt_tokens_details": {"cached_tokens": 9}}, (0, 0, 9, 3)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cache_write_tokens": 9}}, (0, 9, 0, 3)),
        ({"prompt_tokens": -1, "completion_tokens": "x"}, (7, 0, 0, 3)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, (5, 0, 4, 2)),
        (None, (7, 0, 0, 3)),
        ([], (7, 0, 0, 3)),
    ],
)
def test_usage(usage, expected):
    converted = render_usage(usage, 7, 12)
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    assert tuple(converted[name] for name in names) == expected
    assert len(converted) == len(names)


def test_details_of_usage():
    given = {
        "prompt_tokens": 1,
        "completion_tokens_details": {"reasoning_tokens": 4},
        "cache_creation": {"ephemeral_5m_input_tokens": 1},
        "server_tool_use": None,
    }
    converted = render_usage(given, 0, 0)
    assert converted["output_tokens_details"] == {"thinking_tokens": 4}
    assert converted["cache_creation"] == {"ephemeral_5m_input_tokens": 1}
    assert "server_tool_use" not in converted


def test_message_ids():
    assert message_id("msg_1", lambda: "x") == "msg_1"
    assert message_id("chatcmpl-1", lambda: "a-b") == message_id(None, lambda: "a-b") == "msg_ab"
