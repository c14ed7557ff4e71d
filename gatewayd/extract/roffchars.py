"""The characters of roff: escapes become the text that they stand for."""

import re
from collections.abc import Mapping
from typing import Final

from gatewayd.text import composed

SPACE: Final = "\u00a0"
"""What a space is that separates no words."""


def _pairs(*lines: str) -> dict[str, str]:
    """Return a mapping that is written as name and character by turns."""
    both = " ".join(lines).split(" ")
    return dict(zip(both[::2], both[1::2], strict=True))


# Special characters by their names.
SPECIAL: Final = _pairs(
    'dq " aq \' cq \' oq \' lq " rq " Bq " bq , em — en \u2013 hy - mi - - - bu • sq □ ci ○ lz ◊ rs \\',
    "sl / ba | br | bv | or | ul _ ru _ rn \u203e ha ^ ti ~ ga ` aa \u00b4 a^ ^ a~ ~ sh # Do $ at @ lB [",
    "rB ] lC { rC } la < ra > Fo « Fc » fo \u2039 fc \u203a co © rg ® tm ™ de ° dg † dd ‡ sc § ps ¶ ct ¢",
    "Po £ Ye ¥ Eu € eu € mu \u00d7 di ÷ +- ± pl + eq = <= ≤ >= ≥ != ≠ == ≡ ~= ≅ ~~ ≈ -> → <- ← ua ↑ da ↓",
    "<> ↔ rA ⇒ lA ⇐ if ∞ fm \u2032 sd ″ 12 ½ 14 ¼ 34 ¾ S1 ¹ S2 ² S3 ³ ss ß ae æ AE Æ oe œ OE Œ /o ø /O Ø",
    "oa å oA Å ff ff fi fi fl fl Fi ffi Fl ffl r! ¡ r? ¿ Of ª Om º *a \u03b1 *b β *g \u03b3 *d δ *e ε",
    "*l λ *m μ *p π *s \u03c3 *w ω *D Δ *W Ω sr √ no ¬ AN ∧ OR \u2228 mo ∈ Tp þ Sd ð ,c ç ,C Ç OK ✓ lh ☜",
    "rh ☞ u2026 … vA ⇕ 18 ⅛ 38 ⅜ 58 ⅝ 78 ⅞ -h ℏ hbar ℏ Ah ℵ Im \u2111 Re \u211c es ∅ pd ∂ gr ∇ is ∫ sum ∑",
    "product ∏ te ∃ fa ∀ nm ∉ sb ⊂ sp ⊃ ca ∩ cu \u222a lf ⌊ rf ⌋ lc ⌈ rc ⌉ pt ∝ tf ∴ an ¯ ad ¨",
)
ACCENTS: Final = {"'": "\u0301", "`": "\u0300", "^": "\u0302", ":": "\u0308", "~": "\u0303", "v": "\u030c"}
# Escapes of one letter.
SINGLE: Final = {
    **dict.fromkeys("&)%:/,|^cpdur{}!a", ""),
    **dict.fromkeys(" ~0", SPACE),
    **_pairs("- - _ _ ' ' ` ` . . e \\ E \\ \\ \\"),
    "t": "\t",
}
# Strings that the macro packages define.
STRINGS: Final = _pairs(
    'q " lq " rq " Lq " Rq " Aq \' Tm ™ R ® Ba | Lt < Gt > Le <= Ge >= Ne != Am & Pm ± Pi pi -- -',
    "L' ' R' '",
)
# No name or argument is longer: what has no end must not be looked for in all of a text.
LONGEST: Final = 200
NAME: Final = rf"(?:\((..)|\[([^\]\n]{{0,{LONGEST}}})\]|(.))"
NAMED: Final = re.compile(NAME)
SIZE: Final = re.compile(r"[+-]?(?:\([+-]?..|\[[^\]\n]{0,9}\]|'[^'\n]{0,9}'|[+-]?[1-3]?\d)")
CODE: Final = re.compile(r"u([0-9A-Fa-f]{4,6})(?:_[0-9A-Fa-f_]+)?|char(\d{1,3})")
# Escapes that have a name, and those that have an argument between two like characters.
WITH_NAME: Final = "fFmMkgVYnO"
WITH_ARGUMENT: Final = "ABDHLRSXZbhlovwxN"
COMMENT: Final = re.compile(r'(?<!\\)((?:\\\\)*)\\["#].*')
LONGEST_STRING: Final = 1000


def unescaped(raw: str, strings: Mapping[str, str] = STRINGS) -> str:
    """Return what a text of roff says; spaces that separate no words are SPACE."""
    if "\\" not in raw:
        return raw
    pieces: list[str] = []
    place = 0
    while (found := raw.find("\\", place)) >= 0:
        pieces.append(raw[place:found])
        piece, place = _escape(raw, found + 1, strings)
        pieces.append(piece)
    pieces.append(raw[place:])
    return "".join(pieces)


def _escape(raw: str, place: int, strings: Mapping[str, str]) -> tuple[str, int]:
    """Return what the escape says whose letter is at a place, and where it ends."""
    letter = raw[place : place + 1]
    if letter in "([C" and letter:
        return _special(raw, place)
    if letter == "*":
        name, end = _name(raw, place + 1)
        return strings.get(name, ""), end
    if letter == "s":
        size = SIZE.match(raw, place + 1)
        return "", size.end() if size else place + 1
    if letter and letter in WITH_NAME:
        return "", _name(raw, place + 1)[1]
    if letter and letter in WITH_ARGUMENT:
        return _argument(raw, place)
    return SINGLE.get(letter, letter), place + 1


def _name(raw: str, place: int) -> tuple[str, int]:
    found = NAMED.match(raw, place)
    return (found[1] or found[2] or found[3] or "", found.end()) if found else ("", place)


def _special(raw: str, place: int) -> tuple[str, int]:
    if raw[place] == "C":
        end = raw.find("'", place + 2, place + 2 + LONGEST)
        name, place = (raw[place + 2 : end], end + 1) if end > 0 else ("", place + 1)
    else:
        name, place = _name(raw, place)
    return special(name), place


def special(name: str) -> str:
    """Return the character of a name, "" for one that is not known."""
    if name in SPECIAL:
        return SPECIAL[name]
    code = CODE.fullmatch(name)
    if code:
        number = int(code[1], 16) if code[1] else int(code[2])
        return chr(number) if number < 0xD800 or 0xDFFF < number < 0x110000 else ""
    if len(name) == 2 and name[0] in ACCENTS and name[1].isalpha():
        return composed(name[1] + ACCENTS[name[0]])
    return ""


def _argument(raw: str, place: int) -> tuple[str, int]:
    mark = raw[place + 1 : place + 2]
    end = raw.find(mark, place + 2, place + 2 + LONGEST) if mark else -1
    if end < 0:
        return "", place + 1
    said = raw[place + 2 : end]
    if raw[place] == "N" and said.isdecimal():
        return special(f"char{said}"), end + 1
    return (said if raw[place] in "oZb" and "\\" not in said else ""), end + 1
