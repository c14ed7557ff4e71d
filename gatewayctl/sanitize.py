"""Sanitising of received text: names, messages and answers must not control the terminal."""

import json
import re
import unicodedata
from typing import Any, Final

# Line and paragraph separators, and the characters that change the direction of text.
_TURNERS: Final = frozenset("\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


# Characters that control a terminal and that JSON does not escape.
_STEERING: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str) -> str:
    """Return a text on one line that cannot control a terminal: control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def clean_lines(text: str) -> str:
    """Return a text of several lines that cannot control a terminal."""
    return "".join(character if character in "\n\t" else _shown(character) for character in text)


def escaped(text: str) -> str:
    """Return a text in ASCII, with other characters escaped as in JSON."""
    return json.dumps(text)[1:-1]


def as_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON that cannot control a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _STEERING.sub(lambda found: escaped(found[0]), text)


def begun(text: str, longest: int) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[:longest].rstrip()} ..."


def _shown(character: str) -> str:
    if unicodedata.category(character) in {"Cc", "Cs"} or character in _TURNERS:
        return character.encode("unicode_escape").decode("ascii")
    return character
