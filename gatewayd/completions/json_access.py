"""Lenient accessors for untrusted JSON: a value of the wrong type counts as absent."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.text import encodable

MAX_COUNT: Final = 2**53
"""The first integer that a JSON reader may round; token counts stay far below."""


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty mapping."""
    return value if isinstance(value, dict) else {}


def as_sequence(value: object) -> Sequence[Any]:
    """Return the value if it is a list, else an empty sequence."""
    return value if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """Return the value if it is a text, else ""; lone surrogates become "?"."""
    return encodable(value) if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """Return the value if it is a whole number from 0 to below 2**53, else 0."""
    return value if type(value) is int and 0 <= value < MAX_COUNT else 0
