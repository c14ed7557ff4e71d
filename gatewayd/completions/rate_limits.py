"""Headers of providers that callers get: rate limits, hints for retries and the provider's request id; pure.

OpenAI and Anthropic name the same limits differently, and tell the time at which a limit is full again as a
duration (`6m0s`) or as a date (RFC 3339). Each caller gets the family of its own dialect.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

MAX_PASSED_HEADERS: Final = 40
"""Maximum number of headers of one answer that are passed on."""

MAX_VALUE_CHARACTERS: Final = 200
"""Maximum number of characters of such a header; a longer one is left out."""

MAX_RESET_SECONDS: Final = 366 * 86_400
"""Maximum time until a limit is full again; a longer one is left out."""

PROVIDER_REQUEST_ID: Final = "x-provider-request-id"
OPENAI_LIMITS: Final = "x-ratelimit-"
ANTHROPIC_LIMITS: Final = "anthropic-ratelimit-"
RETRY_HINTS: Final = frozenset({"retry-after", "retry-after-ms", "x-should-retry"})
"""Headers that only an error has."""

_PASSED_LIMITS: Final = (OPENAI_LIMITS.encode(), ANTHROPIC_LIMITS.encode())
_PASSED_NAMES: Final = {
    b"retry-after-ms": "retry-after-ms",
    b"x-should-retry": "x-should-retry",
    b"x-request-id": PROVIDER_REQUEST_ID,
    b"request-id": PROVIDER_REQUEST_ID,
    b"apim-request-id": PROVIDER_REQUEST_ID,
}
_FIRST_LETTERS: Final = frozenset({b"a", b"A", b"r", b"R", b"x", b"X"})
_OPENAI: Final = re.compile(
    rf"{OPENAI_LIMITS}(limit|remaining|reset)-((?:(?:input|output)-)?tokens|requests)"
)
_ANTHROPIC: Final = re.compile(
    rf"{ANTHROPIC_LIMITS}((?:(?:input|output)-)?tokens|requests)-(limit|remaining|reset)"
)
_DURATION: Final = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|s|m|h|d)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def passed_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers of an answer that callers get, with names in lower case.

    The request id of the provider is `x-provider-request-id`; of `Retry-After`, see `GatewayError`.
    """
    found: dict[str, str] = {}
    for name, value in raw:
        if name[:1] not in _FIRST_LETTERS:
            continue
        told = _told_name(name)
        if told is not None and len(found) < MAX_PASSED_HEADERS:
            text = value.decode("latin-1").strip()
            if text.isascii() and text.isprintable() and 0 < len(text) <= MAX_VALUE_CHARACTERS:
                found.setdefault(told, text)
    return found


@lru_cache(maxsize=256)
def _told_name(name: bytes) -> str | None:
    """Return the name under which callers get a header, None if they do not."""
    name = name.lower()
    return name.decode("latin-1") if name.startswith(_PASSED_LIMITS) else _PASSED_NAMES.get(name)


def openai_headers(headers: Mapping[str, str], now: int) -> dict[str, str]:
    """Return the headers of a provider for a caller of the OpenAI dialect; `now` is in epoch seconds."""
    told = {name: value for name, value in headers.items() if not name.startswith(ANTHROPIC_LIMITS)}
    if len(told) == len(headers):
        return told
    for name, value in headers.items():
        known = _ANTHROPIC.fullmatch(name)
        if known is None:
            continue
        reset = format_duration(_seconds_until(value, now)) if known[2] == "reset" else value
        if reset is not None:
            told.setdefault(f"{OPENAI_LIMITS}{known[2]}-{known[1]}", reset)
    return told


def anthropic_headers(headers: Mapping[str, str], now: int) -> dict[str, str]:
    """Return the headers of a provider for a caller of the Anthropic dialect; `now` is in epoch seconds."""
    told = {name: value for name, value in headers.items() if not name.startswith(OPENAI_LIMITS)}
    if len(told) == len(headers):
        return told
    for name, value in headers.items():
        known = _OPENAI.fullmatch(name)
        if known is None:
            continue
        reset = _format_date(parse_duration(value), now) if known[1] == "reset" else value
        if reset is not None:
            told.setdefault(f"{ANTHROPIC_LIMITS}{known[2]}-{known[1]}", reset)
    return told


def merge_stricter(headers: dict[str, str], ours: Mapping[str, str]) -> None:
    """Add the headers of the gateway's own limits, with OpenAI's names, to those of a provider.

    Of requests and of tokens, callers get the limit of which less is left. Other headers are added.
    """
    for name, value in ours.items():
        if not name.startswith(OPENAI_LIMITS):
            headers[name] = value
    for quantity in ("requests", "tokens"):
        left = ours.get(f"{OPENAI_LIMITS}remaining-{quantity}")
        if left is None:
            continue
        theirs = headers.get(f"{OPENAI_LIMITS}remaining-{quantity}") or headers.get(
            f"{ANTHROPIC_LIMITS}{quantity}-remaining"
        )
        if theirs is not None and theirs.isdecimal() and int(theirs) < int(left):
            continue
        for part in ("limit", "remaining", "reset"):
            headers.pop(f"{ANTHROPIC_LIMITS}{quantity}-{part}", None)
            name = f"{OPENAI_LIMITS}{part}-{quantity}"
            headers[name] = ours[name]


def parse_duration(text: str) -> float | None:
    """Return the seconds of a duration such as `6m0s`, `12ms`, `2m59.56s` or `7`; None if it is none."""
    seconds, end = 0.0, 0
    while end < len(text):
        part = _DURATION.match(text, end)
        if part is None or (part[2] is None and (end or part.end() < len(text))):
            return None
        seconds += float(part[1]) * _UNITS[part[2] or ""]
        end = part.end()
    return seconds if text and seconds <= MAX_RESET_SECONDS else None


def format_duration(seconds: float | None) -> str | None:
    """Return a duration as OpenAI writes it: `120ms`, `7s`, `6m0s`, `1h0m0s`."""
    if seconds is None:
        return None
    if seconds < 1:
        return f"{math.ceil(max(seconds, 0) * 1000)}ms"
    hours, rest = divmod(math.ceil(seconds), 3600)
    minutes, whole = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{whole}s"
    return f"{minutes}m{whole}s" if minutes else f"{whole}s"


def _seconds_until(date: str, now: int) -> float | None:
    try:
        moment = datetime.fromisoformat(date)
    except ValueError:
        return None
    seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now
    return seconds if seconds <= MAX_RESET_SECONDS else None


def _format_date(seconds: float | None, now: int) -> str | None:
    """Return the time in so many seconds (RFC 3339, 5.6)."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(now + math.ceil(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
