"""A whole completion as the only event of a stream, for providers that ignore `stream`."""

from collections.abc import Mapping
from typing import Any

from gatewayd.completions.choices import choice_to_delta
from gatewayd.completions.json_access import as_sequence
from gatewayd.completions.records import Body, CompletionChunk
from gatewayd.upstream.streams.sse import FramingError


def completion_chunk(completion: Mapping[str, Any]) -> CompletionChunk:
    """Return a chunk whose deltas are the messages of `completion`; its other fields are kept.

    Raises FramingError for a completion without a choice.
    """
    choices = [choice for choice in as_sequence(completion.get("choices")) if isinstance(choice, dict)]
    if not choices:
        raise FramingError("its answer has no choice")
    event: Body = {**completion, "object": "chat.completion.chunk"}
    event.pop("event", None)
    event["choices"] = [choice_to_delta(choice, index) for index, choice in enumerate(choices)]
    return CompletionChunk(events=[event])
