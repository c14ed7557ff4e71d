"""Where a JSON value ends that comes in pieces; pure."""

import re
from typing import Final

_MARKS: Final = re.compile(r'[\\"{}\[\]]')


class JsonEnd:
    """Finds the end of a JSON object or list that comes in pieces, looking at each character once."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._is_escaped = False
        self.is_whole = False

    def feed(self, piece: str) -> None:
        """Take the next piece; `is_whole` is true once what was opened is closed."""
        position = 1 if self._is_escaped else 0
        self._is_escaped = self._is_escaped and not piece
        while (mark := _MARKS.search(piece, position)) is not None:
            position = mark.end()
            match mark.group():
                case "\\" if self._in_text:
                    self._is_escaped = position == len(piece)
                    position += 1
                case '"':
                    self._in_text = not self._in_text
                case "{" | "[" if not self._in_text:
                    self._depth += 1
                case "}" | "]" if not self._in_text:
                    self._depth -= 1
                    self.is_whole = self.is_whole or self._depth <= 0
