"""Headers that an administrator adds to the requests to a provider."""

import re
from collections.abc import Sequence
from typing import Final

MAX_HEADERS: Final = 32
MAX_SHOWN_CHARACTERS: Final = 80
MAX_HEADER_CHARACTERS: Final = 4096
"""Maximum number of characters of the value of a header."""

FRAMING_HEADERS: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "content-type", "expect", "host", "keep-alive"}
    | {"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers of the connection and the body, which the gateway writes itself."""

KEY_HEADERS: Final = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key"})
"""Headers that carry a key, refused beside the setting `key`."""

_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def find_header_problem(headers: Sequence[tuple[str, str]], *, has_key: bool) -> str | None:
    """Return why a request cannot have these headers, None if it can."""
    if len(headers) > MAX_HEADERS:
        return f"there are over {MAX_HEADERS}"
    seen = set()
    for name, value in headers:
        lower = name.lower()
        if _NAME.fullmatch(name) is None:
            return f"{name[:MAX_SHOWN_CHARACTERS]!r} is no name of a header"
        if lower in FRAMING_HEADERS:
            return f"{name} cannot be set, the gateway writes it"
        if lower in seen:
            return f"{name} is there twice"
        if has_key and lower in KEY_HEADERS:
            return f"{name} cannot be set beside a key"
        if len(value) > MAX_HEADER_CHARACTERS or _VALUE.fullmatch(value) is None:
            return f"{name} has no value of 1 to {MAX_HEADER_CHARACTERS} visible ASCII characters"
        seen.add(lower)
    return None


def is_token(text: str) -> bool:
    """Return whether a text can be a key: visible ASCII characters."""
    return bool(text) and all("!" <= char <= "~" for char in text)
