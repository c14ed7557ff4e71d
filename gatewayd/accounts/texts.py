"""Checks and normal forms of entered texts: e-mail addresses, names, pictures, free JSON objects."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.pictures.addresses import MAX_PICTURE_CHARACTERS, is_picture
from gatewayd.text import casefold_nfkc

MAX_EMAIL: Final = 254
MAX_LOCAL_BYTES: Final = 64
MAX_LABEL_BYTES: Final = 63
MAX_SENT_EMAIL: Final = 1024
"""Maximum characters of an address before normalisation, which can shorten it."""

MAX_NAME: Final = 255
MAX_OBJECT: Final = 262_144

_NOT_PLAIN: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters and surrogates (the general categories Cc and Cs)."""

# Line and paragraph separators, and characters that embed, override or isolate a direction (UAX 9, 2).
_FORGING: Final = re.compile("[\u2028\u2029\u202a-\u202e\u2066-\u2069]")

# White space and invisible characters: control and format characters, Default_Ignorable_Code_Point (UAX 44),
# private use, and the blank pattern of Braille.
_INVISIBLE: Final = re.compile(
    r"[\s\x00-\x20\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    r"\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0"
    r"\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_LOCAL: Final = re.compile(r"[\w.!#$%&'*+/=?^`{|}~\x80-\U0010ffff-]+")
"""`atext` and dots, with the additions of RFC 6531; dots may be anywhere, as in existing addresses."""

_LABEL: Final = re.compile(r"(?!-)[^\x00-,./:-@\[-`{-\x7f\u3002]+(?<!-)")

_ESCAPED_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def is_plain(value: str) -> bool:
    """Tell whether a text has neither control characters nor unpaired surrogates."""
    return _NOT_PLAIN.search(value) is None


def email_key(value: str) -> str:
    """Return the lookup key of an address: NFKC, case-folded, stripped; "" if no account can have it.

    It accepts addresses of earlier releases that `normalise_email` refuses.
    """
    key = casefold_nfkc(value).strip() if len(value) <= MAX_SENT_EMAIL else ""
    return key if "@" in key and len(key) <= MAX_EMAIL and is_plain(key) else ""


def normalise_email(value: str) -> str:
    """Return the stored form of an address: NFKC, case-folded, stripped.

    Raises invalid_request (param `email`) unless it is a local part and a domain of at most 254 characters
    together (RFC 5321, 4.1.2 and 4.5.3.1), with the visible characters that RFC 6531 adds, without quoted
    local parts and address literals.
    """
    address = email_key(value)
    local, _, domain = address.partition("@")
    is_visible = _INVISIBLE.search(address) is None
    if not (is_visible and _is_local_part(local) and _is_domain(domain)):
        raise invalid("cannot accept email: it is not a valid e-mail address", param="email")
    return address


def _is_local_part(local: str) -> bool:
    return len(local.encode()) <= MAX_LOCAL_BYTES and _LOCAL.fullmatch(local) is not None


def _is_domain(domain: str) -> bool:
    return all(_is_label(label) for label in domain.split("."))


def _is_label(label: str) -> bool:
    if _LABEL.fullmatch(label) is None:
        return False
    # A label that is not ASCII is sent as Punycode after "xn--" (RFC 3492).
    length = len(label) if label.isascii() else len(label.encode("punycode")) + len("xn--")
    return length <= MAX_LABEL_BYTES


def clean(value: str, name: str, *, longest: int = MAX_NAME, empty: bool = False) -> str:
    """Return a stripped line of text; raise invalid_request if empty, too long or with control codes."""
    text = value.strip()
    if not text and not empty:
        raise invalid(f"cannot accept {name}: it is empty", param=name)
    if len(text) > longest:
        raise invalid(f"cannot accept {name}: it is longer than {longest} characters", param=name)
    if not is_plain(text):
        raise invalid(f"cannot accept {name}: it has control characters", param=name)
    return text


def clean_person(value: str) -> str:
    """Return a stripped name; raise invalid_request for characters that change the text direction."""
    text = clean(value, "name")
    if _FORGING.search(text) is not None:
        raise invalid("cannot accept name: it has characters that change the direction of text", param="name")
    return text


def strip_direction_marks(name: str) -> str:
    """Return a name from a provider in a form that `clean_person` accepts."""
    return _FORGING.sub("", name)


def clean_long(value: str, name: str, *, longest: int) -> str:
    """Return a stripped text of one or several lines; raise invalid_request naming the field."""
    clean("".join(value.split("\n")).replace("\r", "").replace("\t", ""), name, longest=longest, empty=True)
    return value.strip()


def clean_picture(value: str) -> str:
    """Return the address of a profile picture; raise invalid_request if `is_picture` refuses it."""
    text = clean(value, "profile_image_url", longest=MAX_PICTURE_CHARACTERS, empty=True)
    if not is_picture(text):
        raise invalid(
            "cannot accept profile_image_url: expected a path, an http(s) address or a data address "
            "of a PNG, JPEG, GIF or WebP picture in Base64",
            param="profile_image_url",
        )
    return text


def object_or_empty(value: object) -> Mapping[str, Any]:
    """Return a stored JSON object, or an empty one in place of any other stored value."""
    return value if isinstance(value, Mapping) else {}


def clean_object(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a copy of a JSON object; raise too_large over 256 KiB, invalid_request if it is not JSON."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        raise invalid(f"cannot accept {name}: it is not JSON", param=name) from None
    if len(text) > MAX_OBJECT:
        raise GatewayError(
            ErrorKind.TOO_LARGE, f"cannot accept {name}: it is over {MAX_OBJECT} bytes", param=name
        )
    if _ESCAPED_NUL.search(text):
        raise invalid(f"cannot accept {name}: it has a NUL character", param=name)
    return dict(value)
