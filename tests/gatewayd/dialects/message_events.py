"""Chunks to make streams of messages from, and what reads the events that come out."""

import itertools
from collections.abc import Sequence
from typing import Any

import orjson
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent
from pydantic import TypeAdapter

from gatewayd.dialects.anthropic.stream import MessageStream

Event = dict[str, Any]

FITS = {
    "text": {"text_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "redacted_thinking": set(),
    "tool_use": {"input_json_delta"},
}

READ = TypeAdapter(RawMessageStreamEvent)


def new_ids():
    numbers = itertools.count()
    return lambda: f"{next(numbers):04}"


def stream(**fields: Any) -> MessageStream:
    return MessageStream("asked", 7, new_ids(), **fields)


def chunk(finish: str | None = None, **delta: Any) -> Event:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "real",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def piece(index: int | None = 0, id: str | None = None, **function: Any) -> Event:
    call: Event = {"function": function}
    if index is not None:
        call["index"] = index
    if id is not None:
        call["id"] = id
    return chunk(tool_calls=[call])


def run(events: Sequence[Event], **fields: Any) -> bytes:
    made = stream(**fields)
    return made.feed(events) + made.finish()


def decode(data: bytes) -> list[Event]:
    """Return the data of each event, whose `event:` line must be its type."""
    events = []
    for frame in data.split(b"\n\n")[:-1]:
        name, payload = frame.split(b"\n")
        event = orjson.loads(payload.removeprefix(b"data: "))
        assert name == b"event: " + event["type"].encode()
        events.append(event)
    return events


def told(data: bytes) -> list[Any]:
    """Return what the blocks say: ("text", "Hi"), ("tool_use", id, name, arguments), ..."""
    blocks: list[list[Any]] = []
    for event in decode(data):
        if event["type"] == "content_block_start":
            block = event["content_block"]
            blocks.append([block["type"], *[block[name] for name in ("id", "name", "data") if name in block]])
            if block["type"] != "redacted_thinking":
                blocks[-1].append("")
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "signature_delta":
                blocks[-1].append(delta["signature"])
            else:
                blocks[-1][-1] += delta[delta["type"].removesuffix("_delta").replace("input", "partial")]
    return [tuple(block) for block in blocks]


def ending(data: bytes) -> Event:
    events = decode(data)
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]
    return events[-2]


def check_grammar(data: bytes) -> None:
    """Assert the protocol's grammar: one start, blocks one after the other, fitting deltas, one end."""
    events = [event for event in decode(data) if event["type"] != "ping"]
    assert [event["type"] for event in events if "message" in event["type"]] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    assert events[0]["type"] == "message_start"
    index, kind = 0, None
    for event in events[1:-2]:
        match event["type"]:
            case "content_block_start":
                assert kind is None
                kind = event["content_block"]["type"]
            case "content_block_delta":
                assert event["delta"]["type"] in FITS[kind]
                assert event["delta"].get("text") != ""
            case "content_block_stop":
                assert kind is not None
                kind = None
        assert event["index"] == index
        index += event["type"] == "content_block_stop"
    assert kind is None
    assert events[-2]["delta"]["stop_reason"] is not None


def accumulate(data: bytes) -> Event:
    """Return the message that the official client puts together."""
    snapshot = None
    buffers: dict[int, bytes] = {}
    for event in decode(data):
        read = READ.validate_python(event)
        snapshot = accumulate_event(event=read, current_snapshot=snapshot, json_bufs=buffers)
    return snapshot.to_dict()


CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
USAGE = {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}}
