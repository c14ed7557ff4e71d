"""What can be kept of JSON that others made: checked where it is asked for, mended where it is an answer."""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

from gatewayd.accounts import texts
from gatewayd.errors import GatewayError, invalid, shortened

MAX_DEPTH: Final = 64
LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1
SHOWN_FIELD: Final = 200

MAX_TEXT_CHARACTERS: Final = 4 * 2**20
"""Characters of a text that has others than those of ASCII; images and the like are ASCII."""

MAX_VALUES: Final = 20_000
"""Values of one message, or of a chat beside its messages: lists, objects and what is in them."""

MAX_LIST_VALUES: Final = 100_000
"""Values of a list that events write: 20 for each member that it may have."""

_ODD_TEXT: Final = "it has a NUL character or half of a surrogate pair"

# Databases keep neither of them in texts.
_ODD: Final = re.compile("[\x00\ud800-\udfff]")


def refused(where: str, reason: str) -> GatewayError:
    """Return the error for a bad field; its name may hold anything that was sent."""
    name = shortened(texts.mended(where), SHOWN_FIELD)
    return invalid(f"cannot accept {name}: {reason}", param=name)


def is_storable(text: str) -> bool:
    """Tell whether a text has neither NUL nor lone surrogates."""
    return "\x00" not in text and (text.isascii() or _ODD.search(text) is None)


def check(value: Any, where: str, max_values: int = MAX_VALUES) -> None:
    """Raise invalid_request, naming the field, unless a value is JSON that can be kept.

    No NUL, no lone surrogates, integers of 64 bits, finite numbers, 64 levels and so many values at most, and
    4 Mi characters in a text that is not ASCII.
    """
    around: list[tuple[Any, Iterator[tuple[Any, Any]]]] = []
    name: Any = ""
    for _ in range(max_values):
        reason = _fault(value)
        if reason is None and len(around) > MAX_DEPTH:
            reason = f"it nests deeper than {MAX_DEPTH} levels"
        if reason is not None:
            path = [str(each) for each, _ in around[1:]] + [str(name)] * bool(around)
            raise refused(".".join([where, *path]), reason)
        if isinstance(value, dict):
            around.append((name, iter(value.items())))
        elif isinstance(value, list):
            around.append((name, iter(enumerate(value))))
        while around:
            following = next(around[-1][1], None)
            if following is not None:
                name, value = following
                break
            around.pop()
        else:
            return
    raise refused(where, f"it has more than {max_values} values")


def _fault(value: Any) -> str | None:
    """Return why a value cannot be kept, apart from what is in it."""
    match value:
        case str():
            return _fault_of_text(value)
        case bool() | None | list():
            return None
        case int():
            return None if LEAST <= value <= MOST else "it is an integer of more than 64 bits"
        case float():
            return None if math.isfinite(value) else "it is not a finite number"
        case dict():
            if not all(isinstance(name, str) for name in value):
                return "its names are not all text"
            return None if all(map(is_storable, value)) else _ODD_TEXT
        case _:
            return "it is not JSON"


def _fault_of_text(text: str) -> str | None:
    if not text.isascii() and len(text) > MAX_TEXT_CHARACTERS:
        return f"it is longer than {MAX_TEXT_CHARACTERS} characters"
    return None if is_storable(text) else _ODD_TEXT


def mended(value: Any, depth: int = 0) -> Any:
    """Return a value with what cannot be kept replaced: an answer is not lost for one character."""
    if value is None or isinstance(value, bool):
        return value
    match value:
        case str():
            return texts.mended(value)
        case int() if LEAST <= value <= MOST:
            return value
        case float():
            return value if math.isfinite(value) else None
        case dict() if depth < MAX_DEPTH:
            return {mended(str(name)): mended(member, depth + 1) for name, member in value.items()}
        case list() | tuple() if depth < MAX_DEPTH:
            return [mended(member, depth + 1) for member in value]
        case _:
            return texts.mended(shortened(str(value)))
