"""Tests for gatewayd.completions.choices."""

from typing import Any

import pytest

from gatewayd.completions.choices import choice_to_delta, complete_choices, final_choice, flatten_thinking
from gatewayd.completions.limits import MAX_CHOICES, AnswerSizeError

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
WHOLE = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "length"}
ENDED = {**WHOLE, "finish_reason": "stop"}
CALLING = {"role": "assistant", "tool_calls": [CALL]}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (WHOLE, WHOLE),
        ({"message": {"content": "a"}}, {**WHOLE, "finish_reason": "stop"}),
        (
            {"index": None, "delta": {"content": "a"}, "finish_reason": None},
            {**WHOLE, "finish_reason": "stop"},
        ),
        (
            {"message": {"role": "assistant", "tool_calls": [CALL]}},
            {
                "index": 0,
                "message": {"role": "assistant", "tool_calls": [CALL]},
                "finish_reason": "tool_calls",
            },
        ),
        ({}, {"index": 0, "message": {"role": "assistant"}, "finish_reason": "stop"}),
        (5, 5),
    ],
)
def test_what_is_missing_is_added(choice: Any, expected: Any) -> None:
    body = {"choices": [dict(choice) if isinstance(choice, dict) else choice]}
    assert complete_choices(body) is (choice != expected)
    assert body == {"choices": [expected]}


def test_choices_are_numbered_by_their_place() -> None:
    body = {"choices": [{"message": {}}, {"message": {}}]}
    assert complete_choices(body)
    assert [choice["index"] for choice in body["choices"]] == [0, 1]


@pytest.mark.parametrize("choices", [None, {}, "x"])
def test_what_is_no_list_has_nothing_to_complete(choices: Any) -> None:
    assert not complete_choices({"choices": choices})


def test_too_many_choices() -> None:
    with pytest.raises(AnswerSizeError):
        complete_choices({"choices": [WHOLE] * (MAX_CHOICES + 1)})


def test_a_choice_as_a_delta_and_its_end() -> None:
    delta = choice_to_delta(
        {"message": {"content": "a", "tool_calls": [{**CALL, "id": None}, None]}, "x": 1}, 3
    )
    (call,) = delta["delta"]["tool_calls"]
    assert (delta["index"], delta["finish_reason"], delta["x"]) == (3, "tool_calls", 1)
    assert (call["index"], call["id"][:5], delta["delta"]["content"]) == (0, "call_", "a")
    assert final_choice(delta) == {"index": 3, "delta": {}, "finish_reason": "tool_calls"}


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}
TEXT = {"type": "text", "text": "a"}
PICTURE = {"type": "image_url", "image_url": {"url": "u"}}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([THOUGHT, TEXT], {"content": "a", "reasoning_content": "t"}),
        ([THOUGHT], {"content": None, "reasoning_content": "t"}),
        ([THOUGHT, PICTURE], {"content": [THOUGHT, PICTURE]}),
        ([TEXT], {"content": [TEXT]}),
        ("a", {"content": "a"}),
    ],
)
def test_a_content_with_thinking_becomes_a_text(content: Any, expected: dict[str, Any]) -> None:
    message = {"content": content}
    assert flatten_thinking(message) is (message["content"] is not content)
    assert message == expected
