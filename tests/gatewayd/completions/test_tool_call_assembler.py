"""Tests for gatewayd.completions.tool_call_assembler: calls cut into pieces in every way seen."""

import copy
import itertools
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.completions.limits import (
    MAX_ARGUMENT_CHARACTERS,
    MAX_ARGUMENT_MARKS,
    MAX_NAME_CHARACTERS,
    MAX_TOOL_CALLS,
    AnswerSizeError,
)
from gatewayd.completions.tool_call_assembler import ToolCall, ToolCallAssembler, parse_object
from gatewayd.completions.tool_call_indices import ToolCallNumbering
from gatewayd.dialects.ollama.dialect import ReplyTiming
from gatewayd.dialects.ollama.stream import ChatLines
from gatewayd.pipeline.functions.output import CompletionBuilder, PipeReader
from gatewayd.pipeline.runs.message_builder import MessageBuilder
from gatewayd.pipeline.tools.turn import ToolLoopState, ToolTurn
from tests.fakes.providers.upstream import openai_chunk
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


Calls = list[tuple[str, str, Any]]
"""Id, name and arguments of each call; arguments that are no JSON object are a text."""


def told(call_id: str, name: str, arguments: str) -> tuple[str, str, Any]:
    """Return a call; an id that was made up here is empty."""
    is_made_up = call_id.startswith(("call_", "toolu_"))
    parsed = {} if arguments.strip() in {"", "null"} else parse_object(arguments)
    return "" if is_made_up else call_id, name, arguments if parsed is None else parsed


def of_bodies(calls: list[Body]) -> Calls:
    return [told(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]


def in_the_tool_loop(events: list[Body]) -> Calls:
    loop = ToolTurn(ToolLoopState())
    loop.feed(events)
    return of_bodies(loop.calls())


def in_a_stored_chat(events: list[Body]) -> Calls:
    assembly = MessageBuilder()
    assembly.feed(events)
    assembly.finish()
    items = [item for item in assembly.output() if item["type"] == "function_call"]
    return [told(item["call_id"], item["name"], item["arguments"]) for item in items]


def in_messages(events: list[Body]) -> Calls:
    blocks: dict[int, Body] = {}
    for event in decode(run(events)):
        if event["type"] == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "said": ""}
        elif event["type"] == "content_block_delta":
            blocks[event["index"]]["said"] += event["delta"]["partial_json"]
    return [told(block["id"], block["name"], block["said"]) for block in blocks.values()]


def in_the_runtime_dialect(events: list[Body]) -> Calls | None:
    """Return None for an error: this dialect has no form for arguments that are no object."""
    lines = ChatLines("m", generate=False)
    read = [
        orjson.loads(line) for line in (lines.feed(events) + lines.finish(ReplyTiming(0, 0))).splitlines()
    ]
    if "error" in read[-1]:
        return None
    calls = [call for line in read for call in line["message"].get("tool_calls", ())]
    return [
        told(call["id"], call["function"]["name"], orjson.dumps(call["function"]["arguments"]).decode())
        for call in calls
    ]


def from_a_pipe(events: list[Body]) -> Calls:
    reading, gathering = PipeReader("m"), CompletionBuilder()
    for event in events:
        for passed in reading.feed(event):
            gathering.add(passed)
    return of_bodies(gathering.body("m")["choices"][0]["message"].get("tool_calls", []))


def passed_on(events: list[Body]) -> Calls:
    """Return the calls as a client gets them whose provider speaks its protocol."""
    numbers, calls = ToolCallNumbering(), ToolCallAssembler()
    for event in events:
        numbers.normalise(event)
        delta = event["choices"][0]["delta"]
        calls.add(delta.get("tool_calls"))
        older = delta.get("function_call")
        calls.add([{"index": 0, "function": older}] if older else None)
    return of_bodies(calls.calls())


def check_everywhere(deltas: list[Body], expected: Calls) -> None:
    """Let every reader of a stream see the same deltas."""
    events = [openai_chunk(**delta) for delta in deltas]
    for reader in (in_the_tool_loop, in_a_stored_chat, from_a_pipe, passed_on):
        assert reader(copy.deepcopy(events)) == expected, reader.__name__
    # A block of the messages protocol has an id of its own, and stands where the call began.
    seen: set[str] = set()
    unique = [("" if call[0] in seen or seen.add(call[0]) else call[0], *call[1:]) for call in expected]
    assert sorted(in_messages(copy.deepcopy(events)), key=repr) == sorted(unique, key=repr)
    is_whole = all(isinstance(arguments, dict) for _, _, arguments in expected)
    assert in_the_runtime_dialect(copy.deepcopy(events)) == (expected if is_whole else None)


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_every_dialect_gives_the_same_calls(name: str) -> None:
    deltas, expected = copy.deepcopy(PLAYBOOKS[name])
    check_everywhere([{"tool_calls": delta} for delta in deltas], [told(*call) for call in expected])


def test_every_dialect_knows_the_older_form_of_a_call() -> None:
    deltas = [{"function_call": {"name": "f", "arguments": '{"x":'}}, {"function_call": {"arguments": "1}"}}]
    check_everywhere(deltas, [("", "f", {"x": 1})])


NAMES = st.sampled_from(["f", "get_it", "get"])
VALUES = st.text(max_size=6) | st.integers(0, 9) | st.lists(st.booleans(), max_size=2)
MADE = st.tuples(NAMES, st.dictionaries(st.text(max_size=3), VALUES, min_size=1, max_size=3))


class Provider:
    """Cuts calls into pieces and names them in one of the ways of providers."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._index = draw(st.sampled_from(["own", "zero", "none"]))
        self._ids = draw(st.sampled_from(["each", "first", "none"]))
        self._is_flat = draw(st.booleans())
        self._is_told_twice = draw(st.booleans())

    def pieces(self, number: int, name: str, written: str) -> list[Body]:
        """Return the pieces of one call in their order."""
        cuts = sorted(self._draw(st.lists(st.integers(0, len(written)), max_size=4)))
        parts = [written[start:end] for start, end in itertools.pairwise([0, *cuts, len(written)])]
        if self._is_told_twice:
            parts.append(written)
        return [self._piece(number, "" if place else name, part) for place, part in enumerate(parts)]

    def calls(self, made: list[tuple[str, Body]]) -> tuple[list[Body], Calls]:
        """Return the deltas of calls, mixed where they are told apart, and the calls in their order."""
        written = [(name, orjson.dumps(value).decode()) for name, value in made]
        left = [self.pieces(number, *call) for number, call in enumerate(written)]
        order = [number for number, pieces in enumerate(left) for _ in pieces]
        if self._ids == "each" or self._index == "own":
            order = self._draw(st.permutations(order))
        deltas = [{"tool_calls": [left[number].pop(0)]} for number in order]
        begun = sorted(set(order)) if self._index == "own" else list(dict.fromkeys(order))
        return deltas, [("" if self._ids == "none" else f"c{number}", *made[number]) for number in begun]

    def _piece(self, number: int, name: str, part: str) -> Body:
        function = {"name": name, "arguments": part} if name else {"arguments": part}
        call: Body = dict(function) if self._is_flat else {"function": function}
        if self._index != "none":
            call["index"] = number if self._index == "own" else 0
        if self._ids == "each" or (self._ids == "first" and name):
            call["id"] = f"c{number}"
        return call


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Body], Calls]:
    """Return the deltas of a stream, and the calls that its provider means."""
    return Provider(draw).calls(draw(st.lists(MADE, min_size=1, max_size=3, unique_by=repr)))


@given(streams())
def test_one_stream_is_the_same_calls_in_every_dialect(stream: tuple[list[Body], Calls]) -> None:
    check_everywhere(*stream)


def test_other_fields_of_a_call_are_kept() -> None:
    calls = ToolCallAssembler()
    calls.add([piece("f", "{", index=0, id="a", type="function", extra_content={"google": {"sig": "s"}})])
    calls.add([piece(None, "}", index=0, type=None, extra_content=None)])
    (call,) = calls.calls()
    assert call["extra_content"] == {"google": {"sig": "s"}}
    assert call["type"] == "function"
    assert "index" not in call


def call(*pieces):
    made = ToolCall(0)
    for piece in pieces:
        made.add("f", piece)
    return made


@pytest.mark.parametrize(
    ("pieces", "is_over", "is_placeholder", "is_ended"),
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
def test_states(pieces, is_over, is_placeholder, is_ended):
    made = call(*pieces)
    assert (made.is_over, made.is_placeholder, made.is_ended) == (is_over, is_placeholder, is_ended)


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
    assert parse_object('{"x":[' + "1," * 250_000 + "1]}", is_written=False) is None
    assert parse_object('{"x":[' + "1," * 1000 + "1]}") is not None


def test_many_lists_beside_each_other_are_not_deep():
    assert parse_object('{"x":[' + "[]," * 1000 + "[]]}") == {"x": [[]] * 1001}
    deep = '{"x":' * 240 + "1" + "}" * 240
    assert parse_object(deep) is None
    assert parse_object(deep, is_written=False) is not None


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


@pytest.mark.parametrize("index", [2**53, 2**64 - 1, 10**30])
def test_an_index_that_no_client_can_read_is_none(index: int) -> None:
    calls = ToolCallAssembler(ids())
    for number in ("a", "b"):
        calls.add([{"index": index, "id": number, **piece("f", "{}")}])
    assert [call["id"] for call in calls.calls()] == ["a", "b"]
    assert [call.index for call in calls._calls] == [0, 1]
