"""Icons of plugins."""

import re
from typing import Final

from gatewayd.pictures.addresses import MAX_PICTURE_CHARACTERS, has_picture

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_ICON: Final = re.compile(r"https?://|data:image/svg\+xml[;,]", re.IGNORECASE)

# Browsers remove these before they read the scheme (WHATWG URL, 4.4).
_IGNORED: Final = re.compile(r"\A[\x00-\x20]+|[\t\r\n]")


def shown_icon(address: str) -> str:
    """Return the icon of a plugin, "" if it is an address that is no picture.

    Authors of plugins usually give SVG inside an address. Clients show it as an image, which runs nothing.
    """
    read = _IGNORED.sub("", address)
    if len(read) > MAX_PICTURE_CHARACTERS:
        return ""
    is_address = _SCHEME.match(read) is not None
    return read if not is_address or _ICON.match(read) is not None or has_picture(read) else ""
