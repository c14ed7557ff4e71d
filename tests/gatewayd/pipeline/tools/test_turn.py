"""Tests for gatewayd.pipeline.tools.turn."""

from typing import Any

import pytest

from gatewayd.pipeline.tools.turn import ToolLoopState, ToolTurn, add_usage, assistant_call_message
from tests.fakes.providers.tool_calls import make_call

Body = dict[str, Any]


def event(delta: Body | None = None, finish: str | None = None, **fields: Any) -> Body:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c1", "created": 5, "model": "m", "choices": [choice], **fields}


def call_delta(text: str, name: str = "f") -> Body:
    return {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": name, "arguments": text}}]}


def test_content_passes_and_calls_are_held_back() -> None:
    part = ToolTurn(ToolLoopState())
    passed = part.feed(
        [
            event({"role": "assistant", "content": ""}),
            event({"content": "Let me see."}),
            event({"content": "!", **call_delta('{"a":')}),
            event(call_delta("1}", "")),
            event(finish="tool_calls"),
            {"id": "c1", "choices": [], "usage": {"total_tokens": 3}},
        ]
    )
    assert [each["choices"][0]["delta"] for each in passed] == [
        {"role": "assistant", "content": ""},
        {"content": "Let me see."},
        {"content": "!"},
    ]
    assert part.calls() == [make_call("f", '{"a":1}')]
    assert part.message() == {
        "role": "assistant",
        "content": "Let me see.!",
        "tool_calls": [make_call("f", '{"a":1}')],
    }
    assert [each.get("usage") for each in part.close()] == [None, {"total_tokens": 3}]


def test_a_reason_beside_content_is_held_back_alone_with_the_usage() -> None:
    part = ToolTurn(ToolLoopState())
    passed = part.feed([event({"content": "x"}, "stop", usage={"total_tokens": 1})])
    assert passed == [event({"content": "x"})]
    assert part.close() == [
        {
            "id": "c1",
            "created": 5,
            "model": "m",
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "logprobs": None}],
            "usage": {"total_tokens": 1},
        }
    ]


def test_a_later_round_goes_on_under_the_first_id() -> None:
    joined = ToolLoopState()
    first = ToolTurn(joined)
    first.feed(
        [event({"role": "assistant", "content": "One."}), event(usage={"total_tokens": 2}, finish="stop")]
    )
    first.close()
    second = ToolTurn(joined)
    later = event({"role": "assistant", "content": ""}) | {"id": "c2", "created": 9}
    passed = second.feed([later, event({"role": "assistant", "content": "Two"}) | {"id": "c2"}])
    assert passed == [event({"content": "\n\nTwo"})]
    tail = second.feed([event(usage={"total_tokens": 5}, finish="stop")]) + second.close()
    assert [each["usage"] for each in tail] == [{"total_tokens": 7}]
    assert joined.used == {"total_tokens": 7}


@pytest.mark.parametrize(("before", "after"), [("One. ", "Two"), ("One", " Two"), ("", "Two")])
def test_texts_are_parted_only_where_nothing_parts_them(before: str, after: str) -> None:
    joined = ToolLoopState()
    first = ToolTurn(joined)
    first.feed([event({"content": before})])
    first.close()
    assert ToolTurn(joined).feed([event({"content": after})]) == [event({"content": after})]


def test_usage_that_comes_with_every_chunk_counts_once() -> None:
    joined = ToolLoopState()
    part = ToolTurn(joined)
    passed = part.feed([event({"content": "a"}, usage={"t": 1}), event({"content": "b"}, usage={"t": 2})])
    part.close()
    assert [each["usage"] for each in passed] == [{"t": 1}, {"t": 2}]
    assert joined.used == {"t": 2}


def test_what_is_no_answer_passes() -> None:
    part = ToolTurn(ToolLoopState())
    others = [
        {"event": {"type": "status", "data": {}}},
        {"sources": [{}]},
        {"id": "c1", "choices": [], "prompt_filter_results": []},
    ]
    assert part.feed([dict(each) for each in others]) == others
    assert part.close() == []


def test_an_error_breaks_the_round() -> None:
    part = ToolTurn(ToolLoopState())
    assert part.feed([{"error": {"message": "x"}}]) == [{"error": {"message": "x"}}]
    assert part.is_broken


def test_odd_choices_do_no_harm() -> None:
    part = ToolTurn(ToolLoopState())
    assert part.feed([{"choices": [3, {"index": 1, "delta": {"content": "x"}}, {"delta": None}]}]) == [
        {"choices": [{"index": 1, "delta": {"content": "x"}}]}
    ]
    assert part.message()["content"] is None


def test_what_the_provider_wants_back_is_in_the_message() -> None:
    part = ToolTurn(ToolLoopState())
    part.feed(
        [
            event({"reasoning_content": "I th"}),
            event({"reasoning_content": "ink"}),
            event({"thinking_blocks": [{"signature": "s"}]}),
            event({"content": [{"type": "text", "text": "Hm."}]}),
            event(call_delta("{}")),
        ]
    )
    message = part.message()
    assert message["reasoning_content"] == "I think"
    assert message["thinking_blocks"] == [{"signature": "s"}]
    assert message["content"] == "Hm."


def test_a_whole_message_is_stripped_to_what_a_request_may_have() -> None:
    message = {"role": "assistant", "content": "", "refusal": None, "annotations": [], "audio": None}
    calls = [make_call("f")]
    assert assistant_call_message(message, calls) == {
        "role": "assistant",
        "content": None,
        "tool_calls": calls,
    }


def test_sums_of_usages() -> None:
    first = {"a": 1, "details": {"b": 2}, "tier": "x", "none": None, "is": True}
    assert add_usage(first, {"a": 2, "details": {"b": 3, "c": 1}, "tier": "y", "none": 4, "is": True}) == {
        "a": 3,
        "details": {"b": 5, "c": 1},
        "tier": "y",
        "none": 4,
        "is": True,
    }


def test_much_reasoning_in_small_pieces_costs_no_more_each() -> None:
    # In quadratic time this takes long.
    part = ToolTurn(ToolLoopState())
    for _ in range(150_000):
        part.feed([event({"reasoning_content": "hm, well"})])
    assert len(part.message()["reasoning_content"]) == 1_200_000
