"""Readers for server-sent events of providers: bytes in, complete `data:` payloads out; without I/O.

`DataFramer` returns payloads only. `ChunkReader` reads an OpenAI stream and forwards bytes unchanged where
that is safe. It decodes every event to decide that: with orjson this costs less than a search in the bytes,
which could also be deceived.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson

from gatewayd.completions.choices import flatten_thinking
from gatewayd.completions.deltas import THOUGHT_FIELDS, delta_characters, event_characters, usage_of
from gatewayd.completions.embedded_json import nests_too_deep
from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.limits import (
    LARGE_EVENT_BYTES,
    MAX_EVENT_COMMAS,
    MAX_EVENT_CONTAINERS,
    MAX_LINE_BYTES,
    AnswerSizeError,
)
from gatewayd.completions.records import CompletionChunk
from gatewayd.completions.tool_call_indices import CHUNK, ToolCallNumbering
from gatewayd.text import MAX_ANSWER_DEPTH

MAX_HELD_BYTES = 64 * 1024
"""Maximum size of an incomplete event that is joined with the next read; the framer holds longer ones."""

DONE_WORD = b"[DONE]"

_USUAL = b"data: {"
"""Start of an event that may be forwarded unchanged."""

_LAST_FRAME = b"data: [DONE]\n\n"

_NOT_PLAIN = THOUGHT_FIELDS | {"tool_calls"}
"""Fields of a delta with more than text."""

_USAGE_PLACES = frozenset({"usage", "x_groq"})

_NONE_USUAL = (b"",)
"""A payload that is no JSON; it makes the caller process the events one by one."""

_SURROGATES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)

_CR = 13

_SHORT = 2 * MAX_ANSWER_DEPTH
"""Maximum size of a text that cannot nest too deep, because each level takes two bytes."""


class FramingError(ValueError):
    """The stream is malformed; the text completes "cannot get an answer from ...: "."""


class DataFramer:
    """Splits an event stream into the payloads of its events.

    LF, CRLF and CR end a line; a blank line ends an event; the `data:` lines of an event are joined with LF.
    Comments, all other fields (`event:`, `id:`, `retry:`) and events without data are dropped. A line or
    event that is too long ends the stream: the payloads before it are returned, and `broken` is set. `stray`
    is the first line that is JSON instead of a field.
    """

    def __init__(self, max_line: int = MAX_LINE_BYTES) -> None:
        self._max_line = max_line
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._started = False
        self.broken: FramingError | None = None
        self.stray: bytes | None = None

    def feed(self, read: bytes) -> list[bytes]:
        """Return the payloads that one read completes; raises FramingError if there can be no more."""
        self._check()
        if self._after_cr and read:
            self._after_cr = False
            read = read.removeprefix(b"\n")
        searched = len(self._rest)
        self._rest += read
        if not self._started and not self._skip_mark():
            return []
        if self._rest.find(b"\n", searched) < 0 and self._rest.find(b"\r", searched) < 0:
            lines: list[bytes] = []
        else:
            self._after_cr = self._rest.endswith(b"\r")
            lines = bytes(self._rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            self._rest = bytearray(lines.pop())
        return self._take(lines)

    def finish(self) -> list[bytes]:
        """Return the payload of a last event without a blank line; raises the errors of `feed`."""
        self._check()
        lines = [bytes(self._rest), b""]
        self._rest.clear()
        self._after_cr = False
        return self._take(lines)

    def release(self, limit: int) -> bytes | None:
        """Return and drop the buffered start of a line if nothing else is buffered and it has at most `limit`
        bytes, else None."""
        if not self._started or self._data or self._after_cr or len(self._rest) > limit:
            return None
        rest = bytes(self._rest)
        self._rest.clear()
        return rest

    def begin(self) -> None:
        """Record the start of the stream: later bytes are no byte order mark."""
        self._started = True

    def _skip_mark(self) -> bool:
        """Drop a byte order mark; return False while more bytes are needed to recognise one."""
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
            if not line and self._data:
                payloads.append(b"\n".join(self._data))
                self._data = []
                self._size = 0
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
                self._size += len(line)
            elif line == b"data":
                self._data.append(b"")
            elif self.stray is None and line.startswith(b"{"):
                self.stray = line
            if len(line) > self._max_line or self._size > self._max_line:
                self._break()
                break
        if len(self._rest) > self._max_line:
            self._break()
        if not payloads:
            self._check()
        return payloads

    def _break(self) -> None:
        self.broken = FramingError(f"it sent a line or event over {self._max_line} bytes")

    def _check(self) -> None:
        if self.broken is not None:
            raise self.broken


class ChunkReader:
    """Reads an OpenAI chat stream: returns complete events as chunks, with the bytes of the provider if
    possible.

    It drops lines that are not `data:`, `[DONE]` (the caller writes its own) and a top-level `event` object,
    with which a provider could send events of the gateway. An event without a list of `choices` gets an empty
    one, and tool calls that clients could not distinguish get indices of their own. An error, or text that is
    no event, ends the stream and is stored in `error`, after the chunk of the events before it. `is_complete`
    is true after a finish reason or `[DONE]`.
    """

    def __init__(self, max_line: int = MAX_LINE_BYTES) -> None:
        self._framer = DataFramer(max_line)
        self._max_line = max_line
        self._max_held = min(max_line, MAX_HELD_BYTES)
        self._held = b""
        self._is_framing = True
        self._is_fresh = True
        self._numbers = ToolCallNumbering()
        self._finished = False
        self._characters = 0
        self._usage: Mapping[str, Any] | None = None
        self.is_done = False
        self.error: object = None

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete."""
        return self.is_done or self._finished

    def feed(self, read: bytes) -> CompletionChunk | None:
        """Return the events of one read to forward, or None if none is complete."""
        if self.is_done or self.error is not None:
            return None
        if self._held:
            read = self._held + read
            self._held = b""
        if _CR in read or (self._is_framing and not self._begins_clean(read)):
            return self._framed(read)
        end = read.rfind(b"\n\n") + 2
        if end != len(read):
            if len(read) - end > self._max_held:
                return self._framed(read)
            if end < 2:
                self._held = read
                return None
            self._held = read[end:]
            read = read[:end]
        if len(read) > self._max_line:
            return self._framed(read)
        clean = read.removesuffix(_LAST_FRAME)
        found = _examine(clean)
        if found is None:
            return self._framed(read)
        finishes, is_plain, characters, usage = found
        self._finished = self._finished or finishes
        self.is_done = len(clean) < len(read)
        return CompletionChunk(raw=clean, is_plain=is_plain, characters=characters, usage=usage)

    def _begins_clean(self, read: bytes) -> bool:
        """Return whether the stream starts with an event of the usual form, so that it needs no framing."""
        if not self._is_fresh:
            return False
        self._is_fresh = False
        if not read.startswith(_USUAL):
            return False
        self._is_framing = False
        self._framer.begin()
        return True

    def finish(self) -> CompletionChunk | None:
        """Return the chunk that the end of the stream completes."""
        if self.is_done or self.error is not None:
            return None
        held, self._held = self._held, b""
        chunk = self._framed(held, is_last=True)
        if not self.is_complete and self.error is None:
            self.error = self._stray_error()
        return chunk

    def _stray_error(self) -> object:
        """Return the error in a line that does not belong to an event stream, or None."""
        try:
            return _error_in(decode_payload(self._framer.stray or b"{}"))
        except FramingError:
            return None

    def _framed(self, read: bytes, *, is_last: bool = False) -> CompletionChunk | None:
        """Return the events to forward, each with its original bytes unless it is changed."""
        payloads = self._payloads(read, is_last=is_last)
        frames: list[bytes] = []
        self._characters, self._usage = 0, None
        for payload in payloads:
            passable = self._passable(payload)
            if self.is_done or self.error is not None:
                break
            if passable is not None:
                frames.append(b"data: " + passable)
        else:
            self.error = self._framer.broken
        start = self._framer.release(self._max_held)
        self._is_framing = start is None
        self._held = start or self._held
        if not frames:
            return None
        raw = b"\n\n".join([*frames, b""])
        return CompletionChunk(raw=raw, characters=self._characters, usage=self._usage)

    def _payloads(self, read: bytes, *, is_last: bool) -> list[bytes]:
        payloads: list[bytes] = []
        with suppress(FramingError):  # the framer's `broken` keeps it
            payloads += self._framer.feed(read)
            if is_last:
                payloads += drop_truncated(self._framer.finish())
        return payloads

    def _passable(self, payload: bytes) -> bytes | None:
        """Return the part of a payload to forward, None for nothing; records the end and errors."""
        payload = replace_surrogates(payload)
        text = payload.strip()
        if text == DONE_WORD:
            self.is_done = True
        if not text or self.is_done:
            return None
        try:
            event = decode_payload(payload)
        except FramingError as error:
            self.error = error
            return None
        self.error = _error_in(event)
        is_foreign = event.pop("event", self) is not self
        if not event or self.error is not None:
            return None
        choices = event.get("choices")
        if not isinstance(choices, list):
            event["choices"] = choices = []
            is_foreign = True
        self._finished = self._finished or any(_is_finished(choice) for choice in choices)
        for choice in choices:
            is_foreign = flatten_thinking(as_mapping(choice).get("delta")) or is_foreign
        try:
            is_foreign = self._numbers.normalise(event) or is_foreign
        except AnswerSizeError as error:
            self.error = FramingError(error.reason)
            return None
        self._characters += event_characters(event)
        self._usage = usage_of(event) or self._usage
        return orjson.dumps(event) if is_foreign or b"\n" in payload else payload


def decode_payload(payload: bytes) -> dict[str, Any]:
    """Return a payload as a JSON object; raises FramingError."""
    if len(payload) > LARGE_EVENT_BYTES and _holds_much(payload):
        raise FramingError("it sent an event with too many values")
    try:
        event = orjson.loads(replace_surrogates(payload))
    except orjson.JSONDecodeError as error:
        raise FramingError("it sent an event that is not JSON") from error
    if not isinstance(event, dict):
        raise FramingError("it sent an event that is not a JSON object")
    check_depth(payload, event)
    return event


def _holds_much(payload: bytes) -> bool:
    containers = payload.count(b"[") + payload.count(b"{")
    return containers > MAX_EVENT_CONTAINERS or payload.count(b",") > MAX_EVENT_COMMAS


def replace_surrogates(payload: bytes) -> bytes:
    """Return JSON with U+FFFD for each lone surrogate; some providers split a pair between two events."""
    if b"\\u" not in payload:
        return payload
    return _SURROGATES.sub(lambda found: b"\\ufffd" if found[1] else found[0], payload)


def drop_truncated(payloads: list[bytes]) -> list[bytes]:
    """Return the complete payloads: a truncated stream ends with the start of one."""
    return [payload for payload in payloads if payload.strip() == DONE_WORD or _is_object(payload)]


def check_depth(payload: bytes, value: object) -> None:
    """Raise FramingError for JSON that nests too deep to be encoded within an answer of the gateway."""
    if nests_too_deep(value, payload.count(b"{") + payload.count(b"[")):
        raise FramingError("its JSON nests too deep")


def _is_object(payload: bytes) -> bool:
    try:
        decode_payload(payload)
    except FramingError:
        return False
    return True


def find_error(answer: Mapping[str, Any]) -> object:
    """Return the error object of an answer with a successful status, or None."""
    if answer.get("object") == "error":
        return answer
    return answer.get("error") or None


def _error_in(event: Mapping[str, Any]) -> object:
    """Return the error that an event of a chat stream is or contains, or None."""
    found = find_error(event)
    if found is not None:
        return found
    if "choices" not in event:
        return event if any(event.get(name) for name in ("message", "detail", "errors", "msg")) else None
    choices = event["choices"] if isinstance(event["choices"], list) else []
    return next(
        (choice["error"] for choice in choices if isinstance(choice, dict) and choice.get("error")), None
    )


def _is_finished(choice: object) -> bool:
    return isinstance(choice, dict) and bool(choice.get("finish_reason"))


_Examined = tuple[bool, bool, int, Mapping[str, Any] | None]
"""Whether a read finishes the answer, whether it has text alone, the length of its texts, and its usage."""


def _examine(read: bytes) -> _Examined | None:
    """Return what a read has that can be forwarded unchanged, or None if it needs framing.

    `read` has no CR and ends with a blank line. It can be forwarded if it consists of lines `data: {...}` of
    valid JSON, not deep, with one choice at most. Others are framed and may still be forwarded.
    """
    finishes, is_plain, loads = False, True, orjson.loads
    characters, usage = 0, None
    try:
        for payload in _usual_payloads(read):
            event = loads(payload)
            if type(event) is not dict or "event" in event or "error" in event:
                return None
            choices = event.get("choices")
            if type(choices) is not list or len(choices) > 1 or event.get("object") != CHUNK:
                return None
            for choice in choices:
                length = _text_length(choice)
                if length is None:
                    return None
                if length < 0:
                    is_plain = False
                    length = delta_characters(as_mapping(choice.get("delta")))
                finishes = finishes or bool(choice.get("finish_reason"))
                characters += length
            if not _USAGE_PLACES.isdisjoint(event) or (choices and "usage" in choices[0]):
                usage = usage_of(event) or usage
    except orjson.JSONDecodeError:
        return None
    return finishes, is_plain, characters, usage


def _text_length(choice: object) -> int | None:
    """Return the length of the text of a choice, -1 if it has more than text, None if it needs framing."""
    if type(choice) is not dict or "error" in choice or "index" not in choice:
        return None
    delta = choice.get("delta")
    if type(delta) is not dict:
        return -1
    content = delta.get("content")
    if type(content) is str and len(delta) == 1:
        return len(content)
    if type(content) is list:
        return None
    if not _NOT_PLAIN.isdisjoint(delta):
        return -1
    return len(content) if type(content) is str else 0


def _usual_payloads(read: bytes) -> Sequence[bytes]:
    """Return the payloads of a read that consists of one-line events; _NONE_USUAL for any other."""
    if not read.startswith(_USUAL) or b'"tool_calls"' in read:
        return _NONE_USUAL
    if read.find(b"\n") == len(read) - 2:
        payloads = [read[6:]]
    else:
        payloads = read[6:-2].split(b"\n\ndata: ")
        if read.count(b"\n") != 2 * len(payloads):
            return _NONE_USUAL
    if (
        len(read) > _SHORT
        and len(max(payloads, key=len)) > _SHORT
        and read.count(b"{") + read.count(b"[") > MAX_ANSWER_DEPTH
    ):
        return _NONE_USUAL
    return payloads
