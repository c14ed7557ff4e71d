"""Completions and their chunks, decoded only when a caller reads or changes the content.

The format is the OpenAI chat completion. Bytes that are never decoded pass through unchanged.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import orjson

Body = dict[str, Any]
"""A chat request or completion in the OpenAI format; a plain dict, because filters change it."""

DONE = b"data: [DONE]\n\n"


class Completion:
    """A whole completion: the upstream's bytes, a mapping, or both.

    `is_text` is True for one choice of text alone that lacks no field; it is known for some answers only.
    """

    __slots__ = ("_body", "_raw", "is_text")

    def __init__(self, *, raw: bytes | None = None, body: Body | None = None, is_text: bool = False) -> None:
        if raw is None and body is None:
            raise ValueError("a completion needs bytes or a body")
        self._raw = raw
        self._body = body
        self.is_text = is_text

    @property
    def body(self) -> Body:
        """The completion as a mapping; drops the bytes, because the caller may change the mapping."""
        if self._body is None:
            self._body = orjson.loads(self._raw or b"")
        self._raw = None
        return self._body

    @property
    def decoded(self) -> Body:
        """The completion as a mapping that the caller must not change; the bytes stay."""
        if self._body is None:
            self._body = orjson.loads(self._raw or b"")
        return self._body

    @property
    def raw(self) -> bytes:
        """The completion as JSON bytes; the upstream's own bytes if it was never decoded."""
        if self._raw is None:
            self._raw = orjson.dumps(self._body)
        return self._raw


class CompletionChunk:
    """Whole stream events of one read: `data:` frames as bytes, mappings, or both.

    A chunk never holds the final `[DONE]` or lines other than `data:`. An event is a
    `chat.completion.chunk` or an in-band error `{"error": {...}}`.
    """

    __slots__ = ("_raw", "characters", "decoded", "is_plain", "usage")

    def __init__(
        self,
        *,
        raw: bytes | None = None,
        events: Sequence[Body] | None = None,
        is_plain: bool = False,
        characters: int = 0,
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        if raw is None and events is None:
            raise ValueError("a chunk needs bytes or events")
        self._raw = raw
        self.decoded = None if events is None else list(events)
        """The events if they are mappings already, not to be changed; None if they are bytes."""
        self.is_plain = is_plain
        """Whether its reader knows that it has text alone: no reasoning and no calls."""
        self.characters = characters
        """Length of its texts, if it is bytes and its reader has decoded them."""
        self.usage = usage
        """The usage in it, likewise."""

    @property
    def events(self) -> list[Body]:
        """The events as a list of mappings that the caller may change."""
        if self.decoded is None:
            self.decoded = [orjson.loads(one) for one in _data(self._raw or b"")]
        self._raw = None
        return self.decoded

    @property
    def raw(self) -> bytes:
        """The events as `data: {...}` frames, each followed by a blank line."""
        if self._raw is None:
            self._raw = _frames(map(orjson.dumps, self.decoded or ()))
        return self._raw

    @classmethod
    def of_data(cls, events: Iterable[bytes]) -> Self:
        """Return a chunk of events that are encoded already."""
        return cls(raw=_frames(events))

    @property
    def data(self) -> list[bytes]:
        """The events as JSON bytes."""
        return _data(self.raw)


def _frames(events: Iterable[bytes]) -> bytes:
    return b"".join([b"data: %b\n\n" % event for event in events])


def _data(raw: bytes) -> list[bytes]:
    return [frame[5:].removeprefix(b" ") for frame in raw.split(b"\n\n") if frame.startswith(b"data:")]
