"""A strict reader of the events of one response: what it accepts, the official clients accept too."""

from collections.abc import Sequence
from typing import Any, get_args

import orjson
from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel

EVENTS: dict[str, type[BaseModel]] = {
    get_args(model.model_fields["type"].annotation)[0]: model
    for model in get_args(get_args(ResponseStreamEvent)[0])
}
"""Types of the SDK by the type of their event."""

ENDS = {"response.completed", "response.incomplete", "response.failed"}

OWN_CODES = {"context_length_exceeded", "insufficient_quota", "server_is_overloaded", "invalid_prompt"}
"""Codes of a failed response that clients know and the types of the SDK lack."""


def parse(raw: bytes) -> list[dict[str, Any]]:
    """Return the events of whole frames, whose first line names the type."""
    frames = raw.split(b"\n\n")
    assert frames.pop() == b""
    events = []
    for frame in frames:
        name, data = frame.split(b"\n")
        events.append(orjson.loads(data.removeprefix(b"data: ")))
        assert name == b"event: " + events[-1]["type"].encode()
    return events


def kinds(events: Sequence[dict[str, Any]]) -> list[str]:
    """Return the types of events, without their common beginning."""
    return [event["type"].removeprefix("response.") for event in events]


def check(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Assert the order, ids and fields of all events of a response, and return it as the last one has it."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert kinds(events)[:2] == ["created", "in_progress"]
    assert events[-1]["type"] in ENDS
    assert not ENDS.intersection(event["type"] for event in events[:-1])
    for event in events:
        _check_types(event)
    final: dict[str, Any] = events[-1]["response"]
    assert {event["response"]["id"] for event in events if "response" in event} == {final["id"]}
    folded = fold(events)
    assert folded == final["output"]
    return final


def fold(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items that the events add, as a client builds them, and check that the ends agree."""
    items: dict[int, dict[str, Any]] = {}
    done: dict[int, dict[str, Any]] = {}
    texts: dict[tuple[int, int], str] = {}
    for event in events:
        kind = event["type"].removeprefix("response.")
        index = event.get("output_index")
        if kind == "output_item.added":
            assert index == len(items)
            items[index] = event["item"]
        elif kind == "output_item.done":
            assert index == len(done)
            assert event["item"]["id"] == items[index]["id"]
            done[index] = event["item"]
        elif index is not None:
            assert event["item_id"] == items[index]["id"]
            assert index not in done
            place = (index, event.get("content_index", event.get("summary_index", 0)))
            if kind.endswith("part.added"):
                assert place not in texts
                texts[place] = ""
            elif kind.endswith("delta"):
                assert event["delta"]
                assert place in texts or "content_index" not in event
                texts[place] = texts.get(place, "") + event["delta"]
            elif kind.endswith(("text.done", "refusal.done", "arguments.done", "input.done")):
                names = ("text", "refusal", "arguments", "input")
                assert texts.get(place, "") == next(event[name] for name in names if name in event)
    return [done[index] for index in sorted(done)]


def _check_types(event: dict[str, Any]) -> None:
    """Validate an event by the types of the SDK."""
    response = event.get("response") or {}
    error = response.get("error")
    if error and error["code"] in OWN_CODES:
        event = {**event, "response": {**response, "error": {**error, "code": "server_error"}}}
    EVENTS[event["type"]].model_validate(event)
