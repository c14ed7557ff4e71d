"""What can be kept of JSON that others made: checked where it is asked for, mended where it is an answer."""

import math
import re
from typing import Any, Final

from gatewayd.accounts import texts
from gatewayd.errors import GatewayError, invalid, shortened

MAX_DEPTH: Final = 64
LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1
SHOWN_FIELD: Final = 200

# Databases keep neither of them in texts.
_ODD: Final = re.compile("[\x00\ud800-\udfff]")


def refused(where: str, reason: str) -> GatewayError:
    """Return the error for a bad field; its name may hold anything that was sent."""
    name = shortened(texts.mended(where), SHOWN_FIELD)
    return invalid(f"cannot accept {name}: {reason}", param=name)


def is_storable(text: str) -> bool:
    """Tell whether a text has neither NUL nor lone surrogates."""
    return _ODD.search(text) is None


def check(value: Any, where: str, depth: int = 0) -> None:
    """Raise invalid_request, naming the field, unless a value is JSON that can be kept.

    No NUL, no lone surrogates, integers of 64 bits, finite numbers, 64 levels at most.
    """
    if value is None or isinstance(value, bool):
        return
    if depth > MAX_DEPTH:
        raise refused(where, f"it nests deeper than {MAX_DEPTH} levels")
    match value:
        case str():
            _check_text(value, where)
        case int() | float():
            _check_number(value, where)
        case dict():
            for name, member in value.items():
                if not isinstance(name, str):
                    raise refused(where, "its names are not all text")
                _check_text(name, where)
                check(member, f"{where}.{name}", depth + 1)
        case list():
            for position, member in enumerate(value):
                check(member, f"{where}.{position}", depth + 1)
        case _:
            raise refused(where, "it is not JSON")


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


def _check_text(text: str, where: str) -> None:
    if not is_storable(text):
        raise refused(where, "it has a NUL character or half of a surrogate pair")


def _check_number(number: float, where: str) -> None:
    if isinstance(number, int) and not LEAST <= number <= MOST:
        raise refused(where, "it is an integer of more than 64 bits")
    if not math.isfinite(number):
        raise refused(where, "it is not a finite number")
