"""URL parsing in time proportional to the length of any URL."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit  # noqa: TID251

MAX_AUTHORITY_CHARACTERS: Final = 4096
"""Maximum number of characters of user, password, host and port; the password of a database may be long."""

MAX_HOST_CHARACTERS: Final = 253
"""Maximum length of a host name without the last dot (RFC 1035, 2.3.4)."""

_REMOVED: Final = re.compile(r"[\t\r\n]")
_AUTHORITY: Final = re.compile(r"[^/?#]*//([^/?#]*)")


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL; raises ValueError if its host has over 253 characters.

    It also raises for tabs and line breaks, which `urlsplit` would remove. `urlsplit` normalises the host
    (NFKC) and clients encode it (RFC 3492): both take time quadratic in its length.
    """
    found = _AUTHORITY.match(url)
    if _REMOVED.search(url) is not None:
        raise ValueError("it contains tabs or line breaks")
    if found is not None and found.end() - found.start(1) > MAX_AUTHORITY_CHARACTERS:
        raise ValueError(f"its authority has more than {MAX_AUTHORITY_CHARACTERS} characters")
    parts = urlsplit(url)
    if len(parts.hostname or "") > MAX_HOST_CHARACTERS:
        raise ValueError(f"its host has more than {MAX_HOST_CHARACTERS} characters")
    return parts
