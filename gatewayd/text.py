"""Received texts: limits of JSON, sanitising for storage, normal forms (UAX 15), and headers of HTTP.

Each function takes time linear in the length of any text.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, Final

MAX_JSON_DEPTH: Final = 64
"""Maximum nesting of lists and objects in requests and events (RFC 8259, 9).

The other limits are higher because each applies to values that contain values of the one before.
"""

MAX_STORED_DEPTH: Final = 100
"""Maximum nesting of a stored value: a member of a list of a message, which events and plugins build."""

MAX_CHAT_DEPTH: Final = 120
"""Maximum nesting of a whole chat in a request: that of stored values, and of the chat around them."""

MAX_ANSWER_DEPTH: Final = 200
"""Maximum nesting of JSON from a source; the encoder of answers allows 254 levels."""

MIN_INTEGER: Final = -(2**63)
MAX_INTEGER: Final = 2**64 - 1
"""The range of integers in JSON that is decoded and encoded."""

MAX_NON_STARTERS: Final = 30
"""Maximum number of combining characters in a row in the Stream-Safe Text Format (UAX 15, section 13)."""

MAX_PATH_CHARACTERS: Final = 4096
"""Maximum length of a path that is normalised as it is; a row of so many combining characters takes
milliseconds."""

_JOINER: Final = "\u034f"
"""COMBINING GRAPHEME JOINER: reordering and composition do not cross it."""

# Characters whose decomposition begins with a combining class other than 0, in Unicode 18.
_NON_STARTERS: Final = (
    "\u0300-\u034e\u0350-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7-\u05c9"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711"
    "\u0730-\u074a\u07eb-\u07f3\u07fd\u0816-\u0819\u081b-\u0823\u0825-\u0827\u0829-\u082d\u0859-\u085b"
    "\u0897-\u089f\u08ca-\u08e1\u08e3-\u08ff\u093c\u094d\u0951-\u0954\u09bc\u09cd\u09fe\u0a3c\u0a4d\u0abc"
    "\u0acd\u0b3c\u0b4d\u0bcd\u0c3c\u0c4d\u0c55\u0c56\u0cbc\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u0e38-\u0e3a"
    "\u0e48-\u0e4b\u0eb8-\u0eba\u0ec8-\u0ecb\u0f18\u0f19\u0f35\u0f37\u0f39\u0f71-\u0f75\u0f7a-\u0f7d"
    "\u0f80-\u0f84\u0f86\u0f87\u0fc6\u1037\u1039\u103a\u108d\u135d-\u135f\u1714\u1715\u1734\u17d2\u17dd"
    "\u18a9\u1939-\u193b\u1a17\u1a18\u1a60\u1a75-\u1a7c\u1a7f\u1ab0-\u1abd\u1abf-\u1af0\u1b34\u1b44"
    "\u1b6b-\u1b73\u1baa\u1bab\u1be6\u1bf2\u1bf3\u1c37\u1cd0-\u1cd2\u1cd4-\u1ce0\u1ce2-\u1ce8\u1ced\u1cf4"
    "\u1cf8\u1cf9\u1dc0-\u1dff\u20d0-\u20dc\u20e1\u20e5-\u20f0\u2cef-\u2cf1\u2d7f\u2de0-\u2dff"
    "\u302a-\u302f\u3099\u309a\ua66f\ua674-\ua67d\ua69e\ua69f\ua6f0\ua6f1\ua806\ua82c\ua8c4\ua8e0-\ua8f1"
    "\ua92b-\ua92d\ua953\ua9b3\ua9c0\uaab0\uaab2-\uaab4\uaab7\uaab8\uaabe\uaabf\uaac1\uaaf6\uabed\ufb1e"
    "\ufe20-\ufe2f\uff9e\uff9f\U000101fd\U000102e0\U00010376-\U0001037a\U00010a0d\U00010a0f"
    "\U00010a38-\U00010a3a\U00010a3f\U00010ae5\U00010ae6\U00010d24-\U00010d27\U00010d69-\U00010d6d"
    "\U00010eab\U00010eac\U00010ecb-\U00010ecf\U00010ef0-\U00010efb\U00010efd-\U00010eff"
    "\U00010f46-\U00010f50\U00010f82-\U00010f85\U00011046\U00011070\U0001107f\U000110b9\U000110ba"
    "\U00011100-\U00011102\U00011133\U00011134\U00011173\U000111c0\U000111ca\U00011235\U00011236"
    "\U000112e9\U000112ea\U0001133b\U0001133c\U0001134d\U00011366-\U0001136c\U00011370-\U00011374"
    "\U000113ce-\U000113d0\U00011442\U00011446\U0001145e\U000114c2\U000114c3\U000115bf\U000115c0"
    "\U0001163f\U000116b6\U000116b7\U0001172b\U00011839\U0001183a\U0001193d\U0001193e\U00011943\U000119e0"
    "\U00011a34\U00011a47\U00011a99\U00011c3f\U00011d42\U00011d44\U00011d45\U00011d97\U00011f41\U00011f42"
    "\U0001612f\U00016af0-\U00016af4\U00016b30-\U00016b36\U00016ff0\U00016ff1\U0001bc9e\U0001d127"
    "\U0001d128\U0001d165-\U0001d169\U0001d16d-\U0001d172\U0001d17b-\U0001d182\U0001d185-\U0001d18b"
    "\U0001d1aa-\U0001d1ad\U0001d242-\U0001d244\U0001d250-\U0001d252\U0001d25b\U0001d25c\U0001d25f"
    "\U0001d280\U0001d281\U0001e000-\U0001e006\U0001e008-\U0001e018\U0001e01b-\U0001e021\U0001e023"
    "\U0001e024\U0001e026-\U0001e02a\U0001e08f\U0001e130-\U0001e136\U0001e2ae\U0001e2ec-\U0001e2ef"
    "\U0001e4ec-\U0001e4ef\U0001e5ee\U0001e5ef\U0001e6e3\U0001e6e6\U0001e6ee\U0001e6ef\U0001e6f5"
    "\U0001e8d0-\U0001e8d6\U0001e944-\U0001e94a"
)
_SAMPLES: Final = ((31, re.compile(f"[{_NON_STARTERS}]")), (4, re.compile(f"[{_NON_STARTERS}]{{7}}")))
"""Steps and patterns that find a row of 31 non-starters in a sample of the text: every 31st character
contains one of them, every 4th contains 7 in a row."""

_FULL_ROW: Final = re.compile(f"[{_NON_STARTERS}]{{{MAX_NON_STARTERS}}}(?=[{_NON_STARTERS}])")

_PRESENTATION_FORMS: Final = re.compile("[\ufb00-\ufdff\ufe70-\ufefc]")


# Databases cannot store NUL characters and lone surrogates.
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")

MAX_HEADERS: Final = 32
MAX_SHOWN_NAME_CHARACTERS: Final = 80
MAX_HEADER_CHARACTERS: Final = 4096
"""Maximum number of characters of the value of a header."""

FRAMING_HEADERS: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "content-type", "expect", "host", "keep-alive"}
    | {"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers of the connection and the body, which the gateway writes itself."""

KEY_HEADERS: Final = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key"})
"""Headers that carry a key, refused beside the setting `key`."""

_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_HEADER_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def storage_fault(text: str) -> str | None:
    """Return why a text cannot be stored, as "it ...", or None: a NUL character or a lone surrogate."""
    if "\x00" in text:
        return "it contains a NUL character"
    return None if text.isascii() or _UNSTORABLE.search(text) is None else "it contains a lone surrogate"


def is_storable(text: str) -> bool:
    """Return whether a text has neither NUL characters nor lone surrogates."""
    return storage_fault(text) is None


def encodable(text: str) -> str:
    """Return a text that UTF-8 can encode, for texts that are not stored: lone surrogates become "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def well_formed(text: str) -> str:
    """Return a text for storage: lone surrogates become U+FFFD, surrogate pairs become their character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def storable(text: str) -> str:
    """Return a text that databases can store: NUL characters and lone surrogates become U+FFFD."""
    return well_formed(text.replace("\x00", "\ufffd"))


def storable_value(value: Any, otherwise: Callable[[Any], Any], levels: int) -> Any:
    """Return a JSON value with `storable` texts, and null for floats that are not finite.

    `otherwise` converts everything else: values that are no JSON, integers of more than 64 bits, names that
    are no text, and lists and objects nested deeper than `levels`.
    """
    match value:
        case None | bool():
            return value
        case str():
            return storable(value)
        case float():
            return value if math.isfinite(value) else None
        case int() if MIN_INTEGER <= value <= MAX_INTEGER:
            return value
        case dict() if levels:
            return {
                storable(name) if isinstance(name, str) else otherwise(name): storable_value(
                    member, otherwise, levels - 1
                )
                for name, member in value.items()
            }
        case list() | tuple() if levels:
            return [storable_value(member, otherwise, levels - 1) for member in value]
        case _:
            return otherwise(value)


def stream_safe(text: str) -> str:
    """Return a text with a joiner after every 30 combining characters in a row; ordinary text is unchanged.

    Normalisation of an unbroken row takes time quadratic in its length.
    """
    if text.isascii():
        return text
    for step, found in _SAMPLES:
        # A sample of the characters is enough for most texts.
        if found.search(text[step - 1 :: step]) is None:
            return text
    return _FULL_ROW.sub(lambda row: row[0] + _JOINER, text)


def is_continuation(text: str) -> bool:
    """Return whether the first character of a text may compose with the text before it: a mark or a jamo."""
    first = text[:1]
    if first.isascii():
        return False
    return "\u1160" <= first <= "\u11ff" or unicodedata.category(first).startswith("M")


def compose_nfc(text: str) -> str:
    """Return a name or path in NFC; one over 4096 characters is made stream-safe first."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text if len(text) <= MAX_PATH_CHARACTERS else stream_safe(text))  # noqa: TID251


def casefold_nfc(text: str) -> str:
    """Return the key for comparison without case and composition (NFC, case-folded)."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFC", stream_safe(text)).casefold()  # noqa: TID251
    # Case folding can undo the composition.
    return unicodedata.normalize("NFC", plain)  # noqa: TID251


def casefold_nfkc(text: str) -> str:
    """Return the key for comparison without case, composition and width (NFKC, case-folded)."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", stream_safe(text)).casefold()  # noqa: TID251
    return unicodedata.normalize("NFKC", plain)  # noqa: TID251


def replace_presentation_forms(text: str) -> str:
    """Return a text with letters instead of their presentation forms: ligatures, and positional forms of
    Hebrew and Arabic letters. No other character changes."""
    return text if text.isascii() else _PRESENTATION_FORMS.sub(_letters, text)


def _letters(form: re.Match[str]) -> str:
    # NFKC puts a blank before a mark that stands alone.
    return unicodedata.normalize("NFKC", form[0]).lstrip(" ")  # noqa: TID251


def find_header_problem(headers: Sequence[tuple[str, str]], *, has_key: bool) -> str | None:
    """Return why a request cannot have these headers, None if it can."""
    if len(headers) > MAX_HEADERS:
        return f"there are over {MAX_HEADERS}"
    seen = set()
    for name, value in headers:
        lower = name.lower()
        if _HEADER_NAME.fullmatch(name) is None:
            return f"{name[:MAX_SHOWN_NAME_CHARACTERS]!r} is no name of a header"
        if lower in FRAMING_HEADERS:
            return f"{name} cannot be set, the gateway writes it"
        if lower in seen:
            return f"{name} is there twice"
        if has_key and lower in KEY_HEADERS:
            return f"{name} cannot be set beside a key"
        if len(value) > MAX_HEADER_CHARACTERS or _HEADER_VALUE.fullmatch(value) is None:
            return f"{name} has no value of 1 to {MAX_HEADER_CHARACTERS} visible ASCII characters"
        seen.add(lower)
    return None


def is_token(text: str) -> bool:
    """Return whether a text can be a key: visible ASCII characters."""
    return bool(text) and all("!" <= char <= "~" for char in text)


JsonText = bytes | bytearray
"""A JSON text, or a part of one, in UTF-8."""

_REST_OF_STRING: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_JSON_CHARACTERS: Final = re.compile(
    rb'(?:[^"\\]++|\\(?:[^u]|u(?![dD][89abAB])[^"\\]{4}|u[dD][89abAB][^"\\]{2}\\u[^"\\]{4}))++',
    re.DOTALL,
)
"""Characters of a string; the end cuts no escape and no surrogate pair (RFC 8259, 7)."""
_ESCAPES_BYTES: Final = 64
"""Number of bytes before a cut that are looked at: an escaped surrogate pair has twelve."""
_JSON_QUOTE, _JSON_BACKSLASH = b'"\\'


def is_escaped(data: JsonText, start: int, place: int) -> bool:
    """Return whether the character at `place` is escaped; that at `start`, of the same string, is not."""
    if place == start or data[place - 1] != _JSON_BACKSLASH:
        return False
    text = data[start:place]
    return (len(text) - len(text.rstrip(b"\\"))) % 2 == 1


def escaped_end(data: JsonText, start: int, until: int, quote: int) -> tuple[int, int]:
    """Return where a string is to be read on, and the place of the quote at its end, -1 without one.

    `start` is no escaped character of the string; `quote` is the first quote before `until`, which is
    escaped, or -1 when the character at `until` is.
    """
    if quote < 0:
        return until - 1, -1
    found = _REST_OF_STRING.match(data, start, until)
    stop = until if found is None else found.end()
    return stop, stop if stop < until and data[stop] == _JSON_QUOTE else -1


def piece_end(data: JsonText, start: int, end: int, most: int) -> int:
    """Return the end of the first piece of a string, in which no escape and no surrogate pair is cut.

    A piece has at most so many bytes, and a quarter of them with an escape, which takes ten times as long to
    decode as a character.
    """
    cut = min(start + most, end)
    if data.find(b"\\", start, cut) >= 0:
        cut = min(start + most // 4, end)
    escape = data.find(b"\\", max(cut - _ESCAPES_BYTES, start), cut)
    if cut == end or escape < 0:
        return cut
    escape += is_escaped(data, start, escape)
    found = _JSON_CHARACTERS.match(data, escape, cut)
    whole = escape if found is None else found.end()
    # What is no escape is refused when the piece is decoded.
    return whole if whole > start else cut


def without_strings(data: JsonText) -> bytes:
    """Return a text of whole strings and what is between them, without the strings."""
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(plain.split(b'"')[::2])


def character_bytes(text: str) -> int:
    """Return the maximum number of bytes in memory of each character of a text."""
    if text.isascii():
        return 1
    return 2 if len(text.encode("utf-16-le")) == 2 * len(text) else 4
