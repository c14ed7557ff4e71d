"""Tells reasoning from text where a model marks it by tags within its text; pure."""

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
"""How models begin and end their reasoning."""

MAX_TAG_CHARACTERS: Final = 100
"""Characters of a tag that a request names."""

MAX_BLANK_CHARACTERS: Final = 1000
"""Blanks before the first tag of an answer: what follows more of them is text."""

_BLANKS: Final = re.compile(r"\s*")
_LINE_ENDS: Final = re.compile(r"\n*")

ReasoningOrText = tuple[bool, str]
"""Whether it is reasoning, and the text."""


class ReasoningSplitter:
    """Divides a text that comes in pieces; a tag counts where no text stands before it but blanks.

    Reasoning comes first in an answer: a tag further on is text that speaks of tags, as in an explanation of
    them. `tags` replaces those that are known, and none at all divides nothing.
    """

    def __init__(self, tags: Sequence[tuple[str, str]] | None = None) -> None:
        self._tags = REASONING_TAGS if tags is None else tuple(tags)
        self._held = ""
        self._end = ""
        self._is_over = not self._tags

    def feed(self, piece: str) -> Iterator[ReasoningOrText]:
        """Take a piece and return what can be told already; each character is looked at once."""
        held, position = self._held + piece, 0
        before = (-1, False)
        while position < len(held) and (position, self._is_over) != before:
            before = (position, self._is_over)
            if self._is_over:
                yield False, held[position:]
                position = len(held)
            elif self._end:
                told, position = self._look_for_end(held, position)
                if told:
                    yield True, told
            else:
                position = self._look_for_begin(held, position)
        self._held = held[position:]

    def finish(self) -> Iterator[ReasoningOrText]:
        """Return what was held back, as nothing follows."""
        if self._held:
            yield bool(self._end), self._held
        self._held = ""

    def _look_for_begin(self, held: str, position: int) -> int:
        """Return where the reasoning begins, or the same position when it is not known whether it does."""
        start = _skip(_BLANKS, held, position)
        for begin, end in self._tags:
            if held.startswith(begin, start):
                self._end = end
                return _skip(_LINE_ENDS, held, start + len(begin))
        rest = held[start : start + MAX_TAG_CHARACTERS]
        is_begun = any(begin.startswith(rest) for begin, _ in self._tags)
        self._is_over = not is_begun or start - position > MAX_BLANK_CHARACTERS
        return position

    def _look_for_end(self, held: str, position: int) -> tuple[str, int]:
        """Return the reasoning that can be told, and where what follows begins."""
        found = held.find(self._end, position)
        if found >= 0:
            # Some models reason again at once.
            after, self._end = found + len(self._end), ""
            return held[position:found], after
        ready = len(held) - _overlap(held[position:], self._end)
        return held[position:ready], ready


def _skip(pattern: re.Pattern[str], held: str, position: int) -> int:
    found = pattern.match(held, position)
    return position if found is None else found.end()


def _overlap(held: str, end: str) -> int:
    """Return how many of the last characters may be the first ones of the tag."""
    for size in range(min(len(held), len(end) - 1), 0, -1):
        if end.startswith(held[-size:]):
            return size
    return 0


def parse_reasoning_tags(params: object) -> Sequence[tuple[str, str]] | None:
    """Return what a request's `params.reasoning_tags` asks for: false for none, or a pair of its own."""
    tags = params.get("reasoning_tags") if isinstance(params, dict) else None
    if tags is False:
        return ()
    if isinstance(tags, list) and len(tags) == 2 and all(map(_is_tag, tags)):
        return ((tags[0], tags[1]),)
    return None


def _is_tag(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_TAG_CHARACTERS
