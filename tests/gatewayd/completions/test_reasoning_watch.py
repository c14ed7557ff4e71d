"""What is read of an answer, whole and in chunks."""

from typing import Any

import orjson
import pytest

from gatewayd.completions.reasoning_memory import (
    KeptReasoning,
    ReasoningMemory,
    call_key,
    content_key,
    signature_key,
    text_key,
)
from gatewayd.completions.reasoning_watch import ReasoningWatch
from gatewayd.completions.records import CompletionChunk

SIGNED = {"type": "thinking", "thinking": "hm", "signature": "s"}
EXTRA = {"google": {"thought_signature": "S"}}


def call(index: int, call_id: str, **more: Any) -> dict[str, Any]:
    return {"index": index, "id": call_id, "function": {"name": "f", "arguments": "{}"}, **more}


def event(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


DETAILS = [
    {"type": "reasoning.text", "text": "h", "index": 0, "signature": None},
    {"type": "reasoning.text", "text": "m", "index": 0, "signature": "s"},
    {"type": "reasoning.encrypted", "data": "d", "index": 1},
]
JOINED = [
    {"type": "reasoning.text", "text": "hm", "index": 0, "signature": "s"},
    {"type": "reasoning.encrypted", "data": "d", "index": 1},
]

CASES: dict[str, tuple[list[dict[str, Any]], str, KeptReasoning | None]] = {
    "a text in pieces": (
        [event(reasoning_content="h"), event(reasoning_content="m"), event(content="a"), event("stop")],
        text_key("hm"),
        KeptReasoning("o", "hm"),
    ),
    "vllm and others": (
        [event(reasoning="hm"), event("stop", content="a")],
        text_key("hm"),
        KeptReasoning("o", "hm"),
    ),
    "a text before a call": (
        [event(reasoning_content="hm"), event(tool_calls=[call(0, "c1")]), event("tool_calls")],
        call_key("c1", content_key("f", "{}")),
        KeptReasoning("o", "hm"),
    ),
    "members of a call": (
        [event(tool_calls=[call(0, "c1", extra_content=EXTRA)]), event("tool_calls")],
        call_key("c1", content_key("f", "{}")),
        KeptReasoning("o"),
    ),
    "details in pieces": (
        [*(event(reasoning_details=[detail]) for detail in DETAILS), event("stop")],
        text_key("hm"),
        None,
    ),
    "parts of a content": (
        [event(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]), event("stop")],
        text_key("hm"),
        KeptReasoning("o", "hm"),
    ),
    "a signed block": (
        [event(reasoning_content="hm"), event(thinking_blocks=[SIGNED]), event("stop")],
        signature_key("s"),
        KeptReasoning("o", "hm", {"thinking_blocks": [SIGNED]}),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("is_raw", [True, False])
def test_streams(name, is_raw):
    events, key, expected = CASES[name]
    memory = ReasoningMemory()
    watch = ReasoningWatch(memory, "ann", "o")
    for each in events:
        chunk = CompletionChunk.of_data([orjson.dumps(each)]) if is_raw else CompletionChunk(events=[each])
        before = chunk.raw if is_raw else None
        watch.feed(chunk)
        assert before is None or chunk.raw is before
    found = memory.find("ann", key)
    assert found is not None
    if expected is not None:
        assert (found.origin, found.text, found.members) == (expected.origin, expected.text, expected.members)
    if name == "details in pieces":
        assert found.members == {"reasoning_details": JOINED}
    if name == "members of a call":
        assert found.calls[0].members == {"extra_content": EXTRA}


def test_whole_answers():
    memory = ReasoningMemory()
    message = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call(0, "c1")]}
    ReasoningWatch(memory, "ann", "o").whole({"choices": [{"index": 0, "message": message}]})
    found = memory.find("ann", call_key("c1", content_key("f", "{}")))
    assert found is not None
    assert found.text == "hm"


@pytest.mark.parametrize(
    "events",
    [
        [event(content="a"), event("stop")],
        [event(tool_calls=[call(0, "c1")]), event("tool_calls")],
        # A stream that broke off.
        [event(reasoning_content="hm")],
        [event(thinking_blocks=[{"type": "thinking", "thinking": "", "signature": ""}]), event("stop")],
    ],
)
def test_nothing_to_remember(events):
    memory = ReasoningMemory()
    watch = ReasoningWatch(memory, "ann", "o")
    watch.feed(CompletionChunk(events=events))
    assert not memory.holds("ann")


def test_a_plain_chunk_is_not_decoded():
    memory = ReasoningMemory()
    watch = ReasoningWatch(memory, "ann", "o")
    watch.feed(CompletionChunk(raw=b"data: no JSON\n\n"))
    assert not memory.holds("ann")


def test_endless_reasoning_is_given_up():
    memory = ReasoningMemory()
    watch = ReasoningWatch(memory, "ann", "o")
    for _ in range(40):
        watch.feed(CompletionChunk(events=[event(reasoning_content="x" * 50_000)]))
    watch.feed(CompletionChunk(events=[event("stop")]))
    assert not memory.holds("ann")
    assert sum(map(len, watch._texts)) < 1_200_000
