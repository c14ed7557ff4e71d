"""Strings of a JSON text as bytes: where they end, where they may be cut, and the text without them."""

import re
from typing import Final

Text = bytes | bytearray
"""A JSON text, or a part of one, in UTF-8."""

_REST_OF_TEXT: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_CHARACTERS: Final = re.compile(
    rb'(?:[^"\\]++|\\(?:[^u]|u(?![dD][89abAB])[^"\\]{4}|u[dD][89abAB][^"\\]{2}\\u[^"\\]{4}))++',
    re.DOTALL,
)
"""Characters of a string; the end cuts no escape and no surrogate pair (RFC 8259, 7)."""
_ESCAPES_BYTES: Final = 64
"""Number of bytes before a cut that are looked at: an escaped surrogate pair has twelve."""
_QUOTE, _BACKSLASH = b'"\\'


def is_escaped(data: Text, start: int, place: int) -> bool:
    """Return whether the character at `place` is escaped; that at `start`, of the same string, is not."""
    if place == start or data[place - 1] != _BACKSLASH:
        return False
    text = data[start:place]
    return (len(text) - len(text.rstrip(b"\\"))) % 2 == 1


def escaped_end(data: Text, start: int, until: int, quote: int) -> tuple[int, int]:
    """Return where a string is to be read on, and the place of the quote at its end, -1 without one.

    `start` is no escaped character of the string; `quote` is the first quote before `until`, which is
    escaped, or -1 when the character at `until` is.
    """
    if quote < 0:
        return until - 1, -1
    found = _REST_OF_TEXT.match(data, start, until)
    stop = until if found is None else found.end()
    return stop, stop if stop < until and data[stop] == _QUOTE else -1


def piece_end(data: Text, start: int, end: int, most: int) -> int:
    """Return the end of the first piece of a string, in which no escape and no surrogate pair is cut.

    A piece has at most so many bytes, and a quarter of them with an escape, which takes ten times as long to
    decode as a character.
    """
    cut = min(start + most, end)
    if data.find(b"\\", start, cut) >= 0:
        cut = min(start + most // 4, end)
    escape = data.find(b"\\", max(cut - _ESCAPES_BYTES, start), cut)
    if cut == end or escape < 0:
        return cut
    escape += is_escaped(data, start, escape)
    found = _CHARACTERS.match(data, escape, cut)
    whole = escape if found is None else found.end()
    # What is no escape is refused when the piece is decoded.
    return whole if whole > start else cut


def without_strings(data: Text) -> bytes:
    """Return a text of whole strings and what is between them, without the strings."""
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(plain.split(b'"')[::2])
