"""Incremental search for the end of a JSON value that arrives in pieces; pure."""

import re
from itertools import accumulate
from typing import Final

MAX_SCANNED_CHARACTERS: Final = 512
"""Pieces up to this length are scanned mark by mark; longer ones are processed in bulk."""

_MARKS: Final = re.compile(r'[\\"{}\[\]]')
_ESCAPES: Final = re.compile(r"\\.", re.DOTALL)
_NO_BRACKETS: Final = re.compile(r"[^{}\[\]]+")
_STEPS: Final = {"{": 1, "[": 1, "}": -1, "]": -1}


class JsonEndFinder:
    """Finds the end of a JSON object or list that arrives in pieces, in one pass."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._is_escaped = False
        self.is_whole = False

    def feed(self, piece: str) -> None:
        """Read the next piece; `is_whole` is true once the outermost bracket is closed."""
        if self.is_whole:
            return
        if len(piece) > MAX_SCANNED_CHARACTERS:
            self._count(piece)
        else:
            self._scan(piece)

    def _scan(self, piece: str) -> None:
        position = 1 if self._is_escaped else 0
        self._is_escaped = self._is_escaped and not piece
        while (mark := _MARKS.search(piece, position)) is not None:
            position = mark.end()
            match mark.group():
                case "\\":
                    self._is_escaped = position == len(piece)
                    position += 1
                case '"':
                    self._in_text = not self._in_text
                case "{" | "[" if not self._in_text:
                    self._depth += 1
                case "}" | "]" if not self._in_text:
                    self._depth -= 1
                    self.is_whole = self.is_whole or self._depth <= 0

    def _count(self, piece: str) -> None:
        """Process a long piece without a Python step for each character."""
        rest = _ESCAPES.sub("", piece[1:] if self._is_escaped else piece)
        self._is_escaped = rest.endswith("\\")
        parts = rest.split('"')
        outside = parts[1::2] if self._in_text else parts[::2]
        self._in_text = self._in_text is (len(parts) % 2 == 1)
        brackets = _NO_BRACKETS.sub("", "".join(outside))
        if brackets:
            depths = list(accumulate(map(_STEPS.__getitem__, brackets), initial=self._depth))
            self._depth = depths[-1]
            self.is_whole = min(depths[1:]) <= 0
