"""Headers that an administrator adds to the requests to a provider."""

import re
from collections.abc import Sequence
from typing import Final

from gatewayd.errors import invalid, shorten

MAX_HEADERS: Final = 32
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


def check_headers(provider: str, headers: Sequence[tuple[str, str]], *, has_key: bool) -> None:
    """Raise invalid_request, which names `headers`, for headers that a request cannot have."""
    refusal = f"cannot use headers of provider {provider!r}"
    if len(headers) > MAX_HEADERS:
        raise invalid(f"{refusal}: there are over {MAX_HEADERS}", param="headers")
    seen = set()
    for name, value in headers:
        lower = name.lower()
        if _NAME.fullmatch(name) is None:
            raise invalid(f"{refusal}: {shorten(name)!r} is no name of a header", param="headers")
        if lower in FRAMING_HEADERS or lower in seen:
            reason = "the gateway writes it" if lower in FRAMING_HEADERS else "it is there twice"
            raise invalid(f"{refusal}: {name} cannot be set, {reason}", param="headers")
        if has_key and lower in KEY_HEADERS:
            raise invalid(f"{refusal}: {name} cannot be set beside a key", param="headers")
        if len(value) > MAX_HEADER_CHARACTERS or _VALUE.fullmatch(value) is None:
            raise invalid(
                f"{refusal}: {name} has no value of 1 to {MAX_HEADER_CHARACTERS} visible ASCII characters",
                param="headers",
            )
        seen.add(lower)


def is_token(text: str) -> bool:
    """Return whether a text can be a key: visible ASCII characters."""
    return bool(text) and all("!" <= char <= "~" for char in text)
