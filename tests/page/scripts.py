"""A reader of the modules of the page, as far as tests of their texts need one: strings and templates."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "gatewayd" / "web" / "page"
BEFORE_EXPRESSION: Final = frozenset("(,=:[!&|?{};+-*%<>~^\n")
"""Characters after which a slash begins a regular expression."""
KEYWORDS: Final = ("return", "typeof", "case", "in", "of", "await", "yield", "void", "delete")


@dataclass(frozen=True)
class Literal:
    """A string, or a template: its tag, "" for none, and its texts between the expressions in it."""

    tag: str
    texts: tuple[str, ...]
    line: int


def modules() -> list[Path]:
    """Return the modules of the page and its service worker."""
    return [*sorted((PAGE / "app").rglob("*.js")), PAGE / "service-worker.js"]


def literals(source: str) -> list[Literal]:
    """Return the strings and templates of a module; those within templates are listed too."""
    return list(Reader(source).read())


class Reader:
    """Reads one module from its begin to its end."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def read(self, closing: str = "") -> Iterator[Literal]:
        """Yield what is found up to the closing brace of an expression in a template, or to the end."""
        depth = 0
        while self._at < len(self._source):
            char = self._source[self._at]
            if char == closing and depth == 0:
                return
            depth += {"{": 1, "}": -1}.get(char, 0)
            if self._source.startswith(("//", "/*"), self._at):
                self._skip_comment()
            elif char in "\"'":
                yield self._string(char)
            elif char == "`":
                yield from self._template()
            elif char == "/" and self._begins_expression():
                self._skip_expression()
            else:
                self._at += 1

    def _line(self) -> int:
        return self._source.count("\n", 0, self._at) + 1

    def _skip_comment(self) -> None:
        end = "\n" if self._source.startswith("//", self._at) else "*/"
        found = self._source.find(end, self._at + 2)
        self._at = len(self._source) if found < 0 else found + len(end)

    def _string(self, quote: str) -> Literal:
        line, start = self._line(), self._at + 1
        self._at = start
        while self._source[self._at] != quote:
            self._at += 2 if self._source[self._at] == "\\" else 1
        text = self._source[start : self._at]
        self._at += 1
        return Literal("", (text,), line)

    def _template(self) -> Iterator[Literal]:
        tag = re.search(r"[\w$]*$", self._source[: self._at])
        line, texts, start = self._line(), [], self._at + 1
        self._at = start
        while self._source[self._at] != "`":
            if self._source.startswith("${", self._at):
                texts.append(self._source[start : self._at])
                self._at += 2
                yield from self.read("}")
                start = self._at + 1
            self._at += 2 if self._source[self._at] == "\\" else 1
        texts.append(self._source[start : self._at])
        self._at += 1
        yield Literal(tag[0] if tag else "", tuple(texts), line)

    def _begins_expression(self) -> bool:
        before = self._source[: self._at].rstrip(" ")
        return not before or before[-1] in BEFORE_EXPRESSION or before.endswith(KEYWORDS)

    def _skip_expression(self) -> None:
        is_class = False
        self._at += 1
        while is_class or self._source[self._at] != "/":
            char = self._source[self._at]
            is_class = char == "[" or (is_class and char != "]")
            self._at += 2 if char == "\\" else 1
        self._at += 1
