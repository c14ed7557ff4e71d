"""Separates plain text from `data:` lines in the output of a pipe, cut at any point; pure."""

import codecs
from typing import Final

import orjson

from gatewayd.completions.json_end import JsonEndFinder
from gatewayd.completions.limits import MAX_LINE_BYTES
from gatewayd.completions.records import Body
from gatewayd.errors import ErrorKind, GatewayError

DATA_PREFIX: Final = "data:"
_IGNORED_PREFIXES: Final = (":", "event:", "id:", "retry:")
"""Prefixes of event stream lines that carry no answer."""


class SseTextReader:
    """Reads texts and bytes: bytes may end inside a character or a line, texts are whole lines or prose.

    After the first `data:` line all bytes are an event stream, and so are texts that look like one. A line
    over `MAX_LINE_BYTES` characters raises plugin_failed.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending: list[str] = []
        self._size = 0
        self._end = JsonEndFinder()
        self._is_framed = False

    def feed(self, item: str | bytes) -> list[str | Body]:
        """Return what the item completes: prose, and the objects of `data:` lines."""
        is_text = isinstance(item, str)
        text = item if isinstance(item, str) else self._decoder.decode(item)
        found: list[str | Body] = []
        if self._pending and is_text and text.startswith(DATA_PREFIX):
            # The previous line had no line end.
            found += self._line(self._flush())
        elif self._pending and self._continues(text, is_text=is_text):
            return self._continue(text)
        elif self._pending:
            text = self._flush() + text
        if not self._is_frames(text, is_text=is_text):
            if not is_text and text and DATA_PREFIX.startswith(text):
                self._buffer(text)
            elif text and not (self._is_framed and text.isspace()):
                found.append(text)
            return found
        return found + self._lines(text, is_text=is_text)

    def finish(self) -> list[str | Body]:
        """Return the buffered rest."""
        rest = self._flush() + self._decoder.decode(b"", final=True)
        if not rest:
            return []
        return self._line(rest) if self._is_framed or rest.startswith(DATA_PREFIX) else [rest]

    def _continues(self, text: str, *, is_text: bool) -> bool:
        """Whether a text only continues the buffered line."""
        return (
            self._is_framed and "\n" not in text and (not is_text or self._pending[0].startswith(DATA_PREFIX))
        )

    def _continue(self, text: str) -> list[str | Body]:
        """Append to the buffered line, and return it if this closes its JSON."""
        was_whole = self._end.is_whole
        self._add(text)
        if was_whole or not self._end.is_whole:
            return []
        line = self._flush()
        if _is_whole(line):
            return self._line(line)
        self._buffer(line)
        return []

    def _buffer(self, text: str) -> None:
        self._end = JsonEndFinder()
        self._add(text)

    def _add(self, text: str) -> None:
        self._pending.append(text)
        self._end.feed(text)
        self._size += len(text)
        if self._size > MAX_LINE_BYTES:
            message = f"cannot use the output of the function: it has a line over {MAX_LINE_BYTES} characters"
            raise GatewayError(ErrorKind.PLUGIN_FAILED, message)

    def _flush(self) -> str:
        text = "".join(self._pending)
        self._pending, self._size = [], 0
        return text

    def _is_frames(self, text: str, *, is_text: bool) -> bool:
        if text.lstrip("\r\n").startswith(DATA_PREFIX):
            return True
        if self._is_framed:
            return not is_text or text.startswith(_IGNORED_PREFIXES)
        # Some providers send comments before their first line.
        return not is_text and text.startswith(": ") and text.endswith("\n")

    def _lines(self, text: str, *, is_text: bool) -> list[str | Body]:
        self._is_framed = True
        *lines, rest = text.split("\n")
        found = [token for line in lines for token in self._line(line)]
        if rest and (_is_whole(rest) or (is_text and not rest.startswith(DATA_PREFIX))):
            found += self._line(rest)
        elif rest:
            self._buffer(rest)
        return found

    def _line(self, line: str) -> list[str | Body]:
        if not line.startswith(DATA_PREFIX):
            return [] if not line.strip() or line.startswith(_IGNORED_PREFIXES) else [line]
        payload = line[len(DATA_PREFIX) :].strip()
        if not payload or payload == "[DONE]":
            return []
        try:
            value = orjson.loads(payload)
        except orjson.JSONDecodeError:
            return [payload]
        return [value] if isinstance(value, dict) else [payload]


def _is_whole(line: str) -> bool:
    """Whether a line without a line end is complete."""
    payload = line[len(DATA_PREFIX) :].strip()
    if not line.startswith(DATA_PREFIX) or not payload.endswith(("}", "]")):
        return False
    if payload == "[DONE]":
        return True
    try:
        return isinstance(orjson.loads(payload), dict)
    except orjson.JSONDecodeError:
        return False
