"""Size limits for JSON inside text, such as tool call arguments, checked before decoding; pure.

The body limits count such a text as one value, and the JSON decoder cannot be interrupted.
"""

import re
from collections.abc import Sequence
from typing import Final

import orjson

from gatewayd.text import MAX_ANSWER_DEPTH

MAX_REPLY_LEVELS: Final = 16
"""Nesting levels that a rendered reply adds around JSON of a source."""

MAX_VALUES: Final = 200_000
"""Maximum number of lists, objects, texts and commas in all JSON texts of a request together."""

MAX_EXAMINED_CHARACTERS: Final = 4 * 1024 * 1024
"""Up to this length, brackets and commas inside JSON strings are excluded from the count."""

_TEXT: Final = re.compile(r'"[^"\\]*+(?:\\(?:.|\Z)[^"\\]*+)*+(?:"|\Z)', re.DOTALL)


def has_too_many_values(*texts: str) -> bool:
    """Return True if JSON texts hold so many values that decoding them would block the event loop."""
    if sum(count_marks(text) for text in texts) <= MAX_VALUES:
        return False
    if sum(map(len, texts)) > MAX_EXAMINED_CHARACTERS:
        return True
    return _is_over(texts)


def nests_too_deep(value: object, brackets: int) -> bool:
    """Return True if decoded JSON nests too deep to be encoded; `brackets` counts its opening brackets."""
    if brackets <= MAX_ANSWER_DEPTH:
        return False
    for _ in range(MAX_REPLY_LEVELS):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False


def count_marks(text: str) -> int:
    """Return the number of opening brackets and commas in a text, those inside its strings included."""
    return text.count(",") + text.count("[") + text.count("{")


def _is_over(texts: Sequence[str]) -> bool:
    count = 0
    for text in texts:
        at = 0
        for found in _TEXT.finditer(text):
            count += 1 + count_marks(text[at : found.start()])
            at = found.end()
            if count > MAX_VALUES:
                return True
        count += count_marks(text[at:])
    return count > MAX_VALUES
