"""A whole completion as the only event of a stream, for providers that ignore `stream`."""

from collections.abc import Mapping
from typing import Any

from gatewayd.catalog.replies import Body, Chunk
from gatewayd.dialects.foreign import mapping, sequence
from gatewayd.dialects.gather import ToolCalls
from gatewayd.upstream.sse import FramingError


def as_chunk(completion: Mapping[str, Any]) -> Chunk:
    """Return a chunk whose deltas are the messages of `completion`; its other fields are kept.

    Raises FramingError for a completion without a choice.
    """
    choices = [choice for choice in sequence(completion.get("choices")) if isinstance(choice, dict)]
    if not choices:
        raise FramingError("its answer has no choice")
    event: Body = {**completion, "object": "chat.completion.chunk"}
    event.pop("event", None)
    event["choices"] = [_delta_choice(choice, index) for index, choice in enumerate(choices)]
    return Chunk(events=[event])


def _delta_choice(choice: Mapping[str, Any], position: int) -> Body:
    """Return a choice with its message as the delta; it is over, so it has a finish reason."""
    delta = dict(mapping(choice.get("message")) or mapping(choice.get("delta")))
    calls = _calls(delta.pop("tool_calls", None))
    if calls:
        delta["tool_calls"] = calls
    index = choice.get("index")
    kept = {name: value for name, value in choice.items() if name != "message"}
    return {
        **kept,
        "index": index if type(index) is int else position,
        "delta": delta,
        "finish_reason": choice.get("finish_reason") or ("tool_calls" if calls else "stop"),
    }


def _calls(value: object) -> list[Body]:
    """Return whole tool calls with their index, an id and arguments as JSON text."""
    calls = ToolCalls()
    found = (call for call in sequence(value) if isinstance(call, dict))
    calls.add([{**call, "index": index} for index, call in enumerate(found)])
    return [{"index": index, **call} for index, call in enumerate(calls.calls())]
