"""Addresses of pictures that people and models may have."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

MAX_PICTURE_CHARACTERS: Final = 262_144
"""Maximum length of an address; one with a picture inside has four characters for three bytes."""

_ADDRESS: Final = re.compile(r"https?://|/(?![/\\])|$", re.IGNORECASE)
_DATA: Final = re.compile(r"data:image/(png|jpeg|gif|webp);base64,", re.IGNORECASE)

_SIGNATURES: Final[Mapping[str, re.Pattern[bytes]]] = {
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "gif": re.compile(rb"GIF8[79]a"),
    "webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
"""How the bytes of each type begin (WHATWG MIME Sniffing, 6.1)."""


def is_picture(address: str) -> bool:
    """Tell whether a text is empty, a path, an http(s) address, or a data address of a picture.

    Only PNG, JPEG, GIF and WebP in Base64 are pictures, and only if their bytes begin as such a file does.
    """
    if len(address) > MAX_PICTURE_CHARACTERS:
        return False
    return _ADDRESS.match(address) is not None or has_picture(address)


def has_picture(address: str) -> bool:
    """Tell whether a text is a data address in Base64 of a picture of the type that it claims."""
    found = _DATA.match(address)
    if found is None:
        return False
    try:
        content = base64.b64decode(address[found.end() :], validate=True)
    except (binascii.Error, ValueError):
        return False
    return _SIGNATURES[found[1].lower()].match(content) is not None
