"""Detection of the encoding of texts, and decoding."""

import codecs
import re
import unicodedata
from typing import Final

import charset_normalizer

from gatewayd.extract.text_builder import DocumentError

BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Without the blank, which is also the first byte of Indic letters in UTF-16.
PRINTABLE: Final = bytes(range(0x20, 0x7F))
MAX_PRINTABLE_SHARE: Final = 0.75
WIDE_ENCODINGS: Final = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
SAMPLE_CHARACTERS: Final = 128 * 1024
SMALL_SAMPLE_CHARACTERS: Final = 4096
MAX_CONTROL_SHARE: Final = 0.02
CONTROLS: Final = re.compile("[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
REPLACEMENT: Final = "\ufffd"
# Codecs that no document uses; they can take very long.
EXCLUDED_CODECS: Final = {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"}
# Superset encodings that browsers use for these names.
ALIASES: Final = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
CHARSET: Final = re.compile(r"charset\s*=\s*\"?([a-z0-9_:.-]{1,40})", re.IGNORECASE)
BINARY: Final = "it is not text but binary data of an unknown kind"

# Letters beyond ASCII of languages in Latin script, whose encodings charset_normalizer confuses. With a wrong
# encoding the letters of a whole text never match one language.
LANGUAGE_LETTERS: Final = tuple(
    frozenset(letters + letters.upper())
    for letters in (
        "åäöéüà",
        "äöüßé",
        "éèêëàâçôûùïîœæ",
        "áéíóúñüºª",
        "ãõáâàçéêíóôúüºª",
        "àèéìòù",
        "æøåéöä",
        "áðéíóúýþæö",
        "ąćęłńóśźż",
        "áäčďéěíĺľňóôöřŕšťúůüýž",
        "áéíóöőúüű",
        "ăâîşţșț",
        "čćđšž",
        "çğıöşüâî",
        "āčēģīķļņšūž",
        "ąčęėįšųūž",
        "äöõüšž",
        "éëïèöüóá",
    )
)
LATIN_ENCODINGS: Final = (
    "cp1252",
    "cp1250",
    "iso8859-2",
    "cp1254",
    "cp1257",
    "mac_roman",
    "cp850",
    "cp852",
    "cp437",
)
HALF_WIDTH: Final = re.compile("[\uff61-\uff9f]")
MAX_HALF_WIDTH_SHARE: Final = 0.4
COMMON_SIGNS: Final = frozenset(
    "\u00a0\u00a3\u00a7\u00a9\u00ab\u00ae\u00b0\u00b7\u00bb"
    "\u2013\u2014\u2018\u2019\u201a\u201c\u201d\u201e\u2022\u2026\u20ac\u2122"
)
MIN_LATIN_SHARE: Final = 0.9
MAX_ACCENT_SHARE: Final = 0.4
# Chinese, Japanese and Korean characters, and the encodings whose repertoire is the common ones among them.
CJK_CHARACTERS: Final = re.compile("[\u3400-\u9fff\uac00-\ud7a3]+")
CJK_ENCODINGS: Final = ("gb2312", "big5hkscs", "shift_jis", "iso2022_kr")
MIN_COMMON_SHARE: Final = 0.9
# A text in another script may have only rare characters, in names.
MAX_RARE_SHARE: Final = 0.05
BLANKS: Final = " \n\u3001\u3002"
SAMPLE_COUNT: Final = 4
"""Number of samples of a text, spread over its whole length."""


def decode(data: bytes, declared: str | None = None) -> str:
    """Return the text of bytes; `declared` is the encoding that they or a header declare."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            data = data[len(mark) :]
            text = _damaged_utf8(data) if encoding == "utf-8" else None
            return text or _checked(_sensible(data.decode(encoding, "replace"), encoding))
    if b"\0" in data:
        return _checked(_decode_wide(data))
    known = _known(declared)
    for encoding in (
        "iso2022_jp" if b"\x1b$" in data else "",
        "utf-8",
        "" if known in LATIN_ENCODINGS else known,
    ):
        text = _attempt(data, encoding)
        if text is not None:
            return _checked(text)
    # Single-byte Latin encodings decode any bytes, so their declaration counts last.
    return _damaged_utf8(data) or _checked(_attempt(data, known) or _guess(data))


def charset_of(content_type: str | None) -> str | None:
    """Return the charset parameter of a media type, None without one."""
    found = CHARSET.search(content_type or "")
    return found[1] if found else None


def _attempt(data: bytes, encoding: str) -> str | None:
    if not encoding:
        return None
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _damaged_utf8(data: bytes) -> str | None:
    """Return a text in UTF-8 with some broken bytes, for example from transport; else None.

    In texts of other encodings at most one of four sequences beyond ASCII is valid UTF-8 by chance.
    """
    text = data.decode("utf-8", "replace")
    broken = text.count(REPLACEMENT) - data.count(REPLACEMENT.encode())
    beyond = len(text) - len(text.encode("ascii", "ignore")) - broken
    return _free_of_controls(text) if beyond >= broken else None


def _known(declared: str | None) -> str:
    """Return the codec of a declared encoding, "" without a usable one."""
    try:
        name = codecs.lookup((declared or "").strip("\"' ")).name
        b"a".decode(name, "replace")
    except (LookupError, ValueError):
        return ""
    # Bytes without zeros are neither UTF-16 nor UTF-32.
    if name in EXCLUDED_CODECS or name.startswith(("utf-16", "utf-32")):
        return ""
    return ALIASES.get(name, name)


def _decode_wide(data: bytes) -> str:
    """Decode UTF-16 or UTF-32 without a byte order mark.

    Half of the bytes of Latin texts in these encodings are NUL; few bytes of other texts are ASCII letters.
    """
    sample = data[:SAMPLE_CHARACTERS]
    is_narrow = len(sample.translate(None, PRINTABLE)) < len(sample) * (1 - MAX_PRINTABLE_SHARE)
    texts = [_attempt(data, encoding) for encoding in (() if is_narrow else WIDE_ENCODINGS)]
    plausible = [text for text in texts if text is not None and _makes_sense(text)]
    if not plausible:
        raise DocumentError("it holds NUL bytes, so it is not text but binary data of an unknown kind")
    # With the wrong byte order letters can become letters of another script, but blanks vanish.
    return max(plausible, key=_blanks)


def _sensible(text: str, encoding: str) -> str:
    """Return a text with a byte order mark; raise DocumentError if it is binary data with the same start."""
    if encoding in WIDE_ENCODINGS and not _makes_sense(text):
        raise DocumentError(BINARY)
    return text


def _makes_sense(text: str) -> bool:
    return all(map(_is_plausible, _samples(text)))


def _blanks(text: str) -> int:
    return sum(map(text[:SAMPLE_CHARACTERS].count, BLANKS))


def _samples(text: str) -> list[str]:
    """Return samples over the whole text: binary data may start like a text."""
    step = max(len(text) // SAMPLE_COUNT, SMALL_SAMPLE_CHARACTERS)
    return [text[at : at + SMALL_SAMPLE_CHARACTERS] for at in range(0, len(text), step)]


def _is_plausible(sample: str) -> bool:
    """Tell whether nearly all characters are assigned and common.

    A wrong byte order or binary data yields unassigned characters or rare CJK characters.
    """
    unassigned = sum(
        unicodedata.category(character) in {"Cc", "Cn", "Co"}
        for character in sample
        if character not in "\t\n\r\f"
    )
    cjk = "".join(CJK_CHARACTERS.findall(sample))
    common = max(len(cjk.encode(encoding, "ignore").decode(encoding)) for encoding in CJK_ENCODINGS)
    rare = len(cjk) - common
    is_in_use = common >= len(cjk) * MIN_COMMON_SHARE or rare <= len(sample) * MAX_RARE_SHARE
    return unassigned <= len(sample) * MAX_CONTROL_SHARE and is_in_use


def _guess(data: bytes) -> str:
    sample = data[:SAMPLE_CHARACTERS]
    ranked = sorted(LATIN_ENCODINGS, key=lambda encoding: _latin_share(sample, encoding), reverse=True)
    if _latin_share(sample, ranked[0]) >= MIN_LATIN_SHARE:
        return data.decode(ranked[0], "replace")
    best = charset_normalizer.from_bytes(sample).best()
    text = data.decode(best.encoding if best else "cp1252", "replace")
    if (
        len(HALF_WIDTH.findall(text[:SAMPLE_CHARACTERS]))
        > len(text[:SAMPLE_CHARACTERS]) * MAX_HALF_WIDTH_SHARE
    ):
        # No text consists of half-width forms: these are the bytes of Russian letters in KOI8-R.
        return data.decode("koi8-r", "replace")
    return text


def _latin_share(sample: bytes, encoding: str) -> float:
    """Return the fraction (0 to 1) of characters beyond ASCII that are letters of one language."""
    text = _attempt(sample, encoding)
    if text is None:
        return 0.0
    letters = sum(character.isalpha() for character in text)
    strange = [character for character in text if not character.isascii() and not _is_sign(character)]
    if len(strange) > letters * MAX_ACCENT_SHARE:
        return 0.0
    if not strange:
        return 1.0
    return max(sum(character in known for character in strange) for known in LANGUAGE_LETTERS) / len(strange)


def _is_sign(character: str) -> bool:
    """Tell whether a character is punctuation that occurs in any language."""
    return character in COMMON_SIGNS


def _checked(text: str) -> str:
    sample = text[:SAMPLE_CHARACTERS]
    if sample.count(REPLACEMENT) > len(sample) * MAX_CONTROL_SHARE:
        raise DocumentError(BINARY)
    return _free_of_controls(text)


def _free_of_controls(text: str) -> str:
    sample = text[:SAMPLE_CHARACTERS]
    if sum(1 for _ in CONTROLS.finditer(sample)) > len(sample) * MAX_CONTROL_SHARE:
        raise DocumentError(BINARY)
    return text
