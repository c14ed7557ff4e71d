"""Line numbers of the keys of a TOML document.

The standard library reads values without line numbers. This scanner reads line numbers without the values:
it expects a document that `tomllib` has accepted, and parses only as much as it needs to find the keys.
"""

import re
import tomllib
from bisect import bisect_right
from typing import Final

KeyPath = tuple[str | int, ...]
"""Keys and, for elements of arrays, indices: `("providers", 0, "name")`."""

_BLANK: Final = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
# Up to two quotes may come directly before the three that end a multi-line string.
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'", re.DOTALL
)
_SCALAR: Final = re.compile(r"[^,\]}#\n]+")


def locate_keys(document: str) -> dict[KeyPath, int]:
    """Return the line, from 1, on which each key, table and array element of the document begins."""
    scanner = _Scanner(document.replace("\r\n", "\n"))
    scanner.run()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._text = text
        self._at = 0
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._table: KeyPath = ()
        self._elements: dict[KeyPath, int] = {}

    def run(self) -> None:
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._peek("["):
                self._header()
            else:
                self._pair(self._table)
            self._skip(_BLANK)

    def _header(self) -> None:
        line = self._line()
        is_array = self._peek("[[")
        self._at += 2 if is_array else 1
        *parents, last = self._keys()
        self._at += 2 if is_array else 1
        path = self._current(tuple(parents), line)
        if is_array:
            array = (*path, last)
            self.lines.setdefault(array, line)
            index = self._elements[array] = self._elements.get(array, -1) + 1
            self._table = (*array, index)
        else:
            self._table = (*path, last)
        self.lines[self._table] = line

    def _current(self, parents: tuple[str, ...], line: int) -> KeyPath:
        """Return the path of the parents of a header; an array of tables stands for its newest element."""
        path: KeyPath = ()
        for part in parents:
            path = (*path, part)
            self.lines.setdefault(path, line)
            if path in self._elements:
                path = (*path, self._elements[path])
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for key in self._keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._skip(_SPACE)
            keys.append(self._key())
            self._skip(_SPACE)
            if not self._peek("."):
                return keys
            self._at += 1

    def _key(self) -> str:
        quoted = _STRING.match(self._text, self._at)
        if quoted is None:
            return self._skip(_BARE_KEY)
        self._at = quoted.end()
        return str(tomllib.loads(f"key = {quoted.group()}")["key"])

    def _value(self, path: KeyPath) -> None:
        if self._peek("["):
            self._array(path)
        elif self._peek("{"):
            self._inline_table(path)
        elif not self._skip(_STRING):
            self._skip(_SCALAR)

    def _array(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        self._skip(_BLANK)
        while not self._peek("]"):
            self.lines[(*path, index)] = self._line()
            self._value((*path, index))
            index += 1
            self._separator()
        self._at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._at += 1
        self._skip(_BLANK)
        while not self._peek("}"):
            self._pair(path)
            self._separator()
        self._at += 1

    def _separator(self) -> None:
        self._skip(_BLANK)
        if self._peek(","):
            self._at += 1
            self._skip(_BLANK)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match.group()

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _line(self) -> int:
        return bisect_right(self._starts, self._at)
