"""Typed readers of request fields, whose errors name the field, and the parts that had to be left out."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError, invalid

MAX_NAMED_PARTS: Final = 20
"""Maximum number of parts that the warning about what was left out names."""


class LeftOutParts:
    """Parts of a request that the chat format cannot express."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._has_more = False

    def add(self, name: str) -> None:
        """Record a field or a kind of item."""
        if len(self._names) < MAX_NAMED_PARTS or name in self._names:
            self._names[name] = None
        else:
            self._has_more = True

    def sentences(self) -> list[str]:
        """Return a warning for the caller; an empty list if nothing was left out."""
        if not self._names:
            return []
        names = ", ".join(self._names) + (" and others" if self._has_more else "")
        return [f"cannot convert {names}: only a provider that speaks the Responses protocol gets it"]


def wrong(where: str, expected: str) -> GatewayError:
    """Return the error for a field with a wrong value."""
    return invalid(f"cannot accept {where}: expected {expected}", param=where)


def read_text(value: Mapping[str, Any], name: str, where: str, *, is_empty_allowed: bool = True) -> str:
    """Return a required text; `where` is the path of the object that holds it."""
    found = value.get(name)
    path = f"{where}.{name}" if where else name
    if not isinstance(found, str):
        raise wrong(path, "text")
    if not found and not is_empty_allowed:
        raise invalid(f"cannot accept {path}: it is empty", param=path)
    return found


def optional_text(value: Mapping[str, Any], name: str, where: str = "") -> str | None:
    """Return a text, or None if it is missing or null."""
    return None if value.get(name) is None else read_text(value, name, where)


def optional_object(value: Mapping[str, Any], name: str, where: str = "") -> Body:
    """Return an object; an empty one if it is missing or null."""
    found = value.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise wrong(f"{where}.{name}" if where else name, "an object")
    return found


def optional_list(value: Mapping[str, Any], name: str, where: str = "") -> list[Any]:
    """Return a list; an empty one if it is missing or null."""
    found = value.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise wrong(f"{where}.{name}" if where else name, "a list")
    return found


def optional_flag(value: Mapping[str, Any], name: str, where: str = "") -> bool | None:
    """Return a truth value, or None if it is missing or null."""
    found = value.get(name)
    if found is not None and not isinstance(found, bool):
        raise wrong(f"{where}.{name}" if where else name, "true or false")
    return found


def optional_count(value: Mapping[str, Any], name: str, least: int = 1) -> int | None:
    """Return a whole number of `least` or more, or None if it is missing or null."""
    found = value.get(name)
    if found is not None and (type(found) is not int or found < least):
        raise wrong(name, f"a whole number of {least} or more")
    return found


def optional_number(value: Mapping[str, Any], name: str) -> int | float | None:
    """Return a number, or None if it is missing or null."""
    found = value.get(name)
    if found is not None and (isinstance(found, bool) or not isinstance(found, int | float)):
        raise wrong(name, "a number")
    return found
