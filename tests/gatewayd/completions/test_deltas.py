"""Tests for gatewayd.completions.deltas: answers cut into pieces in every way seen."""

import itertools
from typing import Any

import orjson
import pytest

from gatewayd.completions.deltas import (
    ReasoningPiece,
    calls_of,
    error_message_in,
    message_of,
    reasoning_of,
    reasoning_pieces_of,
    text_of,
    text_or_refusal_of,
    usage_of,
)
from tests.fakes.providers.completion_assembler import Gatherer
from tests.fakes.providers.upstream import openai_chunk

Body = dict[str, Any]

CALL = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}


def ids() -> Any:
    numbers = itertools.count(1)
    return lambda: f"new{next(numbers)}"


def completion(*events: Body) -> Body:
    gatherer = Gatherer(ids())
    gatherer.feed(events)
    body = gatherer.completion()
    assert body == gatherer.completion()
    return body


def message(*deltas: Body) -> Body:
    body = completion(*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas))
    found: Body = body["choices"][0]["message"]
    return found


def test_a_whole_stream() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    events = [
        openai_chunk(role="assistant", content=""),
        openai_chunk(content="He"),
        openai_chunk(),
        openai_chunk(content="llo"),
        openai_chunk(finish_reason="length"),
        {**openai_chunk(), "choices": [], "usage": usage},
    ]
    before = orjson.dumps(events)
    body = completion(*events)
    assert orjson.dumps(events) == before
    assert body == {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello"},
                "logprobs": None,
                "finish_reason": "length",
            }
        ],
        "usage": usage,
    }


def test_nothing_is_a_whole_completion_too() -> None:
    body = completion({"choices": None}, {"choices": []}, {})
    assert body["choices"][0]["message"] == {"role": "assistant", "content": ""}
    assert body["choices"][0]["finish_reason"] == "stop"
    assert (body["id"], body["created"], body["model"]) == ("chatcmpl-new1", 0, "")
    assert "usage" not in body


def test_wrong_types_count_as_absent() -> None:
    odd: list[Body] = [
        {"id": 5, "created": "now", "model": None, "choices": "x", "usage": []},
        {
            "choices": [
                None,
                {"delta": None},
                {"delta": "x", "index": "0", "logprobs": 1, "finish_reason": ""},
            ]
        },
        {"choices": [{"delta": {"content": 5, "role": [], "tool_calls": {}, "reasoning": {}, "refusal": 1}}]},
    ]
    body = completion(*odd, openai_chunk(content="a"))
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "a"}
    assert body["id"] == "chatcmpl-fake"
    assert body["created"] == 1_700_000_000
    assert body["model"] == "m"


def test_tool_calls_are_the_reason_when_none_came() -> None:
    body = completion({"choices": [{"delta": {"tool_calls": [CALL]}}]})
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}


def test_text_beside_tool_calls_is_kept_and_empty_calls_are_none() -> None:
    found = message({"content": "a", "tool_calls": []}, {"tool_calls": [CALL]})
    assert found["content"] == "a"
    assert "tool_calls" not in message({"content": "a", "tool_calls": []}, {"tool_calls": None})


def test_several_choices() -> None:
    body = completion(
        {"choices": [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}]},
        {"choices": [{"index": 1, "delta": {"content": "B"}, "finish_reason": "length"}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    )
    assert [
        (choice["index"], choice["message"]["content"], choice["finish_reason"]) for choice in body["choices"]
    ] == [
        (0, "a", "stop"),
        (1, "bB", "length"),
    ]


def test_the_old_function_call() -> None:
    body = completion(
        {"choices": [{"delta": {"function_call": {"name": "f", "arguments": ""}}}]},
        {"choices": [{"delta": {"function_call": {"arguments": '{"x":'}}}]},
        {"choices": [{"delta": {"function_call": {"arguments": "1}"}}}]},
    )
    assert body["choices"][0]["message"]["function_call"] == {"name": "f", "arguments": '{"x":1}'}
    assert body["choices"][0]["finish_reason"] == "function_call"


def test_refusals() -> None:
    found = message({"refusal": "I "}, {"refusal": "cannot"}, {"refusal": None})
    assert found == {"role": "assistant", "content": None, "refusal": "I cannot"}


def test_logprobs_are_joined() -> None:
    first, second = {"token": "a", "logprob": -1.5}, {"token": "b", "logprob": -2.5}
    body = completion(
        {"choices": [{"delta": {"content": "a"}, "logprobs": {"content": [first], "refusal": None}}]},
        {"choices": [{"delta": {"content": "b"}, "logprobs": {"content": [second]}}]},
    )
    assert body["choices"][0]["logprobs"] == {"content": [first, second]}


PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}]


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ({"reasoning_content": "hm"}, "hm"),
        ({"reasoning": "hm"}, "hm"),
        ({"thinking": "hm"}, "hm"),
        ({"reasoning_content": "hm", "reasoning": "hm"}, "hm"),
        ({"reasoning_content": None, "reasoning": "hm"}, "hm"),
        ({"reasoning_content": "", "reasoning": "hm"}, "hm"),
        ({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, "hm"),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "h"}, {"summary": "m"}]}, "hm"),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "xyz"}]}, ""),
        ({"content": PARTS}, "hm"),
        ({"content": [{"type": "thinking", "thinking": "hm"}]}, "hm"),
        ({"content": "hm"}, ""),
        ({"reasoning": {"effort": "low"}, "reasoning_details": 5}, ""),
        ({}, ""),
    ],
)
def test_reasoning_of_all_providers(delta: Body, expected: str) -> None:
    assert reasoning_of(delta) == expected
    assert message(delta).get("reasoning_content", "") == expected


def test_reasoning_has_one_name() -> None:
    details = [{"type": "reasoning.text", "text": "h", "index": 0}]
    found = message({"reasoning": "h", "reasoning_details": details}, {"thinking": "m"}, {"content": PARTS})
    assert found["reasoning_content"] == "hmhm"
    assert found["reasoning_details"] == details
    assert not {"reasoning", "thinking"} & set(found)
    assert found["content"] == "a"


def test_said() -> None:
    assert text_of({"content": PARTS}) == "a"
    assert text_of({"content": None}) == text_of({"content": [5, {}]}) == text_of({}) == ""


SOME = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
NONE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@pytest.mark.parametrize(
    "event",
    [
        {"usage": SOME},
        {"x_groq": {"usage": SOME}},
        {"choices": [{"usage": SOME}]},
        {"usage": SOME, "choices": None},
    ],
)
def test_usage_wherever_it_is(event: Body) -> None:
    assert usage_of(event) == SOME
    assert completion(event, {"usage": None}, {"usage": NONE})["usage"] == SOME


def test_usage_that_grows_and_zeros_alone() -> None:
    assert (
        completion({"usage": NONE}, {"usage": {**SOME, "total_tokens": 4}}, {"usage": SOME})["usage"] == SOME
    )
    assert completion({"usage": NONE})["usage"] == NONE


def test_other_fields_are_kept() -> None:
    body = completion(
        {"system_fingerprint": "fp", "sources": [1], "event": {"type": "x"}, "choices": []},
        {"system_fingerprint": None, "choices": [{"delta": {"annotations": [1]}, "stop_reason": 0}]},
        {"choices": [{"delta": {"annotations": [2], "audio": {"id": "x", "data": "ab"}}}]},
        {"choices": [{"delta": {"audio": {"id": "x", "data": "cd"}}}]},
    )
    assert (body["system_fingerprint"], body["sources"]) == ("fp", [1])
    assert "event" not in body
    assert body["choices"][0]["stop_reason"] == 0
    assert body["choices"][0]["message"]["annotations"] == [1, 2]
    assert body["choices"][0]["message"]["audio"] == {"id": "x", "data": "abcd"}


def test_a_message_in_place_of_a_delta() -> None:
    body = completion(
        {"choices": [{"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}]}
    )
    assert body["choices"][0]["message"]["content"] == "a"


@pytest.mark.parametrize(
    "odd", [{}, {"choices": None}, {"choices": []}, {"choices": ["x"]}, {"choices": [{}]}]
)
def test_an_answer_without_a_message(odd: Body) -> None:
    assert message_of(odd) == {}


def test_the_message_of_the_first_choice() -> None:
    choices = [{"message": {"content": "a"}}, {"message": {"content": "b"}}]
    assert message_of({"choices": choices}) == {"content": "a"}


SIGNED = {"type": "thinking", "thinking": "ab", "signature": "s"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({}, []),
        ({"reasoning_content": None, "reasoning": {"effort": "low"}, "thinking": True}, []),
        ({"reasoning_content": "ab"}, [ReasoningPiece("ab")]),
        ({"reasoning": "ab", "reasoning_content": "ab", "thinking": "ab"}, [ReasoningPiece("ab")]),
        ({"reasoning": "ab", "reasoning_content": "cd"}, [ReasoningPiece("cd"), ReasoningPiece("ab")]),
        ({"reasoning_content": "ab", "thinking_blocks": [SIGNED]}, [ReasoningPiece("ab", "s")]),
        (
            {"reasoning_content": "ab", "thinking_blocks": [{**SIGNED, "thinking": ""}]},
            [ReasoningPiece("ab"), ReasoningPiece("", "s")],
        ),
        (
            {"thinking_blocks": [{"type": "redacted_thinking", "data": "x"}, {"type": "odd"}, 5]},
            [ReasoningPiece(data="x")],
        ),
        (
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "ab"}], "reasoning": "ab"},
            [ReasoningPiece("ab")],
        ),
        (
            {
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "ab", "signature": "s"},
                    {"type": "reasoning.encrypted", "format": "anthropic-claude-v1", "data": "x"},
                    {"type": "reasoning.encrypted", "format": "openai-responses-v1", "data": "y"},
                ]
            },
            # Signatures and data are for the router that made them.
            [ReasoningPiece("ab")],
        ),
        ({"content": [{"type": "thinking", "thinking": "ab"}]}, [ReasoningPiece("ab")]),
    ],
)
def test_thoughts(message, expected):
    assert reasoning_pieces_of(message) == expected


def test_words():
    assert text_or_refusal_of({"content": "a", "refusal": "b"}) == "ab"
    assert (
        text_or_refusal_of(
            {"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "b"}]}
        )
        == "a"
    )
    assert text_or_refusal_of({"content": None}) == text_or_refusal_of({}) == ""


def test_calls():
    assert calls_of({"tool_calls": [{"id": "a"}, None]}) == [{"id": "a"}]
    assert calls_of({"tool_calls": [], "function_call": {"name": "f"}}) == [
        {"index": 0, "function": {"name": "f"}}
    ]
    assert calls_of({"tool_calls": [{"id": "a"}], "function_call": {"name": "f"}}) == [{"id": "a"}]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"content": "d"}, "d"),
        ({"detail": {"message": "c"}}, "c"),
        ({"code": 5}, None),
        ({"error": {"error": {"error": {"error": {"error": {"error": "too deep"}}}}}}, None),
        (True, None),
    ],
)
def test_the_sentence_in_an_error(answer, sentence):
    assert error_message_in(answer) == sentence
