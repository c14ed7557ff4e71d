"""Splits addresses of the web in time proportional to their length, whatever the address."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit  # noqa: TID251

MAX_AUTHORITY_CHARACTERS: Final = 4096
"""Characters of the host with what stands before and after it; a password of a database may be long."""

MAX_HOST_CHARACTERS: Final = 253
"""RFC 1035, section 2.3.4, without the last dot."""

_REMOVED: Final = re.compile(r"[\t\r\n]")
_AUTHORITY: Final = re.compile(r"[^/?#]*//([^/?#]*)")


def split_url(url: str) -> SplitResult:
    """Return the parts of an address; raises ValueError when its host has over 253 characters.

    So is one with tabs or line breaks, which `urlsplit` takes out. `urlsplit` normalises the host (NFKC), and
    what connects to it encodes it (RFC 3492): both take the square of its length.
    """
    found = _AUTHORITY.match(url)
    if _REMOVED.search(url) is not None:
        raise ValueError("tabs or line breaks in it")
    if found is not None and found.end() - found.start(1) > MAX_AUTHORITY_CHARACTERS:
        raise ValueError("longer than an authority may be")
    parts = urlsplit(url)
    if len(parts.hostname or "") > MAX_HOST_CHARACTERS:
        raise ValueError("longer than a host name may be")
    return parts
