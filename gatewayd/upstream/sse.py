"""Reads a provider's event stream: bytes as they come in, whole `data:` payloads out; pure.

Two readers: `DataFramer` gives payloads and nothing else; `ChunkReader` reads an OpenAI stream and passes
bytes on as they are wherever that is safe. It decodes every event to know that: with orjson that costs no
more than searching the bytes for what may not pass, and a reader of bytes can be fooled.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from gatewayd.catalog.replies import Body, Chunk

MAX_LINE = 1024 * 1024
"""Bytes of the longest line, and of the longest event."""

MAX_DEPTH = 200
"""Levels of JSON that are certainly written again."""

ROOM = 16
"""Levels that an answer of ours puts around a provider's JSON."""

DONE_WORD = b"[DONE]"


class FramingError(ValueError):
    """The stream is not one; the text completes "cannot get an answer from ...: "."""


class DataFramer:
    """Splits an event stream into the payloads of its events.

    LF, CRLF and CR end a line; a blank line ends an event; the `data:` lines of an event are joined with LF.
    Comments and all other fields (`event:`, `id:`, `retry:`) are dropped, events without data too.
    """

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._started = False

    @property
    def is_empty(self) -> bool:
        """Whether the stream stands between two events, with nothing kept back."""
        return not (self._rest or self._data or self._after_cr)

    def feed(self, read: bytes) -> list[bytes]:
        """Take one read and return the payloads that are now whole; raises FramingError."""
        if self._after_cr and read:
            self._after_cr = False
            read = read.removeprefix(b"\n")
        searched = len(self._rest)
        self._rest += read
        if not self._started and not self._skip_mark():
            return []
        if self._rest.find(b"\n", searched) < 0 and self._rest.find(b"\r", searched) < 0:
            self._check_size(len(self._rest))
            return []
        self._after_cr = self._rest.endswith(b"\r")
        lines = bytes(self._rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = bytearray(lines.pop())
        self._check_size(len(self._rest))
        return self._take(lines)

    def finish(self) -> list[bytes]:
        """Return the payload of an event whose closing blank line never came."""
        lines = [bytes(self._rest), b""]
        self._rest.clear()
        self._after_cr = False
        return self._take(lines)

    def _skip_mark(self) -> bool:
        """Drop a byte order mark; False while it is not known whether there is one."""
        mark = b"\xef\xbb\xbf"
        if len(self._rest) < len(mark) and mark.startswith(self._rest):
            return False
        if self._rest.startswith(mark):
            del self._rest[: len(mark)]
        self._started = True
        return True

    def _take(self, lines: list[bytes]) -> list[bytes]:
        payloads = []
        for line in lines:
            self._check_size(len(line))
            if not line and self._data:
                payloads.append(b"\n".join(self._data))
                self._data = []
                self._size = 0
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
                self._size += len(line)
                self._check_size(self._size)
            elif line == b"data":
                self._data.append(b"")
        return payloads

    def _check_size(self, size: int) -> None:
        if size > self._max_line:
            raise FramingError(f"it sent a line or event over {self._max_line} bytes")


class ChunkReader:
    """Reads an OpenAI chat stream: whole events as chunks, the provider's bytes where they may pass.

    What may not pass is dropped: lines that are not `data:`, `[DONE]` (the caller writes its own) and a
    top-level `event` object, with which a provider could send events of ours. An `error` object, or what is
    not an event, ends the stream and is left in `error`, after the chunk of what came before. `is_complete`
    tells whether a finish reason or `[DONE]` was seen.
    """

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._framer = DataFramer(max_line)
        self._max_line = max_line
        self._finished = False
        self.is_done = False
        self.error: object = None

    @property
    def is_complete(self) -> bool:
        """Whether the answer came to its end."""
        return self.is_done or self._finished

    def feed(self, read: bytes) -> Chunk | None:
        """Take one read and return what may pass, or None when nothing is whole; raises FramingError."""
        if self.is_done or self.error is not None:
            return None
        payloads = _clean_payloads(read) if self._framer.is_empty else None
        if payloads is not None and len(read) <= self._max_line:
            return self._chunk(payloads, b"data:", read)
        return self._chunk(self._framer.feed(read), b"data: ")

    def finish(self) -> Chunk | None:
        """Return what the end of the stream completed."""
        if self.is_done or self.error is not None:
            return None
        return self._chunk(self._framer.finish(), b"data: ")

    def _chunk(self, payloads: list[bytes], start: bytes, read: bytes | None = None) -> Chunk | None:
        """Return the events that may pass, with their bytes as they came wherever nothing was taken out."""
        events: list[Body] = []
        frames: list[bytes] = []
        intact = read is not None
        for payload in payloads:
            event = self._event(payload)
            if event is not None:
                whole = event.pop("event", self) is self
                intact = intact and whole
                if event:
                    events.append(event)
                    frames.append(start + payload if whole and b"\n" not in payload else _encoded(event))
            if self.is_done or self.error is not None:
                break
        if not events:
            return None
        raw = read if intact and len(frames) == len(payloads) else b"\n\n".join([*frames, b""])
        return Chunk(raw=raw, events=events)

    def _event(self, payload: bytes) -> Body | None:
        """Return the event in a payload, None for what is no chunk; notes the end and errors."""
        text = payload.strip()
        if text == DONE_WORD:
            self.is_done = True
        if not text or self.is_done:
            return None
        try:
            event = decode(payload)
        except FramingError as error:
            self.error = error
            return None
        self.error = error_of(event)
        if self.error is not None:
            return None
        self._finished = self._finished or _has_finish(event)
        return event


def decode(payload: bytes) -> dict[str, Any]:
    """Return a payload as a JSON object; raises FramingError."""
    try:
        event = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise FramingError("it sent an event that is not JSON") from error
    if not isinstance(event, dict):
        raise FramingError("it sent an event that is not a JSON object")
    check_depth(payload, event)
    return event


def check_depth(payload: bytes, value: object) -> None:
    """Raise FramingError for JSON that can be read but, put into an answer of ours, no longer be written."""
    if payload.count(b"{") + payload.count(b"[") <= MAX_DEPTH:
        return
    for _ in range(ROOM):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise FramingError("its JSON nests too deep") from error


def _encoded(event: Body) -> bytes:
    return b"data: " + orjson.dumps(event)


def error_of(answer: Mapping[str, Any]) -> object:
    """Return the error object of an answer that is one in spite of its status, or None."""
    if answer.get("object") == "error":
        return answer
    return answer.get("error") or None


def _clean_payloads(read: bytes) -> list[bytes] | None:
    """Return the payloads of a read that is nothing but whole one-line `data:` events ended by LF LF."""
    if not read.startswith(b"data:") or not read.endswith(b"\n\n") or b"\r" in read:
        return None
    frames = read[:-2].split(b"\n\n")
    if read.count(b"\n") != 2 * len(frames):
        return None
    if not all(frame.startswith(b"data:") for frame in frames):
        return None
    return [frame[5:] for frame in frames]


def _has_finish(event: Mapping[str, Any]) -> bool:
    choices = event.get("choices")
    if not isinstance(choices, list):
        return False
    return any(isinstance(choice, dict) and bool(choice.get("finish_reason")) for choice in choices)
