"""Real prose in any amount: the documentation strings of Python's own library, and documents made of it."""

import ast
import random
import re
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pymupdf

SHORTEST: Final = 60
LONGEST: Final = 1200
LINE: Final = 95
PAGE_LINES: Final = 56
PAGE_CHARACTERS: Final = 2000
FOREIGN: Final = frozenset({"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3"})
SPACES: Final = re.compile(r"\s+")
ASKED: Final = re.compile(r"[A-Za-z][A-Za-z'-]+")
OPENINGS: Final = ("how do I", "what does", "how to", "why does", "when is", "which", "where is", "can I")


@cache
def paragraphs() -> tuple[str, ...]:
    """Return different paragraphs of prose, always in the same order; some megabytes."""
    root = Path(sysconfig.get_path("stdlib"))
    found: dict[str, None] = {}
    for path in sorted(root.rglob("*.py")):
        if not FOREIGN.intersection(path.relative_to(root).parts):
            found.update(dict.fromkeys(_prose(path)))
    shuffled = list(found)
    random.Random(5).shuffle(shuffled)
    return tuple(shuffled)


def _prose(path: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sources may have odd escapes
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for part in (ast.get_docstring(node) or "").split("\n\n"):
            text = SPACES.sub(" ", part).strip()
            if len(text) >= SHORTEST and text.isprintable():
                yield text[:LONGEST]


class Writer:
    """Writes texts of real paragraphs, no two of them alike; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._made = 0

    def passage(self, size: int = 850) -> str:
        """Return about `size` characters of prose."""
        self._made += 1
        parts: list[str] = []
        length = 0
        while length < size:
            part = self._chance.choice(paragraphs())[: size + 100 - length]
            parts.append(part)
            length += len(part) + 1
        return "\n".join(parts)

    def question(self) -> str:
        """Return what somebody might ask: words that stand together in a real sentence."""
        words = ASKED.findall(self._chance.choice(paragraphs()))
        count = self._chance.randint(3, 9)
        start = self._chance.randrange(max(1, len(words) - count))
        return " ".join([self._chance.choice(OPENINGS), *words[start : start + count]])

    def pdf(self, path: Path, pages: int) -> None:
        """Write a PDF with about 2,000 characters on each page."""
        with pymupdf.open() as document:
            for number in range(1, pages + 1):
                page = document.new_page()
                lines = [f"Page {number}", *_lines(self.passage(PAGE_CHARACTERS))]
                page.insert_text((40, 40), "\n".join(lines[:PAGE_LINES]), fontsize=9)
            document.save(path, deflate=True)


def _lines(text: str) -> Sequence[str]:
    """Break a text into lines as a page has them."""
    lines: list[str] = []
    for word in text.encode("latin-1", "replace").decode("latin-1").split():
        if lines and len(lines[-1]) + len(word) < LINE:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
