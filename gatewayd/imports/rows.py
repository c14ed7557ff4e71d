"""Rows of the other program: each column is read with care, as anything may be in it."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from gatewayd.errors import GatewayError, invalid
from gatewayd.text import MAX_JSON_DEPTH, storable, storable_value

MAX_ODD_CHARACTERS: Final = 1000
"""Maximum characters of the text that replaces a value that JSON of the gateway cannot have."""

NANOSECONDS: Final = 10**17
MICROSECONDS: Final = 10**14
MILLISECONDS: Final = 10**11
"""A time that is at least so large is in this unit; seconds reach it after the year 5000."""

MAX_SECONDS: Final = MILLISECONDS - 1


class ForeignRow:
    """One row. A column that is absent or NULL is empty; texts come without NUL and lone surrogates."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def has(self, name: str) -> bool:
        """Tell whether the schema has a column."""
        return name in self._values

    def text(self, name: str) -> str:
        """Return a text, "" for none."""
        return plain_text(self._values.get(name))

    def moment(self, name: str, default: int = 0) -> int:
        """Return a time in epoch seconds."""
        return read_moment(self._values.get(name), default)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a truth value."""
        value = self._values.get(name)
        return default if value is None else value in (True, 1, "1", "true", "True")

    def json(self, name: str, levels: int = MAX_JSON_DEPTH) -> Any:
        """Return a JSON value, None for none; raise invalid_request naming a column that has no JSON."""
        value = self._values.get(name)
        if isinstance(value, str | bytes):
            value = _decode(value, name)
        return clean_value(value, levels)

    def object(self, name: str, levels: int = MAX_JSON_DEPTH) -> dict[str, Any]:
        """Return a JSON object, an empty one for none; raise invalid_request for any other JSON."""
        value = self.json(name, levels)
        if isinstance(value, str):
            # Some versions encoded it twice.
            value = clean_value(_decode(value, name), levels) if value else None
        if value is not None and not isinstance(value, dict):
            raise invalid(f"cannot read {name}: it is no JSON object", param=name)
        return value or {}

    def optional(self, name: str, changes: list[str]) -> dict[str, Any]:
        """Return a JSON object that the record can do without: an unreadable one is noted and left out."""
        try:
            return self.object(name)
        except GatewayError as error:
            changes.append(error.message)
            return {}


def plain_text(value: Any) -> str:
    """Return a value as text, "" for none."""
    if value is None:
        return ""
    return storable(value if isinstance(value, str) else str(value))


def read_moment(value: Any, default: int = 0) -> int:
    """Return a time in epoch seconds, from a number or its text, in seconds or a smaller unit."""
    try:
        number = int(float(value)) if not isinstance(value, bool | int) else int(value)
    except (TypeError, ValueError, OverflowError):
        return default
    for least, unit in ((NANOSECONDS, 10**9), (MICROSECONDS, 10**6), (MILLISECONDS, 10**3)):
        if number >= least:
            number //= unit
            break
    return number if 0 < number <= MAX_SECONDS else default


def clean_value(value: Any, levels: int = MAX_JSON_DEPTH) -> Any:
    """Return a JSON value that can be stored; what cannot becomes text."""
    return storable_value(value, _odd_text, levels)


def try_read(read: Callable[[], Any], changes: list[str], otherwise: Any) -> Any:
    """Return a part of a record that it can do without: an unusable one is noted."""
    try:
        return read()
    except GatewayError as error:
        changes.append(error.message)
        return otherwise


def _odd_text(value: Any) -> str:
    try:
        return storable(str(value))[:MAX_ODD_CHARACTERS]
    except (ValueError, RecursionError):
        return ""


def _decode(text: str | bytes, name: str) -> Any:
    if not text:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        # Takes what Python's encoder writes: NaN, long integers, control characters.
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        raise invalid(f"cannot read {name}: it is no JSON", param=name) from None
