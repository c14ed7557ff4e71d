"""Reads tables of the manual pages: what stands between `.\\" begin NAME` and `.\\" end NAME`."""

import re

ANYTHING = "@"
WORD = re.compile(r'"((?:[^"]|"")*)"(?=\s|$)|(\S+)')
# The macros that the tables use, which only change the font.
FONTS = {"Ar", "Cm", "Dv", "Ev", "Fl", "Ic", "Li", "No", "Pa", "Sy"}
SIGNS = {
    "\\-": "-",
    "\\(dq": '"',
    "\\(aq": "'",
    "\\(em": "\N{EM DASH}",
    "\\(co": "\N{COPYRIGHT SIGN}",
    "\\&": "",
    "\\e": "\\",
}
SIGN = re.compile("|".join(map(re.escape, SIGNS)))


def rows(page: str, name: str) -> list[list[str]]:
    """Return the cells of a table."""
    return [
        ["" if cell == '""' else cell for cell in _shown(line).split("\t")] for line in _items(page, name)
    ]


def sentences(page: str, name: str) -> list[str]:
    """Return the heads of a list; @ stands for what differs."""
    return [_shown(re.sub(r"\bAr \w+", f"Ar {ANYTHING}", line)) for line in _items(page, name)]


def _items(page: str, name: str) -> list[str]:
    found = re.search(rf'(?s)^\.\\" begin {name}\n(.*?)^\.\\" end {name}$', page, re.MULTILINE)
    assert found, f"the page has no table {name}"
    return re.findall(r"(?m)^\.It (.+)$", found[1])


def _shown(line: str) -> str:
    text = ""
    for quoted, plain in WORD.findall(line):
        if plain == "Ta":
            text += "\t"
        elif plain not in FONTS:
            is_apart = text and text[-1] not in "\t(" and (quoted or plain not in {".", ",", ":", ";", ")"})
            text += " " * bool(is_apart) + unescaped(quoted.replace('""', '"') or plain)
    return text


def unescaped(text: str) -> str:
    """Return a text with the characters that escapes stand for."""
    return SIGN.sub(lambda found: SIGNS[found[0]], text)
