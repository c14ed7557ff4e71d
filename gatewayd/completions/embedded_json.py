"""Bounds JSON that stands in a text, as the arguments of tool calls do: counted before it is decoded; pure.

A body counts such a text as one value, whatever it holds, and the decoder cannot be interrupted.
"""

import re
from collections.abc import Sequence
from typing import Final

import orjson

from gatewayd.text import MAX_ANSWER_DEPTH

MAX_LEVELS_AROUND: Final = 16
"""Levels that an answer of ours puts around the JSON of a source."""

MAX_VALUES: Final = 200_000
"""Lists, objects, texts and commas that the JSON texts of a request may hold together."""

MAX_EXAMINED_CHARACTERS: Final = 4 * 1024 * 1024
"""Up to here, brackets and commas in the texts of the JSON itself do not count."""

_TEXT: Final = re.compile(r'"[^"\\]*+(?:\\(?:.|\Z)[^"\\]*+)*+(?:"|\Z)', re.DOTALL)


def has_too_many_values(*texts: str) -> bool:
    """Tell whether JSON texts hold so many values that to decode them would hold others up."""
    if sum(count_marks(text) for text in texts) <= MAX_VALUES:
        return False
    if sum(map(len, texts)) > MAX_EXAMINED_CHARACTERS:
        return True
    return _is_over(texts)


def nests_too_deep(value: object, brackets: int) -> bool:
    """Tell whether decoded JSON, whose text has so many opening brackets, is too deep to be written again."""
    if brackets <= MAX_ANSWER_DEPTH:
        return False
    for _ in range(MAX_LEVELS_AROUND):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False


def count_marks(text: str) -> int:
    """Return how many brackets that open and commas a text has, those in its texts with them."""
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
