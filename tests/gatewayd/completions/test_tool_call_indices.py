"""Tests for gatewayd.completions.tool_call_indices."""

from typing import Any

import pytest

from gatewayd.completions.limits import MAX_CHOICES, AnswerSizeError
from gatewayd.completions.tool_call_indices import CHUNK, ToolCallNumbering
from tests.fakes.providers.upstream import openai_chunk


def numbered(*deltas: list[dict[str, Any]]) -> tuple[list[list[Any]], bool]:
    """Return the indices of the pieces of each delta, and whether anything was changed."""
    numbers, changed = ToolCallNumbering(), False
    events = [openai_chunk(tool_calls=pieces) for pieces in deltas]
    for event in events:
        changed = numbers.normalise(event) or changed
    return [
        [piece.get("index") for piece in event["choices"][0]["delta"]["tool_calls"]] for event in events
    ], changed


def piece(name: str = "", arguments: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        **fields,
        "function": {"name": name, "arguments": arguments} if name else {"arguments": arguments},
    }


def test_good_indices_stay() -> None:
    first, second = piece("f", "", index=0, id="a"), piece("g", "", index=1, id="b")
    assert numbered(
        [first], [piece(arguments="{}", index=0)], [second], [piece(arguments="{}", index=1)]
    ) == (
        [[0], [0], [1], [1]],
        False,
    )


def test_parallel_calls_of_one_index() -> None:
    deltas = [[piece("f", "{}", index=0, id="a")], [piece("g", "{}", index=0, id="b")]]
    assert numbered(*deltas) == ([[0], [1]], True)


def test_calls_without_an_index() -> None:
    deltas = [[piece("f", "{}", id="a"), piece("g", "{}", id="b")], [piece("h", "{}", id="c")]]
    assert numbered(*deltas) == ([[0, 1], [2]], True)


def test_arguments_as_an_object() -> None:
    event = openai_chunk(tool_calls=[piece("f", {"a": [1]}, index=0, id="a")])
    assert ToolCallNumbering().normalise(event)
    assert event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] == '{"a":[1]}'


def test_name_and_arguments_outside_of_function() -> None:
    event = openai_chunk(tool_calls=[{"index": 0, "id": "a", "name": "f", "arguments": {"x": 1}}])
    assert ToolCallNumbering().normalise(event)
    assert event["choices"][0]["delta"]["tool_calls"] == [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}
    ]


def test_arguments_that_come_once_more_are_left_out() -> None:
    numbers = ToolCallNumbering()
    assert not numbers.normalise(openai_chunk(tool_calls=[piece("f", '{"x":1}', index=0, id="a")]))
    again = openai_chunk(tool_calls=[piece("f", '{"x": 1}', index=0, id="a")])
    assert numbers.normalise(again)
    assert again["choices"][0]["delta"]["tool_calls"][0]["function"] == {"name": "f", "arguments": ""}


def test_a_second_call_without_a_name_has_that_of_the_first() -> None:
    numbers = ToolCallNumbering()
    assert not numbers.normalise(openai_chunk(tool_calls=[piece("f", '{"x":1}', index=0, id="a")]))
    second = openai_chunk(tool_calls=[piece(arguments='{"y":1}', index=0, id="b")])
    assert numbers.normalise(second)
    assert second["choices"][0]["delta"]["tool_calls"] == [
        {"index": 1, "id": "b", "function": {"name": "f", "arguments": '{"y":1}'}}
    ]


def test_as_many_choices_as_an_answer_may_have() -> None:
    choices = [{"index": index, "delta": {}} for index in range(MAX_CHOICES + 1)]
    with pytest.raises(AnswerSizeError, match=f"over {MAX_CHOICES} choices"):
        ToolCallNumbering().normalise({**openai_chunk(), "choices": choices})
    numbers = ToolCallNumbering()
    with pytest.raises(AnswerSizeError, match=f"over {MAX_CHOICES} choices"):
        for index in range(MAX_CHOICES + 1):
            event = openai_chunk(tool_calls=[piece("f", "{}", index=0, id="a")])
            event["choices"][0]["index"] = index
            numbers.normalise(event)


def test_each_choice_counts_for_itself() -> None:
    event = openai_chunk(tool_calls=[piece("f", "{}", index=0, id="a")])
    other = openai_chunk(tool_calls=[piece("g", "{}", index=0, id="b")])["choices"][0]
    event["choices"].append({**other, "index": 1})
    assert not ToolCallNumbering().normalise(event)


def test_an_event_is_called_what_clients_look_for() -> None:
    event: dict[str, Any] = {"choices": [None, 5, {"delta": None}, {"delta": {"tool_calls": [None, 5]}}]}
    assert ToolCallNumbering().normalise(event)
    assert event["object"] == CHUNK
    assert [choice.get("index") for choice in event["choices"][2:]] == [2, 3]
    assert not ToolCallNumbering().normalise(event)


@pytest.mark.parametrize("calls", [[None, 5], {"index": 0}, "f"])
def test_what_is_no_list_of_calls_does_not_reach_clients(calls: Any) -> None:
    event = openai_chunk(content="a", tool_calls=calls)
    assert ToolCallNumbering().normalise(event)
    assert event["choices"][0]["delta"]["tool_calls"] == []
    kept = openai_chunk(tool_calls=[None, piece("f", "{}", index=0, id="a")])
    assert ToolCallNumbering().normalise(kept)
    assert kept["choices"][0]["delta"]["tool_calls"] == [piece("f", "{}", index=0, id="a")]
