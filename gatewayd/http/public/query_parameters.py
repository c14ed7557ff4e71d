"""Parsers of query parameters for lists."""

from collections.abc import Mapping
from typing import Final

from gatewayd.errors import GatewayError, invalid

MAX_PAGE_NUMBER: Final = 1_000_000
TRUE: Final = frozenset({"true", "1", "yes", "on", "t", "y"})
FALSE: Final = frozenset({"false", "0", "no", "off", "f", "n"})

PAGE_QUERY: Final = {"page": "Number of the page, from 1."}
TEXT_QUERY: Final = {"query": "Text to search."}


def parse_flag(query: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return a boolean; raises 422 for another value."""
    value = query.get(name)
    if value is None:
        return default
    if value.lower() in TRUE:
        return True
    if value.lower() in FALSE:
        return False
    raise invalid_parameter(name, "expected true or false")


def parse_number(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`; raises 422 for another value."""
    value = query.get(name)
    if value is None:
        return default
    if value.isascii() and value.isdigit() and len(value) < 10 and least <= int(value) <= most:
        return int(value)
    raise invalid_parameter(name, f"expected a number from {least} to {most}")


def parse_page(query: Mapping[str, str], size: int) -> tuple[int, int]:
    """Return offset and limit of the query parameter `page` (from 1)."""
    return (parse_number(query, "page", 1, 1, MAX_PAGE_NUMBER) - 1) * size, size


def invalid_parameter(name: str, reason: str) -> GatewayError:
    """Return the error of an invalid parameter (422)."""
    return invalid(f"cannot accept {name}: {reason}", param=name, code="validation")
