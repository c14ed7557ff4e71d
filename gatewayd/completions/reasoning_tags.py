"""Separates reasoning from text in models that mark reasoning by tags such as `<think>`; pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

REASONING_TAGS: Final[tuple[tuple[str, str], ...]] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reason>", "</reason>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<Thought>", "</Thought>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),
)
"""Opening and closing tags of reasoning."""

MAX_TAG_CHARACTERS: Final = 100
"""Maximum length of a tag that a request names."""

MAX_BLANK_CHARACTERS: Final = 1000
"""Maximum number of blanks before the opening tag; after more blanks the answer is plain text."""

_BLANKS: Final = re.compile(r"\s*")
_LINE_ENDS: Final = re.compile(r"\n*")

ReasoningOrText = tuple[bool, str]
"""Whether the piece is reasoning, and the piece itself."""


class ReasoningSplitter:
    """Splits a streamed text into reasoning and text; only a tag at the start of the answer counts.

    Reasoning comes first in an answer. A later tag is text about tags, such as an explanation of them. `tags`
    replaces the known tags; an empty sequence turns the splitting off.
    """

    def __init__(self, tags: Sequence[tuple[str, str]] | None = None) -> None:
        self._tags = REASONING_TAGS if tags is None else tuple(tags)
        self._pending = ""
        self._end = ""
        self._is_over = not self._tags

    def feed(self, piece: str) -> Iterator[ReasoningOrText]:
        """Read a piece and yield what is decided; each character is examined once."""
        pending, position = self._pending + piece, 0
        before = (-1, False)
        while position < len(pending) and (position, self._is_over) != before:
            before = (position, self._is_over)
            if self._is_over:
                yield False, pending[position:]
                position = len(pending)
            elif self._end:
                certain, position = self._look_for_end(pending, position)
                if certain:
                    yield True, certain
            else:
                position = self._look_for_begin(pending, position)
        self._pending = pending[position:]

    def finish(self) -> Iterator[ReasoningOrText]:
        """Yield the rest at the end of the stream."""
        if self._pending:
            yield bool(self._end), self._pending
        self._pending = ""

    def _look_for_begin(self, pending: str, position: int) -> int:
        """Return the position after the opening tag, or the same position while that is undecided."""
        start = _skip(_BLANKS, pending, position)
        for begin, end in self._tags:
            if pending.startswith(begin, start):
                self._end = end
                return _skip(_LINE_ENDS, pending, start + len(begin))
        rest = pending[start : start + MAX_TAG_CHARACTERS]
        may_begin = any(begin.startswith(rest) for begin, _ in self._tags)
        self._is_over = not may_begin or start - position > MAX_BLANK_CHARACTERS
        return position

    def _look_for_end(self, pending: str, position: int) -> tuple[str, int]:
        """Return the reasoning that is certain, and the position after it."""
        found = pending.find(self._end, position)
        if found >= 0:
            # Some models start a second reasoning block immediately.
            after, self._end = found + len(self._end), ""
            return pending[position:found], after
        ready = len(pending) - _overlap(pending[position:], self._end)
        return pending[position:ready], ready


def _skip(pattern: re.Pattern[str], pending: str, position: int) -> int:
    found = pattern.match(pending, position)
    return position if found is None else found.end()


def _overlap(pending: str, end: str) -> int:
    """Return how many of the last characters may be the start of the tag."""
    for size in range(min(len(pending), len(end) - 1), 0, -1):
        if end.startswith(pending[-size:]):
            return size
    return 0


def parse_reasoning_tags(params: object) -> Sequence[tuple[str, str]] | None:
    """Return the tags in a request's `params.reasoning_tags`: () for false, a pair, or None if unset."""
    tags = params.get("reasoning_tags") if isinstance(params, dict) else None
    if tags is False:
        return ()
    if isinstance(tags, list) and len(tags) == 2 and all(map(_is_tag, tags)):
        return ((tags[0], tags[1]),)
    return None


def _is_tag(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_TAG_CHARACTERS
