"""Limits of JSON in stored chats: check what clients send, sanitise what models answer."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.text import MAX_INTEGER, MAX_JSON_DEPTH, MIN_INTEGER, storable, storable_value, storage_fault

MAX_FIELD_NAME_CHARACTERS: Final = 200

MAX_TEXT_CHARACTERS: Final = 4 * 2**20
"""Maximum length of a text that is not pure ASCII; images and other data URLs are ASCII."""

MAX_VALUES: Final = 20_000
"""Maximum number of JSON values, lists and objects included, in a message or in a chat without messages."""

MAX_MEMBER_VALUES: Final = 100_000
"""Maximum number of JSON values in one member of a list that events write."""


def invalid_field(where: str, reason: str) -> GatewayError:
    """Return the error for a bad field; the field name itself may be untrusted input."""
    name = shorten(storable(where), MAX_FIELD_NAME_CHARACTERS)
    return invalid(f"cannot accept {name}: {reason}", param=name)


def check_json(value: Any, where: str, max_values: int = MAX_VALUES, max_depth: int = MAX_JSON_DEPTH) -> None:
    """Raise invalid_request, naming the field, unless a value is JSON that can be stored.

    Refused are NUL, lone surrogates, integers of more than 64 bits, numbers that are not finite, more
    levels or values than given, and texts over 4 Mi characters that are not ASCII.
    """
    ancestors: list[tuple[Any, Iterator[tuple[Any, Any]]]] = []
    name: Any = ""
    for _ in range(max_values):
        reason = _fault(value)
        if reason is None and len(ancestors) > max_depth:
            reason = f"it nests deeper than {max_depth} levels"
        if reason is not None:
            path = [str(each) for each, _ in ancestors[1:]] + [str(name)] * bool(ancestors)
            raise invalid_field(".".join([where, *path]), reason)
        if isinstance(value, dict):
            ancestors.append((name, iter(value.items())))
        elif isinstance(value, list):
            ancestors.append((name, iter(enumerate(value))))
        while ancestors:
            following = next(ancestors[-1][1], None)
            if following is not None:
                name, value = following
                break
            ancestors.pop()
        else:
            return
    raise invalid_field(where, f"it has more than {max_values} values")


def check_member(value: Any, where: str) -> None:
    """Raise too_large, naming the list, for a member over the limits that `check_json` applies on reading.

    The database checks the depth, and refuses or replaces unstorable values.
    """
    for count, one in enumerate(_walk(value), 1):
        if count > MAX_MEMBER_VALUES:
            raise _too_large(where, f"{MAX_MEMBER_VALUES} values in it")
        if isinstance(one, str) and _is_long(one):
            raise _too_large(where, f"{MAX_TEXT_CHARACTERS} characters in a text that is not ASCII")


def _too_large(where: str, maximum: str) -> GatewayError:
    return GatewayError(
        ErrorKind.TOO_LARGE, f"cannot write the message: a value of {where} has over {maximum}", param=where
    )


def count_values(value: Any, maximum: int = MAX_VALUES) -> int:
    """Return the number of values in `value`, itself included, or `maximum` + 1 if there are more."""
    return sum(1 for _ in islice(_walk(value), maximum + 1))


def check_merged(members: Mapping[str, Any], where: str) -> None:
    """Raise invalid_request, naming the field, if merged members hold more than MAX_VALUES values."""
    if count_values(members) > MAX_VALUES:
        raise invalid_field(where, f"it would have more than {MAX_VALUES} values")


def fit_members(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a message; set the largest ones to None if all together exceed MAX_VALUES."""
    counts = {name: count_values(value) for name, value in members.items()}
    left = MAX_VALUES - 1 - len(members)
    fitted = dict(members)
    for name in sorted(counts, key=counts.__getitem__):
        left -= counts[name] - 1
        if left < 0:
            fitted[name] = None
    return fitted


def _walk(value: Any) -> Iterator[Any]:
    """Yield a value and, recursively, every value in it."""
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
    """Return the reason why a value itself, without its contents, cannot be stored."""
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
                return "its keys are not all text"
            return next(filter(None, map(storage_fault, value)), None)
        case _:
            return "it is not JSON"


def _fault_of_text(text: str) -> str | None:
    if _is_long(text):
        return f"it is longer than {MAX_TEXT_CHARACTERS} characters"
    return storage_fault(text)


def _is_long(text: str) -> bool:
    # Storage replaces NUL by a character that is not ASCII.
    return len(text) > MAX_TEXT_CHARACTERS and ("\x00" in text or not text.isascii())


def replace_unstorable_values(value: Any) -> Any:
    """Return a value whose unstorable parts are replaced: one bad character must not lose an answer."""
    return storable_value(value, lambda odd: storable(shorten(str(odd))), MAX_JSON_DEPTH)
