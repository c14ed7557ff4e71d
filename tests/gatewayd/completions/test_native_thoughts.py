"""Thinking of requests that stay in the messages protocol."""

from typing import Any

import pytest

from gatewayd.completions.native_thoughts import THINKING_LEFT_OUT, NativeHistory, NativeWatch
from gatewayd.completions.reasoning_marks import is_signed, mark_of, marked_origin, origin_of
from gatewayd.completions.reasoning_memory import ReasoningMemory
from gatewayd.completions.records import CompletionChunk

TEXT = {"type": "text", "text": "a"}
OWN = {"type": "thinking", "thinking": "", "signature": "own"}
REDACTED = {"type": "redacted_thinking", "data": "x"}
UNSIGNED = {"type": "thinking", "thinking": "hm"}
EMPTY = {**UNSIGNED, "signature": ""}
MARKED = {**UNSIGNED, "signature": mark_of("deepseek")}
FOREIGN = {**UNSIGNED, "signature": "foreign"}


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def answered(call_id: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "r"}]}


def said(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def sent(*messages: Any, **fields: Any):
    memory = ReasoningMemory()
    NativeWatch(memory, "ann", "minimax").whole(said(FOREIGN))
    history = NativeHistory(memory, "ann", "anthropic")
    native = {"messages": list(messages), **fields}
    for message in messages:
        history.add(message)
    return native, history.finish(native)


def test_own_thinking_is_unchanged():
    native, request = sent(
        {"role": "user", "content": "a"}, said(OWN, REDACTED, TEXT, use("t1")), answered("t1")
    )
    assert request.body is native


@pytest.mark.parametrize("block", [UNSIGNED, EMPTY, MARKED, FOREIGN, {"type": "redacted_thinking"}])
def test_thinking_of_others_is_left_out(block):
    _, request = sent(said(block, TEXT), said(block))
    assert request.body["messages"] == [said(TEXT)]
    assert request.warning == ""


@pytest.mark.parametrize(
    ("thinking", "is_left"),
    [({"type": "enabled", "budget_tokens": 2048}, False), ({"type": "adaptive"}, True), (None, True)],
)
def test_a_budget_demands_thinking_before_the_last_calls(thinking, is_left):
    fields = {} if thinking is None else {"thinking": thinking}
    _, request = sent(said(UNSIGNED, use("t1")), answered("t1"), **fields)
    assert request.body.get("thinking") == (thinking if is_left else None)
    assert request.warning == ("" if is_left else THINKING_LEFT_OUT)
    _, request = sent(said(UNSIGNED, use("t1")), answered("t1"), said(TEXT), **fields)
    assert request.body.get("thinking") == thinking
    _, request = sent(said(UNSIGNED, use("t1")), answered("t1"), {"role": "user", "content": "b"}, **fields)
    assert request.body.get("thinking") == thinking


def test_ids():
    """Ids that the protocol refuses, and repeated ones, become others, the same ones for their results."""
    odd = "functions.f:0"
    _, request = sent(
        said(use(odd)), answered(odd), said(use(odd)), answered(odd), said(use("t1")), answered("t1")
    )
    messages = request.body["messages"]
    ids = [message["content"][0]["id"] for message in messages[::2]]
    assert [message["content"][0]["tool_use_id"] for message in messages[1::2]] == ids
    assert len(set(ids)) == 3
    assert ids[2] == "t1"
    assert odd not in ids


def test_streams():
    memory = ReasoningMemory()
    watch = NativeWatch(memory, "ann", "minimax")
    watch.feed(CompletionChunk(raw=b'event: ping\ndata: {"type":"ping"}\n\n'))
    watch.feed(
        CompletionChunk(
            raw=b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
            b'"delta":{"type":"signature_delta","signature":"foreign"}}\n\n'
        )
    )
    history = NativeHistory(memory, "ann", "anthropic")
    history.add(said(FOREIGN, TEXT))
    assert history.finish({}).body["messages"] == [said(TEXT)]
    own = NativeHistory(memory, "ann", "minimax")
    own.add(said(FOREIGN, TEXT))
    native: dict[str, Any] = {}
    assert own.finish(native).body is native


@pytest.mark.parametrize(
    "message", [None, 7, {}, {"role": "assistant"}, said(None, 7, {}), {"role": "user", "content": [None]}]
)
def test_malformed(message):
    native, request = sent(message)
    assert request.body is native


def test_marks():
    assert marked_origin(mark_of("deepseek")) == "deepseek"
    assert marked_origin(mark_of("deepseek") * 2) == "deepseek"
    assert marked_origin("EqoBCk") is None
    assert marked_origin(None) is None
    assert [is_signed(block) for block in (OWN, REDACTED, UNSIGNED, EMPTY, MARKED, FOREIGN)] == [
        *(True, True, False, False, False, True)
    ]
    assert origin_of("deepseek", "acme") == "deepseek"
    assert origin_of("", "acme") == origin_of("", "acme") != origin_of("", "other")
    assert "acme" not in origin_of("", "acme")
