"""What is remembered of answers, for whom and for how long."""

import random
from typing import Any

import pytest

from gatewayd.completions.reasoning_memory import (
    LIFETIME_SECONDS,
    MAX_ENTRY_BYTES,
    MAX_KEYED_CALLS,
    MAX_SAME_KEYS,
    KeptCall,
    KeptReasoning,
    ReasoningMemory,
    call_key,
    content_key,
    content_keys,
    text_key,
)

KEPT = KeptReasoning(
    "deepseek", "hm", {"reasoning_details": [{"a": 1}]}, (KeptCall("c1", "k", {"x": {"y": 1}}),)
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_found_by_each_key_of_its_user_alone():
    memory = ReasoningMemory(Clock())
    memory.put("ann", [call_key("c1", ""), text_key("hm")], KEPT)
    assert memory.find("ann", call_key("c1", "")) == KEPT
    assert memory.find("ann", text_key("hm")) == KEPT
    assert memory.find("ann", call_key("hm", "")) is None
    assert memory.find("bob", call_key("c1", "")) is None
    assert (memory.holds("ann"), memory.holds("bob")) == (True, False)


def test_the_newest_answer_comes_first():
    memory = ReasoningMemory(Clock())
    for text in ("a", "b"):
        memory.put("ann", ["same", text_key(text)], KeptReasoning("m", text))
    newest = memory.find("ann", "same")
    assert newest is not None
    older = memory.find("ann", "same", {newest.number})
    assert older is not None
    assert (newest.text, older.text) == ("b", "a")
    assert memory.find("ann", "same", {newest.number, older.number}) is None


def test_a_key_finds_a_bounded_number_of_answers():
    memory = ReasoningMemory(Clock())
    for number in range(3 * MAX_SAME_KEYS):
        memory.put("ann", ["same", str(number)], KeptReasoning("m", str(number)))
    assert len(memory._users["ann"].by_key["same"]) == MAX_SAME_KEYS
    assert memory.find("ann", "0") is not None


def test_forgotten_after_an_hour():
    clock = Clock()
    memory = ReasoningMemory(clock)
    memory.put("ann", ["a"], KEPT)
    clock.now = LIFETIME_SECONDS
    assert memory.find("ann", "a") is None
    memory.put("bob", ["b"], KEPT)
    assert not memory.holds("ann")


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "kept",
    [
        KeptReasoning("m", "x" * MAX_ENTRY_BYTES),
        KeptReasoning("m", "x", {"deep": nested(400)}),
        KeptReasoning("m", "\ud800"),
    ],
    ids=["large", "deep", "surrogate"],
)
def test_what_is_too_large_or_cannot_be_sent_is_not_kept(kept):
    memory = ReasoningMemory(Clock())
    memory.put("ann", ["a"], kept)
    assert memory.find("ann", "a") is None
    assert memory.size == 0


def test_one_user_fills_only_their_own_room():
    memory = ReasoningMemory(Clock(), user_bytes=10_000, total_bytes=25_000)
    memory.put("ann", ["first"], KeptReasoning("m", "x"))
    for number in range(1_000):
        memory.put("bob", [f"b{number}"], KeptReasoning("m", "x" * (number % 5_000)))
        assert memory.size <= 25_000
    assert memory.find("ann", "first") is not None
    assert memory.find("bob", "b999") is not None
    assert memory.find("bob", "b0") is None


def test_all_users_together_are_bounded():
    memory = ReasoningMemory(Clock(), user_bytes=10_000, total_bytes=25_000)
    chance = random.Random(1)
    for number in range(2_000):
        keys = [f"k{chance.randrange(50)}" for _ in range(chance.randrange(1, 4))]
        memory.put(f"u{chance.randrange(9)}", keys, KeptReasoning("m", "x" * chance.randrange(3_000)))
        assert memory.size <= 25_000
        assert memory.size == sum(entry.size for entry in memory._all.values()), number
    for own in memory._users.values():
        assert own.entries
        assert own.size == sum(entry.size for entry in own.entries.values())
        assert all(same and same.keys() <= own.entries.keys() for same in own.by_key.values())


def test_calls_are_the_same_in_any_spelling():
    assert content_key("f", '{"a": 1, "b": 2}') == content_key("f", '{"b":2,"a":1}') != content_key("g", "{}")
    assert content_key("f", "") == content_key("f", "{}")
    assert content_key("f", "not json")
    assert content_key("f", '"' + "x" * 40_000 + '"') == ""


def test_keys_are_bounded():
    calls = [{"function": {"name": "f", "arguments": "{}"}}] * (MAX_KEYED_CALLS + 2)
    assert content_keys(calls) == [content_key("f", "{}")] * MAX_KEYED_CALLS + ["", ""]
    assert content_keys([None, {}, {"function": 7}]) == [content_key("", "")] * 3
    assert text_key("x" * (MAX_ENTRY_BYTES + 1)) == ""


def test_the_origin_of_a_large_answer_is_found_without_reading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ReasoningMemory()
    memory.put("ann", ["k"], KeptReasoning("deepseek", "t" * 900_000))

    def refuse(_: bytes) -> None:
        raise AssertionError("it is read")

    monkeypatch.setattr("gatewayd.completions.reasoning_memory.orjson.loads", refuse)
    assert memory.find_origin("ann", "k") == "deepseek"
    assert memory.find_origin("bob", "k") is None
