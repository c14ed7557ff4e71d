"""A whole completion as the only event of a stream, for providers that ignore `stream`."""

from collections.abc import Mapping
from typing import Any

from gatewayd.catalog.replies import Body, Chunk


def as_chunk(completion: Mapping[str, Any]) -> Chunk:
    """Return a chunk whose deltas are the messages of `completion`; its other fields are kept."""
    event: Body = {**completion, "object": "chat.completion.chunk"}
    event.pop("event", None)
    choices = completion.get("choices")
    event["choices"] = [_delta_choice(choice) for choice in choices or () if isinstance(choice, dict)]
    return Chunk(events=[event])


def _delta_choice(choice: Mapping[str, Any]) -> Body:
    delta = dict(choice.get("message") or choice.get("delta") or {})
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(calls)]
    kept = {name: value for name, value in choice.items() if name != "message"}
    return {**kept, "delta": delta}
