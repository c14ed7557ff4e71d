"""Tests for gatewayd.completions.gather: tool calls and answers, cut into pieces in every way seen."""

import itertools
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.completions.gather import ToolCalls, message_of, said, thought, usage_of
from tests.fakes.gatherer import Gatherer
from tests.fakes.upstream import openai_chunk

Body = dict[str, Any]


def ids() -> Any:
    numbers = itertools.count(1)
    return lambda: f"new{next(numbers)}"


def piece(name: str | None = None, arguments: Any = None, **fields: Any) -> Body:
    function = {"name": name, "arguments": arguments}
    return {**fields, "function": {key: value for key, value in function.items() if value is not None}}


def gathered(*deltas: Any) -> list[tuple[str, str, str]]:
    calls = ToolCalls(ids())
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
    "nothing": ([None, [], [{}], [{"index": 0}], [None, 5], "x", {"a": 1}, [{"function": None}]], []),
}


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_tool_calls(name: str) -> None:
    deltas, expected = PLAYBOOKS[name]
    assert gathered(*deltas) == expected


def test_other_fields_of_a_call_are_kept() -> None:
    calls = ToolCalls()
    calls.add([piece("f", "{", index=0, id="a", type="function", extra_content={"google": {"sig": "s"}})])
    calls.add([piece(None, "}", index=0, type=None, extra_content=None)])
    (call,) = calls.calls()
    assert call["extra_content"] == {"google": {"sig": "s"}}
    assert call["type"] == "function"
    assert "index" not in call


ARGUMENTS = st.dictionaries(st.text(max_size=3), st.text(max_size=8) | st.integers(0, 9), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["f", "get_it"]), ARGUMENTS), min_size=1, max_size=3), st.data())
def test_arguments_cut_anywhere_are_the_same(made: list[tuple[str, Body]], data: Any) -> None:
    calls = ToolCalls()
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
    body = completion({"choices": [{"delta": {"tool_calls": [piece("f", "{}", index=0, id="a")]}}]})
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}


def test_text_beside_tool_calls_is_kept_and_empty_calls_are_none() -> None:
    found = message({"content": "a", "tool_calls": []}, {"tool_calls": [piece("f", "{}", index=0, id="a")]})
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
    assert thought(delta) == expected
    assert message(delta).get("reasoning_content", "") == expected


def test_reasoning_has_one_name() -> None:
    details = [{"type": "reasoning.text", "text": "h", "index": 0}]
    found = message({"reasoning": "h", "reasoning_details": details}, {"thinking": "m"}, {"content": PARTS})
    assert found["reasoning_content"] == "hmhm"
    assert found["reasoning_details"] == details
    assert not {"reasoning", "thinking"} & set(found)
    assert found["content"] == "a"


def test_said() -> None:
    assert said({"content": PARTS}) == "a"
    assert said({"content": None}) == said({"content": [5, {}]}) == said({}) == ""


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
