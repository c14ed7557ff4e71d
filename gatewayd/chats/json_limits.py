"""What can be kept of JSON that others made: checked where it is asked for, mended where it is an answer."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.text import MAX_INTEGER, MAX_JSON_DEPTH, MIN_INTEGER, storable, storable_value, storage_fault

MAX_FIELD_NAME_CHARACTERS: Final = 200

MAX_TEXT_CHARACTERS: Final = 4 * 2**20
"""Characters of a text that has others than those of ASCII; images and the like are ASCII."""

MAX_VALUES: Final = 20_000
"""Values of one message, or of a chat beside its messages: lists, objects and what is in them."""

MAX_MEMBER_VALUES: Final = 100_000
"""Values of a member of a list that events write."""


def invalid_field(where: str, reason: str) -> GatewayError:
    """Return the error for a bad field; its name may hold anything that was sent."""
    name = shorten(storable(where), MAX_FIELD_NAME_CHARACTERS)
    return invalid(f"cannot accept {name}: {reason}", param=name)


def check_json(value: Any, where: str, max_values: int = MAX_VALUES, max_depth: int = MAX_JSON_DEPTH) -> None:
    """Raise invalid_request, naming the field, unless a value is JSON that can be kept.

    No NUL, no lone surrogates, integers of 64 bits, finite numbers, so many levels and values at most, and
    4 Mi characters in a text that is not ASCII.
    """
    around: list[tuple[Any, Iterator[tuple[Any, Any]]]] = []
    name: Any = ""
    for _ in range(max_values):
        reason = _fault(value)
        if reason is None and len(around) > max_depth:
            reason = f"it nests deeper than {max_depth} levels"
        if reason is not None:
            path = [str(each) for each, _ in around[1:]] + [str(name)] * bool(around)
            raise invalid_field(".".join([where, *path]), reason)
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
    raise invalid_field(where, f"it has more than {max_values} values")


def check_member(value: Any, where: str) -> None:
    """Raise too_large, naming the list, for a member with more than `check_json` permits where it is read.

    That is its values and long texts; the database looks at its depth, and refuses or replaces odd values.
    """
    for count, one in enumerate(_each(value), 1):
        if count > MAX_MEMBER_VALUES:
            raise _too_large(where, f"{MAX_MEMBER_VALUES} values in it")
        if isinstance(one, str) and _is_long(one):
            raise _too_large(where, f"{MAX_TEXT_CHARACTERS} characters in a text that is not ASCII")


def _too_large(where: str, most: str) -> GatewayError:
    return GatewayError(
        ErrorKind.TOO_LARGE, f"cannot write the message: one of its {where} has over {most}", param=where
    )


def count_values(value: Any, most: int = MAX_VALUES) -> int:
    """Return how many values there are in a value, itself among them, or `most` + 1 when there are more."""
    return sum(1 for _ in islice(_each(value), most + 1))


def check_merged(members: Mapping[str, Any], where: str) -> None:
    """Raise invalid_request, naming the field, for members that have become more than MAX_VALUES values."""
    if count_values(members) > MAX_VALUES:
        raise invalid_field(where, f"it would have more than {MAX_VALUES} values")


def fit_members(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return members of a message; those with the most values are None where it has no room for all."""
    counts = {name: count_values(value) for name, value in members.items()}
    left = MAX_VALUES - 1 - len(members)
    kept = dict(members)
    for name in sorted(counts, key=counts.__getitem__):
        left -= counts[name] - 1
        if left < 0:
            kept[name] = None
    return kept


def _each(value: Any) -> Iterator[Any]:
    """Yield a value, and every value in it."""
    left = [iter((value,))]
    while left:
        for one in left[-1]:
            yield one
            if isinstance(one, dict):
                left.append(iter(one.values()))
                break
            if isinstance(one, list | tuple):
                left.append(iter(one))
                break
        else:
            left.pop()


def _fault(value: Any) -> str | None:
    """Return why a value cannot be kept, apart from what is in it."""
    match value:
        case str():
            return _fault_of_text(value)
        case bool() | None | list():
            return None
        case int():
            return None if MIN_INTEGER <= value <= MAX_INTEGER else "it is an integer of more than 64 bits"
        case float():
            return None if math.isfinite(value) else "it is not a finite number"
        case dict():
            if not all(isinstance(name, str) for name in value):
                return "its names are not all text"
            return next(filter(None, map(storage_fault, value)), None)
        case _:
            return "it is not JSON"


def _fault_of_text(text: str) -> str | None:
    if _is_long(text):
        return f"it is longer than {MAX_TEXT_CHARACTERS} characters"
    return storage_fault(text)


def _is_long(text: str) -> bool:
    # NUL is replaced by a character that is not ASCII.
    return len(text) > MAX_TEXT_CHARACTERS and ("\x00" in text or not text.isascii())


def replace_unstorable_values(value: Any) -> Any:
    """Return a value with what cannot be kept replaced: an answer is not lost for one character."""
    return storable_value(value, lambda odd: storable(shorten(str(odd))), MAX_JSON_DEPTH)
