"""Tests for gatewayd.completions.tool_calls: calls cut into pieces in every way seen."""

import copy
import itertools
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.chat.toolround import Joined, Round
from gatewayd.completions.limits import (
    MAX_ARGUMENT_CHARACTERS,
    MAX_ARGUMENT_MARKS,
    MAX_NAME_CHARACTERS,
    MAX_TOOL_CALLS,
    AnswerSizeError,
)
from gatewayd.completions.numbering import CallNumbers
from gatewayd.completions.tool_calls import ToolCall, ToolCallAssembler, parse_object
from gatewayd.dialects.ollama import Timing
from gatewayd.dialects.ollama_stream import ChatLines
from tests.fakes.upstream import openai_chunk
from tests.gatewayd.dialects.message_events import decode, run

Body = dict[str, Any]


def ids() -> Any:
    numbers = itertools.count(1)
    return lambda: f"new{next(numbers)}"


def piece(name: str | None = None, arguments: Any = None, **fields: Any) -> Body:
    function = {"name": name, "arguments": arguments}
    return {**fields, "function": {key: value for key, value in function.items() if value is not None}}


def gathered(*deltas: Any) -> list[tuple[str, str, str]]:
    calls = ToolCallAssembler(ids())
    for delta in deltas:
        calls.add(delta)
    found = calls.calls()
    assert found == calls.calls()
    assert bool(calls) == bool(found)
    assert all(call["type"] == "function" for call in found)
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in found]


PLAYBOOKS: dict[str, tuple[list[Any], list[tuple[str, str, str]]]] = {
    "one call in pieces": (
        [[piece("f", "", index=0, id="a")], [piece(None, '{"x"', index=0)], [piece(None, ":1}", index=0)]],
        [("a", "f", '{"x":1}')],
    ),
    "two calls, interleaved": (
        [
            [piece("f", "", index=0, id="a"), piece("g", "", index=1, id="b")],
            [piece(None, '{"y":', index=1)],
            [piece(None, '{"x":', index=0), piece(None, "2}", index=1)],
            [piece(None, "1}", index=0)],
        ],
        [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')],
    ),
    "indexes that start later and come in disorder": (
        [[piece("g", "{}", index=2, id="b")], [piece("f", "{}", index=1, id="a")]],
        [("a", "f", "{}"), ("b", "g", "{}")],
    ),
    "one index for all, told apart by id": (
        [[piece("f", '{"x":1}', index=0, id="a")], [piece("f", '{"x":2}', index=0, id="b")]],
        [("a", "f", '{"x":1}'), ("b", "f", '{"x":2}')],
    ),
    "one index for all, interleaved by id": (
        [
            [piece("f", "", index=0, id="a"), piece("g", "", index=0, id="b")],
            [piece(None, '{"x":', index=0, id="a")],
            [piece(None, "{}", index=0, id="b")],
            [piece(None, "1}", index=0, id="a")],
        ],
        [("a", "f", '{"x":1}'), ("b", "g", "{}")],
    ),
    "one index for all, without ids": (
        [[piece("f", '{"x":1}', index=0)], [piece("g", "{}", index=0)], [piece("g", '{"z":1}', index=0)]],
        [("call_new1", "f", '{"x":1}'), ("call_new2", "g", "{}"), ("call_new3", "g", '{"z":1}')],
    ),
    "one id for all, told apart by index": (
        [
            [piece("f", "", index=0, id="f"), piece("f", "", index=1, id="f")],
            [piece(None, "{", index=0, id="f")],
            [piece(None, '{"x":1}', index=1, id="f")],
            [piece(None, "}", index=0, id="f")],
        ],
        [("f", "f", "{}"), ("f", "f", '{"x":1}')],
    ),
    "no index, told apart by id": (
        [
            [piece("f", "", id="a")],
            [piece("g", "", id="b")],
            [piece(None, "{}", id="a")],
            [piece(None, '{"y":1}', id="b")],
        ],
        [("a", "f", "{}"), ("b", "g", '{"y":1}')],
    ),
    "no index and no id": (
        [[piece("f", '{"x":')], [piece(None, "1}")], [piece("g", "{}")]],
        [("call_new1", "f", '{"x":1}'), ("call_new2", "g", "{}")],
    ),
    "no index and no id, all in one delta": (
        [[piece("f", ""), piece("g", ""), piece("g", '{"a":1}')]],
        [("call_new1", "f", "{}"), ("call_new2", "g", "{}"), ("call_new3", "g", '{"a":1}')],
    ),
    "a null index": (
        [[piece("f", "{", index=None, id="a")], [piece(None, "}", index=None)]],
        [("a", "f", "{}")],
    ),
    "another index for the rest": (
        [[piece("f", "{", index=0, id="a")], [piece(None, "}", index=5, id="a")]],
        [("a", "f", "{}")],
    ),
    "another id in each piece": (
        [
            [piece("f", "", index=0, id="a")],
            [piece(None, "{", index=0, id="b")],
            [piece(None, "}", index=0, id="c")],
        ],
        [("a", "f", "{}")],
    ),
    "an id that comes late": (
        [[piece("f", "{", index=0)], [piece(None, "}", index=0, id="a")]],
        [("a", "f", "{}")],
    ),
    "an empty id": (
        [[piece("f", "{", index=0, id="a")], [piece(None, "}", index=0, id="")]],
        [("a", "f", "{}")],
    ),
    "a name in pieces": (
        [[piece("get_", index=0, id="a")], [piece("weather", index=0)], [piece(None, "{}", index=0)]],
        [("a", "get_weather", "{}")],
    ),
    "a name that grows": (
        [[piece("get_", index=0, id="a")], [piece("get_weather", "{}", index=0)]],
        [("a", "get_weather", "{}")],
    ),
    "a name in each piece": (
        [
            [piece("f", '{"x":', index=0, id="a")],
            [piece("f", "{}", index=0, id="a")],
            [piece("f", "}", index=0)],
        ],
        [("a", "f", '{"x":{}}')],
    ),
    "empty and null names": (
        [
            [piece("f", "{", index=0, id="a")],
            [{"index": 0, "function": {"name": None, "arguments": "}"}}],
            [piece("", "", index=0)],
        ],
        [("a", "f", "{}")],
    ),
    "arguments only at the end": (
        [[piece("f", "", index=0, id="a")], [piece(None, "", index=0)], [piece(None, '{"x":1}', index=0)]],
        [("a", "f", '{"x":1}')],
    ),
    "an empty object before the arguments": (
        [[piece("f", "{}", index=0, id="a")], [piece(None, '{"x":', index=0)], [piece(None, "1}", index=0)]],
        [("a", "f", '{"x":1}')],
    ),
    "everything once more at the end": (
        [
            [piece("f", '{"x":', index=0, id="a")],
            [piece(None, "1}", index=0)],
            [piece("f", '{"x":1}', index=0, id="a")],
        ],
        [("a", "f", '{"x":1}')],
    ),
    "everything once more, without its id": (
        [[piece("f", '{"x":1}', index=0)], [piece("f", '{"x":1}', index=0)]],
        [("call_new1", "f", '{"x":1}')],
    ),
    "arguments as an object": ([[piece("f", {"x": [1]}, index=0, id="a")]], [("a", "f", '{"x":[1]}')]),
    "no arguments at all": ([[piece("f", index=0, id="a")]], [("a", "f", "{}")]),
    "blank arguments": ([[piece("f", " \n", index=0, id="a")]], [("a", "f", "{}")]),
    "arguments that are no JSON stay": ([[piece("f", "{x", index=0, id="a")]], [("a", "f", "{x")]),
    "what follows arguments that are no JSON is more of them": (
        [
            [piece("f", "{x}", index=0, id="a")],
            [piece(None, '{"y":1}', index=0)],
            [piece(None, "{x}", index=0)],
        ],
        [("a", "f", '{x}{"y":1}{x}')],
    ),
    "everything once more after a line's end": (
        [
            [piece("f", '{"x":1}', index=0, id="a")],
            [piece(None, "\n", index=0)],
            [piece(None, '{"x":1}', index=0)],
        ],
        [("a", "f", '{"x":1}')],
    ),
    "braces inside a text": (
        [[piece("f", '{"c":"a{}', index=0, id="a")], [piece(None, '{}"}', index=0)]],
        [("a", "f", '{"c":"a{}{}"}')],
    ),
    "another id with a name while arguments are open": (
        [[piece("f", '{"x":', index=0, id="a")], [piece("f", '{"y":1}', index=0, id="b")]],
        [("a", "f", '{"x":'), ("b", "f", '{"y":1}')],
    ),
    "another id without a name after whole arguments": (
        [[piece("f", '{"x":1}', index=0, id="a")], [piece(None, '{"y":1}', index=0, id="b")]],
        [("a", "f", '{"x":1}'), ("b", "f", '{"y":1}')],
    ),
    "another object after a whole one": (
        [
            [piece("f", '{"x":1}', index=0, id="a")],
            [piece(None, '{"x": 1}', index=0)],
            [piece(None, '{"x":2}', index=0)],
        ],
        [("a", "f", '{"x":1}'), ("call_new1", "f", '{"x":2}')],
    ),
    "another name while arguments are open": (
        [[piece("f", '{"x":', index=0)], [piece("g", "{}", index=0)]],
        [("call_new1", "f", '{"x":'), ("call_new2", "g", "{}")],
    ),
    "name and arguments outside of function": (
        [[{"index": 0, "id": "a", "name": "f", "arguments": '{"x":1}'}], [{"name": "g", "arguments": "{}"}]],
        [("a", "f", '{"x":1}'), ("call_new1", "g", "{}")],
    ),
    "more braces than were opened": (
        [[piece("f", '{"x":1}', index=0, id="a")], [piece(None, "}", index=0)]],
        [("a", "f", '{"x":1}}')],
    ),
    "arguments before the name": (
        [[piece(None, '{"x":', index=0)], [piece("f", index=0, id="a")], [piece(None, "1}", index=0)]],
        [("a", "f", '{"x":1}')],
    ),
    "an id used for two names": (
        [[piece("f", '{"x":1}', index=0, id="a"), piece("g", '{"y":2}', index=1, id="a")]],
        [("a", "f", '{"x":1}'), ("a", "g", '{"y":2}')],
    ),
    "no index and no id, by their places": (
        [
            [piece("f", ""), piece("g", "")],
            [piece("f", '{"x":'), piece("g", '{"y":')],
            [piece(None, "1}"), piece(None, "2}")],
        ],
        [("call_new1", "f", '{"x":1}'), ("call_new2", "g", '{"y":2}')],
    ),
    "an id made up for each piece, without an index": (
        [[piece("f", '{"x":', id="a")], [piece(None, "1}", id="b")]],
        [("a", "f", '{"x":1}')],
    ),
    "null before the arguments": (
        [[piece("f", "null", index=0, id="a")], [piece(None, '{"x":1}', index=0)]],
        [("a", "f", '{"x":1}')],
    ),
    "nothing": ([None, [], [{}], [{"index": 0}], [None, 5], "x", {"a": 1}, [{"function": None}]], []),
}


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_tool_calls(name: str) -> None:
    deltas, expected = PLAYBOOKS[name]
    assert gathered(*deltas) == expected


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_every_dialect_gives_the_same_calls(name: str) -> None:
    deltas, expected = copy.deepcopy(PLAYBOOKS[name])
    named = [(call[1], call[2]) for call in expected]
    events = [openai_chunk(tool_calls=delta) for delta in deltas]
    native = decode(run(copy.deepcopy(events)))
    begun = [event["content_block"]["name"] for event in native if event["type"] == "content_block_start"]
    assert sorted(begun) == sorted(call[0] for call in named)
    assert written(accumulated(native)) == written(call[1] for call in named)
    loop = Round(Joined())
    loop.feed(copy.deepcopy(events))
    assert [(call["function"]["name"], call["function"]["arguments"]) for call in loop.calls()] == named
    lines = ChatLines("m", generate=False)
    lines.feed(copy.deepcopy(events))
    last = lines.finish(Timing(0, 0))
    assert last.count(b'"name"') == (len(named) if b'"error"' not in last else 0)
    numbers = CallNumbers()
    again = ToolCallAssembler(ids())
    for event in events:
        numbers.mend(event)
        again.add(event["choices"][0]["delta"]["tool_calls"])
    assert [(call["function"]["name"], call["function"]["arguments"]) for call in again.calls()] == named


def accumulated(native: list[Body]) -> list[str]:
    blocks: dict[int, str] = {}
    for event in native:
        if event["type"] == "content_block_start":
            blocks[event["index"]] = ""
        elif event["type"] == "content_block_delta":
            blocks[event["index"]] += event["delta"]["partial_json"]
    return list(blocks.values())


def written(arguments: Any) -> list[str]:
    return sorted(one if one.strip() else "{}" for one in arguments)


def test_other_fields_of_a_call_are_kept() -> None:
    calls = ToolCallAssembler()
    calls.add([piece("f", "{", index=0, id="a", type="function", extra_content={"google": {"sig": "s"}})])
    calls.add([piece(None, "}", index=0, type=None, extra_content=None)])
    (call,) = calls.calls()
    assert call["extra_content"] == {"google": {"sig": "s"}}
    assert call["type"] == "function"
    assert "index" not in call


ARGUMENTS = st.dictionaries(st.text(max_size=3), st.text(max_size=8) | st.integers(0, 9), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["f", "get_it"]), ARGUMENTS), min_size=1, max_size=3), st.data())
def test_arguments_cut_anywhere_are_the_same(made: list[tuple[str, Body]], data: Any) -> None:
    calls = ToolCallAssembler()
    expected = []
    for index, (name, value) in enumerate(made):
        written = orjson.dumps(value).decode()
        cut = data.draw(st.integers(0, len(written)))
        calls.add([piece(name, written[:cut], index=index, id=f"c{index}")])
        for character in written[cut:]:
            calls.add([piece(None, character, index=index)])
        expected.append((f"c{index}", name, written))
    found = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls.calls()]
    assert found == expected


def call(*pieces):
    made = ToolCall(0)
    for piece in pieces:
        made.add("f", piece)
    return made


@pytest.mark.parametrize(
    ("pieces", "is_over", "is_held", "is_ended"),
    [
        ([], False, True, False),
        (["{"], False, True, False),
        (["{", "}"], True, True, False),
        (["null"], False, True, False),
        (['{"a"'], False, False, False),
        (['{"a"', ":1}"], True, False, True),
        (["a"], False, False, False),
        ([" "] * 20, False, False, False),
    ],
)
def test_states(pieces, is_over, is_held, is_ended):
    made = call(*pieces)
    assert (made.is_over, made.is_held, made.is_ended) == (is_over, is_held, is_ended)


def test_what_was_taken_is_not_taken_again():
    made = call('{"a"')
    assert made.take() == '{"a"'
    assert made.take() == ""
    made.add("", ":1}")
    assert (made.take(), made.arguments) == (":1}", '{"a":1}')


def test_arguments_are_never_cut_short_by_holding():
    made = call("n")
    assert made.take() == "n"
    made.add("", "ull")
    assert made.take() == "ull"


@pytest.mark.parametrize("entry", [{}, {"index": 0}, {"function": None}, {"id": 5, "function": {"name": 5}}])
def test_nothing_said_is_no_call(entry):
    calls = ToolCallAssembler()
    assert calls.add([entry]) == []
    assert not calls


def test_pieces_tell_their_calls():
    calls = ToolCallAssembler()
    first, second = calls.add([piece("f", '{"x":1}', index=0, id="a"), piece("g", "{", index=0, id="b")])
    assert (first.call.index, first.is_first, second.call.index, second.is_first) == (0, True, 1, True)
    (again,) = calls.add([piece(None, "}", index=0, id="b")])
    assert (again.call, again.is_first, again.is_repeated) == (second.call, False, False)
    (repeated,) = calls.add([piece("f", '{"x": 1}', index=0, id="a")])
    assert (repeated.call, repeated.is_repeated) == (first.call, True)


def test_as_many_calls_as_an_answer_may_have():
    calls = ToolCallAssembler()
    calls.add([piece("f", "{}", index=index, id=f"c{index}") for index in range(MAX_TOOL_CALLS)])
    assert len(calls.calls()) == MAX_TOOL_CALLS
    calls.add([piece("f", "{}", index=0, id="c0")])
    with pytest.raises(AnswerSizeError, match=f"it has over {MAX_TOOL_CALLS} tool calls"):
        calls.add([piece("f", "{}", index=0, id="other")])


def test_one_delta_with_too_many_pieces():
    with pytest.raises(AnswerSizeError, match="tool calls"):
        ToolCallAssembler().add([piece(None, "x", index=0)] * (MAX_TOOL_CALLS + 1))


def test_arguments_over_the_limit():
    calls = ToolCallAssembler()
    calls.add([piece("f", '{"x":"', index=0, id="a")])
    part = "x" * (1024 * 1024)
    with pytest.raises(AnswerSizeError, match=f"arguments .* over {MAX_ARGUMENT_CHARACTERS} characters"):
        for _ in range(MAX_ARGUMENT_CHARACTERS // len(part) + 1):
            calls.add([piece(None, part, index=0)])


def test_arguments_that_hold_too_much_end_the_answer():
    calls = ToolCallAssembler()
    calls.add([piece("f", '{"x":[', index=0, id="a")])
    with pytest.raises(AnswerSizeError, match=f"arguments .* over {MAX_ARGUMENT_MARKS} brackets and commas"):
        for _ in range(MAX_ARGUMENT_MARKS // 2000 + 1):
            calls.add([piece(None, "[]," * 1000, index=0)])


def test_arguments_that_hold_too_much_are_no_object():
    assert parse_object('{"x":[' + "1," * 250_000 + "1]}", max_depth=None) is None
    assert parse_object('{"x":[' + "1," * 1000 + "1]}") is not None


def test_a_name_over_the_limit():
    calls = ToolCallAssembler()
    with pytest.raises(AnswerSizeError, match=f"name .* over {MAX_NAME_CHARACTERS} characters"):
        for number in range(MAX_NAME_CHARACTERS):
            calls.add([piece(f"-{number}", index=0, id="a")])


def test_many_small_pieces_cost_no_more_each():
    # In quadratic time these take minutes.
    calls = ToolCallAssembler()
    calls.add([piece("f", '{"x":"', index=0, id="a")])
    for _ in range(150_000):
        calls.add([piece(None, "y", index=0)])
    calls.add([piece(None, '"}', index=0)])
    for _ in range(50_000):
        calls.add([piece(None, "}", index=0)])
    (call,) = calls.calls()
    assert len(call["function"]["arguments"]) == 200_008
