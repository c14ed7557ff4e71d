"""Tests for gatewayd.dialects.anthropic.blocks."""

import itertools

import pytest

from gatewayd.dialects.anthropic.blocks import INVALID_INPUT, ContentBlock, ContentBlockQueue


def blocks(*deltas):
    numbers = itertools.count()
    made = ContentBlockQueue(lambda: f"n-{next(numbers)}")
    for delta in deltas:
        made.add(delta)
    return made


def tool(**fields):
    return {"tool_calls": [fields]}


def test_whole_blocks_in_order():
    made = blocks(
        {"reasoning_content": "a", "content": "b"},
        {"content": "c"},
        tool(index=0, id="c1", function={"name": "f", "arguments": '{"a":1}'}),
        {"content": "d"},
        tool(index=1, function={"name": "g"}),
        tool(index=2, id="c3"),
    )
    assert made.whole() == [
        {"type": "thinking", "thinking": "a"},
        {"type": "text", "text": "bc"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
        {"type": "text", "text": "d"},
        {"type": "tool_use", "id": "toolu_n0", "name": "g", "input": {}},
    ]
    assert made.calls_tools
    assert made.characters == len("abcd")


def test_a_call_of_which_only_an_id_came_is_none():
    made = blocks(tool(index=0, id="c1"))
    assert not made.calls_tools
    assert made.whole() == []


def test_signatures():
    whole = {"type": "thinking", "thinking": "ab", "signature": "s"}
    more = {"type": "thinking", "thinking": "c", "signature": "t"}
    made = blocks(
        {"reasoning": "a"}, {"reasoning": "b"}, {"thinking_blocks": [whole]}, {"thinking_blocks": [whole]}
    )
    made.add({"thinking_blocks": [more]})
    assert made.whole() == [whole, more]


def test_a_block_gives_its_text_once():
    block = ContentBlock("text", parts=["a", "b"])
    assert (block.take(), block.take()) == ("ab", "")
    assert block.is_ready
    assert block.is_ended


def test_a_call_is_ready_when_its_name_is_whole():
    made = blocks(tool(index=0, id="c1", function={"name": "f"}))
    assert not made.queue[0].is_ready
    made.add(tool(index=0, function={"arguments": '{"a"'}))
    assert made.queue[0].is_ready
    assert not made.queue[0].is_ended


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        (" ", {}),
        ('{"a":1}', {"a": 1}),
        ("5", {INVALID_INPUT: "5"}),
        ('{"a":1}}', {INVALID_INPUT: '{"a":1}}'}),
        ('{"a":' * 250 + "1" + "}" * 250, {INVALID_INPUT: '{"a":' * 250 + "1" + "}" * 250}),
    ],
)
def test_input(arguments, expected):
    made = blocks(tool(index=0, id="c1", function={"name": "f", "arguments": arguments}))
    assert made.whole()[0]["input"] == expected
