"""JSON of others, where any field may have any type: what is not of the expected one counts as absent."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gatewayd.text import encodable

MAX_COUNT: Final = 2**53
"""The first number that JSON readers may get wrong; what counts tokens stays far below."""


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_sequence(value: object) -> Sequence[Any]:
    """Return a list, or an empty one."""
    return value if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """Return a text that can be written, or an empty one: halves of surrogate pairs become "?"."""
    return encodable(value) if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """Return a whole number from 0 up to 2**53, or 0."""
    return value if type(value) is int and 0 <= value < MAX_COUNT else 0
