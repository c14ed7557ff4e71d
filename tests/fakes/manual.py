"""Reads tables of the manual pages: what stands between `.\\" begin NAME` and `.\\" end NAME`."""

import re

from gatewayd.extract.manpage import Page
from gatewayd.extract.mdoc import Inline
from gatewayd.extract.roff import words
from gatewayd.extract.roffchars import unescaped

ANYTHING = "@"


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
    page = Page()
    Inline(page, unescaped).write(list(words(f"No {line}")))
    return page.whole().rstrip("\n")
