"""Finds the usage in replies that are passed on as bytes: events, lines, or one JSON object; pure.

A reply is not decoded for it, apart from the events and lines that hold usage, and a short whole object. The
usage of a long object is looked for in its last bytes: what is read there must be a member of the object, or
of an object in it, so that texts and nested members cannot pass for it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.deltas import answer_characters
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.metering.records import MeteredCall, TokenUsage
from gatewayd.metering.usage_objects import StreamUsage

MAX_DECODED_BYTES: Final = 128 * 1024
"""Maximum size of an event, a line or an object that is decoded as a whole."""

TAIL_BYTES: Final = 16 * 1024
"""Number of bytes at the end of a longer one that are searched."""

MAX_PLACES: Final = 16
"""Maximum number of places in a tail that are tried."""

WORDS: Final = (b'"usage"', b'eval_count"', b'"usageMetadata"')
"""Names, one of which each reply with usage holds."""

_STARTS: Final = (b'"usage"', b'"prompt_eval_count"', b'"eval_count"')
_OPENINGS: Final = (b"{", b'{"response":{')
EVENT_STREAM: Final = "text/event-stream"
LINES: Final = "application/x-ndjson"


class ReplyUsage:
    """The usage of one reply, fed with its bytes."""

    __slots__ = ("_found", "_held", "_is_stream", "_size")

    def __init__(self, content_type: str) -> None:
        kind = content_type.partition(";")[0].strip().lower()
        self._is_stream = kind in (EVENT_STREAM, LINES)
        self._found = StreamUsage()
        self._held = b""
        self._size = 0

    def look(self, read: bytes, call: MeteredCall) -> None:
        """Note the usage in the next bytes: whole events or lines of a stream, any bytes of other bodies."""
        self._size += len(read)
        if self._is_stream:
            call.characters += len(read) // STREAM_BYTES_PER_CHARACTER
            if any(word in read for word in WORDS):
                for line in read.split(b"\n"):
                    self._add(line.removeprefix(b"data:"))
        elif len(self._held) + len(read) <= MAX_DECODED_BYTES:
            self._held += read
        else:
            self._held = (self._held + read)[-TAIL_BYTES:]

    def tokens(self) -> TokenUsage | None:
        """Return what was told, None if nothing was."""
        if self._held:
            self._add(self._held, is_whole=self._size == len(self._held))
        return self._found.tokens()

    def characters(self) -> int:
        """Return the length of the texts in a whole object of at most MAX_DECODED_BYTES; 0 for others."""
        if self._is_stream or self._size != len(self._held):
            return 0
        answer = _decoded(self._held) or {}
        texts = [as_mapping(choice).get("text") for choice in as_sequence(answer.get("choices"))]
        parts = [
            as_mapping(part).get("text")
            for item in as_sequence(answer.get("output"))
            for part in as_sequence(as_mapping(item).get("content"))
        ]
        count = sum(len(as_text(text)) for text in (*texts, *parts, answer.get("response")))
        return count + answer_characters(answer)

    def _add(self, data: bytes, *, is_whole: bool = True) -> None:
        if not any(word in data for word in WORDS):
            return
        if is_whole and len(data) <= MAX_DECODED_BYTES:
            found = _decoded(data)
            self._found.add(usage_in(found) if found is not None else None)
        else:
            self._found.add(usage_in_tail(data[-TAIL_BYTES:], is_event=self._is_stream))


STREAM_BYTES_PER_CHARACTER: Final = 8
"""Bytes of events and lines for each character of an answer, about; for estimates of those that break off."""


def usage_in(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the usage of a reply, event or line: its own, that of its `response`, or the counts in it."""
    inner = value.get("response")
    for place in (value, inner if isinstance(inner, dict) else {}):
        usage = place.get("usage")
        if isinstance(usage, dict):
            return usage
    if "prompt_eval_count" in value or "eval_count" in value:
        return {name: value.get(name) for name in ("prompt_eval_count", "eval_count")}
    return None


def usage_in_tail(tail: bytes, *, is_event: bool) -> Mapping[str, Any] | None:
    """Return the usage in the end of a JSON object, None without one; that of events is in `response`."""
    for place in _places(tail):
        for opening in _OPENINGS if is_event else _OPENINGS[:1]:
            found = _decoded(opening + tail[place:])
            usage = None if found is None else usage_in(found)
            if usage is not None:
                return usage
    return None


def _places(tail: bytes) -> Iterator[int]:
    """Yield the places of the names, the first of each kind last."""
    for start in _STARTS:
        place, count = tail.rfind(start), 0
        while place >= 0 and count < MAX_PLACES:
            yield place
            place, count = tail.rfind(start, 0, place), count + 1


def _decoded(data: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
