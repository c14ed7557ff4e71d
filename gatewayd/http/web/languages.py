"""The language of a reply: that of the cookie, else the best of Accept-Language."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from gatewayd.http.responses.content_codings import weighted

DEFAULT: Final = "en"
RIGHT_TO_LEFT: Final = frozenset({"ar", "fa", "he", "ur"})
COOKIE: Final = "language"


@lru_cache(maxsize=256)
def choose_language(chosen: str, accepted: str, known: Sequence[str]) -> str:
    """Return one of the known languages.

    `chosen` is the value of the cookie, `accepted` that of Accept-Language (RFC 9110, 12.5.4). A range such
    as `de-AT` stands for `de`.
    """
    if chosen in known:
        return chosen
    ranges = [weighted(part) for part in accepted.lower().split(",")]
    for name, weight in sorted(ranges, key=lambda one: -one[1]):
        language = name.partition("-")[0]
        if weight > 0 and language in known:
            return language
    return DEFAULT


def direction_of(language: str) -> str:
    """Return the writing direction of a language."""
    return "rtl" if language in RIGHT_TO_LEFT else "ltr"
