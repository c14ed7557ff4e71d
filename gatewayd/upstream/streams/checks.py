"""Checks of forwarded answers: they must be JSON of the requested kind; without I/O.

A forwarded answer is not converted. An invalid one becomes an error of the gateway, and `event` objects, with
which a provider could send events of the gateway, are removed.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import orjson

from gatewayd.upstream.streams.ndjson import LineFramer
from gatewayd.upstream.streams.sse import (
    DONE_WORD,
    DataFramer,
    FramingError,
    check_depth,
    decode_payload,
    find_error,
)

MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
"""Maximum number of bytes of a line or event; some contain images."""

MAX_HELD_BYTES: Final = 1024 * 1024
"""Maximum number of bytes of a whole answer that are held back until it is checked."""

KIND_PATTERN: Final = re.compile(r"[a-z_.]{1,64}")
"""Valid names in an `event:` line."""

FINAL_KINDS: Final = frozenset(
    {
        *("response.completed", "response.failed", "response.incomplete"),
        *("image_generation.completed", "image_edit.completed"),
        *("transcript.text.done", "speech.audio.done"),
    }
)


class StreamChecker(Protocol):
    """Takes reads and returns the bytes to forward.

    `error` is the error that ended the answer after the returned bytes; `is_done` means that nothing can
    follow.
    """

    error: object
    is_done: bool

    def feed(self, read: bytes) -> bytes:
        """Return the bytes to forward after one read."""
        ...

    def finish(self) -> bytes:
        """Return the bytes to forward at the end of the answer."""
        ...


class UncheckedStream:
    """Forwards everything: the answer to a request that the gateway does not know."""

    error: object = None
    is_done = False

    def feed(self, read: bytes) -> bytes:
        """Return the read."""
        return read

    def finish(self) -> bytes:
        """Return nothing."""
        return b""


class CheckedLines:
    """Forwards complete lines that are JSON objects; an error line ends the answer."""

    def __init__(self, max_line: int = MAX_FRAME_BYTES) -> None:
        self._framer = LineFramer(max_line)
        self._has_passed = False
        self.error: object = None
        self.is_done = False

    def feed(self, read: bytes) -> bytes:
        """Return the lines to forward after one read."""
        if self.is_done:
            return b""
        try:
            lines = self._framer.feed(read)
        except FramingError as error:
            self.error = error
            return b""
        passed = b"".join(self._passed(lines))
        self.error = self.error or self._framer.broken
        return passed

    def finish(self) -> bytes:
        """Return the last line without an end, if it is complete."""
        if self.is_done or self.error is not None:
            return b""
        passed = b"".join(self._passed(self._framer.finish()))
        if isinstance(self.error, FramingError) and self._has_passed:
            # A truncated line; the caller reports the incomplete answer.
            self.error = None
        elif not self._has_passed and self.error is None:
            self.error = FramingError("it ended before it was complete")
        return passed

    def _passed(self, lines: list[bytes]) -> Iterator[bytes]:
        for line in lines:
            if not line.strip():
                yield line + b"\n"
                continue
            try:
                value = decode_payload(line)
            except FramingError as error:
                self.error = error
                return
            self._has_passed = True
            is_foreign = value.pop("event", self) is not self
            yield (orjson.dumps(value) if is_foreign else line) + b"\n"
            self.is_done = find_error(value) is not None
            if self.is_done:
                return


class CheckedEvents:
    """Forwards complete events with JSON objects up to the last one; an error event ends the answer.

    The `event:` lines are written anew, with the type in the event.
    """

    def __init__(self, max_line: int = MAX_FRAME_BYTES) -> None:
        self._framer = DataFramer(max_line)
        self._is_complete = False
        self.is_done = False
        self.error: object = None

    def feed(self, read: bytes) -> bytes:
        """Return the events to forward after one read."""
        if self.is_done:
            return b""
        return self._take(lambda: self._framer.feed(read))

    def finish(self) -> bytes:
        """Return the last event without an end, if it is complete."""
        if self.is_done or self.error is not None:
            return b""
        passed = self._take(self._framer.finish)
        if isinstance(self.error, FramingError):
            # A truncated event.
            self.error = None
        if not self._is_complete and self.error is None:
            self.error = FramingError("it ended before it was complete")
        return passed

    def _take(self, framed: Callable[[], list[bytes]]) -> bytes:
        try:
            payloads = framed()
        except FramingError as error:
            self.error = error
            return b""
        passed = b"".join(self._passed(payloads))
        self.error = self.error or self._framer.broken
        return passed

    def _passed(self, payloads: list[bytes]) -> Iterator[bytes]:
        for payload in payloads:
            if payload.strip() == DONE_WORD:
                self._is_complete = self.is_done = True
                yield b"data: [DONE]\n\n"
            if self.is_done:
                return
            if not payload.strip():
                continue
            try:
                event = decode_payload(payload)
            except FramingError as error:
                self.error = error
                return
            self.error = event if event.get("type") == "error" else find_error(event)
            if self.error is not None:
                return
            self._is_complete = self._is_complete or _is_last(event)
            yield _frame(payload, event)


class CheckedWhole:
    """Forwards one JSON object; of one over 1 MiB only the start is checked.

    An answer without a body is valid only with `may_be_empty`.
    """

    def __init__(self, *, may_be_empty: bool = False, max_held: int = MAX_HELD_BYTES) -> None:
        self._may_be_empty = may_be_empty
        self._max_held = max_held
        self._held = bytearray()
        self._is_open = False
        self.error: object = None
        self.is_done = False

    def feed(self, read: bytes) -> bytes:
        """Return the bytes to forward after one read."""
        if self._is_open:
            return read
        self._held += read
        if len(self._held) <= self._max_held:
            return b""
        self._is_open = self._held.lstrip().startswith(b"{")
        if not self._is_open:
            self.error = FramingError("its answer is not a JSON object")
            return b""
        held, self._held = bytes(self._held), bytearray()
        return held

    def finish(self) -> bytes:
        """Return the answer if it is valid."""
        raw = bytes(self._held)
        if self._is_open or self.error is not None or (self._may_be_empty and not raw.strip()):
            return b""
        try:
            value = _object(raw)
        except FramingError as error:
            self.error = error
            return b""
        self.error = find_error(value)
        if self.error is not None:
            return b""
        return orjson.dumps(value) if value.pop("event", self) is not self else raw


def _object(raw: bytes) -> dict[str, Any]:
    if not raw.strip():
        raise FramingError("its answer is empty")
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise FramingError("its answer is not JSON") from error
    if not isinstance(value, dict):
        raise FramingError("its answer is not a JSON object")
    check_depth(raw, value)
    return value


def _frame(payload: bytes, event: dict[str, Any]) -> bytes:
    kind = event.get("type")
    is_foreign = event.pop("event", KIND_PATTERN) is not KIND_PATTERN or b"\n" in payload
    data = b"data: %s\n\n" % (orjson.dumps(event) if is_foreign else payload)
    if isinstance(kind, str) and KIND_PATTERN.fullmatch(kind):
        return b"event: %s\n%s" % (kind.encode(), data)
    return data


def _is_last(event: dict[str, Any]) -> bool:
    if event.get("type") in FINAL_KINDS:
        return True
    choices = event.get("choices")
    return isinstance(choices, list) and any(
        isinstance(choice, dict) and bool(choice.get("finish_reason")) for choice in choices
    )
