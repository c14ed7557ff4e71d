"""Repairs of a history for a maker."""

import asyncio
import contextlib
import re
import time
from typing import Any

import pytest

from gatewayd.completions.call_ids import CallIdForm
from gatewayd.dialects.providers.history import (
    FLATTENED,
    MOVED_SYSTEM,
    ORPHAN,
    SLICE_MESSAGES,
    UNANSWERED,
    repair_in_slices,
    repair_messages,
)
from gatewayd.dialects.providers.message_rules import (
    NO_MESSAGE_RULES,
    LastTurn,
    MessageRules,
    ReasoningPlace,
    SystemPlace,
)
from gatewayd.dialects.providers.turns import MOVED_PREFILL
from gatewayd.errors import GatewayError
from gatewayd.time_slices import LoopPacer

Message = dict[str, Any]

STRICT = MessageRules(
    system=SystemPlace.FIRST,
    call_ids=CallIdForm.NINE,
    last=LastTurn.REFUSED,
    reasoning=ReasoningPlace.CONTENT,
    pairs_calls=True,
    drops_empty=True,
    alternates=True,
    demands_reasoning=True,
)


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def user(text: Any) -> Message:
    return {"role": "user", "content": text}


def said(text: Any, *ids: str, **more: Any) -> Message:
    message = {"role": "assistant", "content": text, **more}
    if ids:
        function = {"name": "look", "arguments": "{}"}
        message["tool_calls"] = [{"id": each, "type": "function", "function": function} for each in ids]
    return message


def result(call_id: str, text: str = "found") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


PAIRED = MessageRules(pairs_calls=True)
NO_RESULT = "no result"

CASES = {
    "later system messages become texts of the user": (
        MessageRules(system=SystemPlace.FIRST),
        [system("a"), system("b"), user("c"), system("d"), user("e")],
        [system("a\n\nb"), user("c"), user("[Message of the system]\nd"), user("e")],
    ),
    "parts of system messages are joined": (
        MessageRules(system=SystemPlace.FIRST),
        [system("a"), {"role": "system", "content": [{"type": "text", "text": "b"}]}, user("c")],
        [
            {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            user("c"),
        ],
    ),
    "a result without a call becomes a text": (
        PAIRED,
        [user("a"), {**result("x"), "name": "look"}, said("b")],
        [user("a"), user("[Result of look]\nfound"), said("b")],
    ),
    "a second result is a text after the results": (
        PAIRED,
        [said(None, "1", "2"), result("1"), result("1", "again"), result("2")],
        [said(None, "1", "2"), result("1"), result("2"), user("[Result of a tool call]\nagain")],
    ),
    "a call without a result gets one": (
        PAIRED,
        [said(None, "1", "2"), result("2"), user("go on")],
        [said(None, "1", "2"), result("2"), result("1", NO_RESULT), user("go on")],
    ),
    "a late result comes before what the user said": (
        PAIRED,
        [said(None, "1"), user("wait"), result("1"), said("b")],
        [said(None, "1"), result("1"), user("wait"), said("b")],
    ),
    "calls in messages of their own are one message": (
        PAIRED,
        [said(None, "1"), said(None, "2"), result("1"), result("2")],
        [said(None, "1", "2"), result("1"), result("2")],
    ),
    "empty texts are dropped": (
        MessageRules(drops_empty=True),
        [
            user(""),
            user([{"type": "text", "text": " "}, {"type": "text", "text": "a"}]),
            said(""),
            said("", "1"),
        ],
        [user([{"type": "text", "text": "a"}]), said(None, "1")],
    ),
    "roles alternate": (
        MessageRules(alternates=True),
        [system("s"), said("hello"), user("a"), user([{"type": "text", "text": "b"}]), said("c"), said("d")],
        [
            system("s"),
            user("Continue."),
            said("hello"),
            user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            said("c\n\nd"),
        ],
    ),
    "a beginning of the answer moves": (
        MessageRules(last=LastTurn.REFUSED),
        [user("a"), said("It is")],
        [user("a"), user("Continue from here, without repeating it:\nIt is")],
    ),
    "it joins the user where roles alternate": (
        MessageRules(last=LastTurn.REFUSED, alternates=True),
        [user("a"), said("It is")],
        [user("a\n\nContinue from here, without repeating it:\nIt is")],
    ),
    "an empty beginning is dropped": (
        MessageRules(last=LastTurn.REFUSED),
        [user("a"), said(" ")],
        [user("a")],
    ),
    "a beginning is marked": (
        MessageRules(last=LastTurn.MARKED),
        [user("a"), said("It is")],
        [user("a"), said("It is", prefix=True)],
    ),
    "the assistant speaks between a result and the user": (
        MessageRules(separates_results=True),
        [said(None, "1"), result("1"), user("b")],
        [said(None, "1"), result("1"), said("I have the results."), user("b")],
    ),
    "text and calls are two messages": (
        MessageRules(splits_calls=True),
        [said("look:", "1"), result("1")],
        [said("look:"), said(None, "1"), result("1")],
    ),
    "calls become texts where none are taken": (
        MessageRules(takes_calls=False),
        [said("look:", "1"), result("1")],
        [said("look:\n\n[Called look with {}]"), user("[Result of look]\nfound")],
    ),
    "reasoning is left out": (
        MessageRules(reasoning=ReasoningPlace.NONE, takes_details=False),
        [said("a", reasoning_content="r", reasoning="r", thinking="r", reasoning_details=[{"text": "r"}])],
        [said("a")],
    ),
    "reasoning is renamed": (
        MessageRules(reasoning=ReasoningPlace.CONTENT),
        [said("a", reasoning="r"), said("b")],
        [said("a", reasoning_content="r"), said("b")],
    ),
    "reasoning stays with its details": (
        MessageRules(reasoning=ReasoningPlace.REASONING),
        [said("a", reasoning_content="r", reasoning_details=[{"type": "reasoning.text", "text": "r"}])],
        [said("a", reasoning="r", reasoning_details=[{"type": "reasoning.text", "text": "r"}])],
    ),
    "reasoning is a text": (
        MessageRules(reasoning=ReasoningPlace.TEXT),
        [said("a", reasoning_content="r")],
        [said("<think>r</think>\na")],
    ),
    "reasoning is a part": (
        MessageRules(reasoning=ReasoningPlace.PARTS),
        [said("a", reasoning_content="r")],
        [
            said(
                [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "r"}]},
                    {"type": "text", "text": "a"},
                ]
            )
        ],
    ),
    "parts of reasoning become a field": (
        MessageRules(reasoning=ReasoningPlace.CONTENT),
        [
            said(
                [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "r"}]},
                    {"type": "text", "text": "a"},
                ]
            )
        ],
        [said([{"type": "text", "text": "a"}], reasoning_content="r")],
    ),
    "messages with calls get a placeholder": (
        MessageRules(reasoning=ReasoningPlace.CONTENT, demands_reasoning=True),
        [said(None, "1"), result("1"), said("b")],
        [said(None, "1", reasoning_content="unavailable"), result("1"), said("b")],
    ),
    "members that a maker refuses are dropped": (
        MessageRules(members=frozenset({"tool_calls"}), call_members=frozenset()),
        [
            said("a", annotations=[]),
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "index": 0, "x": 1}]},
        ],
        [said("a"), {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_repair(name):
    rules, given, expected = CASES[name]
    kept = [dict(message) for message in given]
    repaired = repair_messages(given, rules)
    assert repaired.messages == expected
    assert given == kept
    assert repair_messages(repaired.messages, rules).messages is repaired.messages, "a repair is final"


@pytest.mark.parametrize(
    ("rules", "messages", "warning"),
    [
        (MessageRules(system=SystemPlace.FIRST), [user("a"), system("b")], MOVED_SYSTEM),
        (PAIRED, [result("1")], ORPHAN),
        (PAIRED, [said(None, "1")], UNANSWERED),
        (MessageRules(takes_calls=False), [said(None, "1")], FLATTENED),
        (MessageRules(last=LastTurn.REFUSED), [said("a")], MOVED_PREFILL),
    ],
)
def test_warnings(rules, messages, warning):
    assert list(repair_messages(messages, rules).warnings) == [warning]


def test_unchanged():
    messages = [
        system("s"),
        user("a"),
        said(None, "abcdefgh1", reasoning_content="r"),
        result("abcdefgh1"),
        said("b"),
        user("c"),
    ]
    assert repair_messages(messages, STRICT).messages is messages
    odd = [user(""), said("", "x"), result("y")]
    assert repair_messages(odd, MessageRules()).messages is odd
    assert repair_messages(odd, NO_MESSAGE_RULES).messages is odd


def test_tools_of_the_request():
    messages = [user("a"), said(None, "1"), result("1")]
    rules = MessageRules(needs_tools=True)
    assert repair_messages(messages, rules).messages is messages
    flat = repair_messages(messages, rules, has_tools=False).messages
    assert [message["role"] for message in flat] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        (CallIdForm.NINE, "[A-Za-z0-9]{9}"),
        (CallIdForm.WORD, "[A-Za-z0-9_-]{1,64}"),
        (CallIdForm.SHORT, ".{1,40}"),
    ],
)
def test_call_ids(form, pattern):
    rules = MessageRules(call_ids=form)
    long = "functions.look:0" * 9
    messages = [
        said(None, long),
        result(long),
        said(None, long),
        result(long),
        said(None, "a b"),
        result("a b"),
    ]
    repaired = repair_messages(messages, rules)
    ids = [message["tool_calls"][0]["id"] for message in repaired.messages[::2]]
    assert [message["tool_call_id"] for message in repaired.messages[1::2]] == ids
    assert len(set(ids)) == 3
    assert all(re.fullmatch(pattern, each) for each in ids)
    assert repair_messages(messages, rules).messages == repaired.messages, "the same ids each time"
    assert [repaired.ids.get(each, each) for each in ids] == [long, long, "a b"]


def test_refused_prefill():
    picture = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    with pytest.raises(GatewayError, match="holds more than text") as caught:
        repair_messages([user("a"), said(picture)], MessageRules(last=LastTurn.REFUSED))
    assert caught.value.param == "messages[1].content"


def test_signatures():
    rules = MessageRules(unsigned_mark="skip")
    signed = said(None, "1", "2")
    signed["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "S"}}
    foreign = said(None, "3", "4")
    messages = [signed, result("1"), result("2"), foreign]
    repaired = repair_messages(messages, rules).messages
    assert repaired[0] is signed
    marked = [call.get("extra_content") for call in repaired[3]["tool_calls"]]
    assert marked == [{"google": {"thought_signature": "skip"}}, None]


@pytest.mark.parametrize(
    "messages",
    [
        ["text", None, {}, {"role": "assistant", "tool_calls": "x"}, {"role": "tool"}],
        [{"role": "assistant", "tool_calls": [None, {"id": 7}, {}]}, {"role": "tool", "tool_call_id": []}],
        [{"role": "assistant", "content": [None, 7, {"type": "thinking", "thinking": 7}]}],
        [{"role": "user", "content": {"text": "x"}}],
    ],
)
def test_malformed(messages):
    with contextlib.suppress(GatewayError):
        assert isinstance(repair_messages(messages, STRICT).messages, list)


LONG = {
    "calls of one id": [said(None, "x"), result("x")],
    "orphans": [result("x")],
    "system messages": [user("a"), system("b")],
    "one role": [user("a")],
    "open calls": [said(None, "x")],
    "held messages": [said(None, "x"), user("a"), user("b")],
}


@pytest.mark.parametrize("name", LONG)
def test_linear(name):
    """Eight times the messages take about eight times as long."""

    def seconds(number: int) -> float:
        messages = (LONG[name] * number)[:number]
        started = time.thread_time()
        repair_messages(messages, STRICT)
        return time.thread_time() - started

    small = min(seconds(1_000) for _ in range(4))
    assert min(seconds(8_000) for _ in range(2)) < 40 * small


async def test_slices(monkeypatch):
    """Other tasks run during a long history."""
    monkeypatch.setattr(LoopPacer, "seconds", 0.0)
    messages = [user("a"), said(None, "x"), result("x")] * 2_000
    turns = 0

    async def watch() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    watching = asyncio.ensure_future(watch())
    repaired = await repair_in_slices(messages, STRICT)
    watching.cancel()
    assert turns >= len(messages) // SLICE_MESSAGES
    assert repaired.messages == repair_messages(messages, STRICT).messages
