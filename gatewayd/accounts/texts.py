"""Normalise and check the texts that people type in: addresses, names, pictures, free objects."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from gatewayd.errors import GatewayError, Kind, invalid

MAX_EMAIL: Final = 254
MAX_NAME: Final = 255
MAX_PICTURE: Final = 262_144
MAX_OBJECT: Final = 262_144

_PICTURE: Final = re.compile(r"https?://|/(?!/)|data:image/(?:png|jpeg|gif|webp)[;,]|$", re.IGNORECASE)
_ESCAPED_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def is_plain(value: str) -> bool:
    """Tell whether a text has neither control characters nor lone surrogates."""
    return not any(unicodedata.category(character) in {"Cc", "Cs"} for character in value)


def folded(text: str) -> str:
    """Return the form that is equal for texts that differ only in case or composition."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def mended(text: str) -> str:
    """Return a text with U+FFFD for what no database keeps: NUL, and halves of surrogate pairs."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if text.isascii():
        return text
    # Both halves of a pair, one after the other, become the character that they stand for.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def normalise_email(value: str) -> str:
    """Return the form in which addresses are stored and compared: NFKC, case-folded, stripped.

    Raises invalid_request (param `email`) unless it has one `@` with something on both sides, no spaces or
    control characters, and at most 254 characters.
    """
    # Folding can undo the composed form, so it is composed once more.
    address = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).strip().casefold())
    local, at, domain = address.partition("@")
    sound = bool(local and at and domain) and "@" not in domain and len(address) <= MAX_EMAIL
    if not sound or not is_plain(address) or any(character.isspace() for character in address):
        raise invalid("cannot accept email: it is not a valid e-mail address", param="email")
    return address


def clean(value: str, name: str, *, longest: int = MAX_NAME, empty: bool = False) -> str:
    """Return a one-line text stripped; invalid_request naming the field when it is empty, too long or odd."""
    text = value.strip()
    if not text and not empty:
        raise invalid(f"cannot accept {name}: it is empty", param=name)
    if len(text) > longest:
        raise invalid(f"cannot accept {name}: it is longer than {longest} characters", param=name)
    if not is_plain(text):
        raise invalid(f"cannot accept {name}: it has control characters", param=name)
    return text


def clean_long(value: str, name: str, *, longest: int) -> str:
    """Return a text that may have several lines; invalid_request naming the field otherwise."""
    clean("".join(value.split("\n")).replace("\r", "").replace("\t", ""), name, longest=longest, empty=True)
    return value.strip()


def clean_picture(value: str) -> str:
    """Return the address of a profile picture: a path, http(s), or an embedded png, jpeg, gif or webp."""
    text = clean(value, "profile_image_url", longest=MAX_PICTURE, empty=True)
    if not _PICTURE.match(text):
        raise invalid(
            "cannot accept profile_image_url: expected a path, an http(s) address or a data:image address",
            param="profile_image_url",
        )
    return text


def as_object(value: object) -> Mapping[str, Any]:
    """Return a JSON object as it is, and an empty one in place of anything else that may be stored."""
    return value if isinstance(value, Mapping) else {}


def clean_object(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a free JSON object as a new dict; too_large over 256 KiB, invalid_request when it is odd."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        raise invalid(f"cannot accept {name}: it is not JSON", param=name) from None
    if len(text) > MAX_OBJECT:
        raise GatewayError(Kind.TOO_LARGE, f"cannot accept {name}: it is over {MAX_OBJECT} bytes", param=name)
    if _ESCAPED_NUL.search(text):
        raise invalid(f"cannot accept {name}: it has a NUL character", param=name)
    return dict(value)
