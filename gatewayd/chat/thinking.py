"""Tells reasoning from text where a model marks it by tags within its text; pure."""

from collections.abc import Iterator, Sequence
from typing import Final

TAGS: Final[tuple[tuple[str, str], ...]] = (
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

Piece = tuple[bool, str]
"""Whether it is reasoning, and the text."""


class Thinking:
    """Divides a text that comes in pieces; a tag counts where no text stands before it but blanks.

    Reasoning comes first in an answer: a tag further on is text that speaks of tags, as in an explanation of
    them. `tags` replaces those that are known, and none at all divides nothing.
    """

    def __init__(self, tags: Sequence[tuple[str, str]] | None = None) -> None:
        self._tags = TAGS if tags is None else tuple(tags)
        self._held = ""
        self._end = ""
        self._is_over = not self._tags

    def feed(self, piece: str) -> Iterator[Piece]:
        """Take a piece and return what can be told already."""
        self._held += piece
        before = ("", "")
        while self._held and (self._held, self._end) != before:
            before = (self._held, self._end)
            if self._is_over:
                yield from self._all_as_text()
            elif self._end:
                yield from self._look_for_end()
            else:
                yield from self._look_for_begin()

    def finish(self) -> Iterator[Piece]:
        """Return what was held back, as nothing follows."""
        if self._held:
            yield bool(self._end), self._held
        self._held = ""

    def _look_for_begin(self) -> Iterator[Piece]:
        start = self._held.lstrip()
        for begin, end in self._tags:
            if start.startswith(begin):
                self._held, self._end = start[len(begin) :].lstrip("\n"), end
                return
        if start and not any(begin.startswith(start) for begin, _ in self._tags):
            yield from self._all_as_text()

    def _look_for_end(self) -> Iterator[Piece]:
        before, found, after = self._held.partition(self._end)
        if found:
            # Some models reason again at once.
            self._held, self._end = after, ""
            yield True, before
            return
        kept = _overlap(self._held, self._end)
        ready = self._held[: len(self._held) - kept]
        self._held = self._held[len(self._held) - kept :]
        if ready:
            yield True, ready

    def _all_as_text(self) -> Iterator[Piece]:
        yield False, self._held
        self._held, self._is_over = "", True


def _overlap(held: str, end: str) -> int:
    """Return how many of the last characters may be the first ones of the tag."""
    for size in range(min(len(held), len(end) - 1), 0, -1):
        if end.startswith(held[-size:]):
            return size
    return 0


def chosen_tags(params: object) -> Sequence[tuple[str, str]] | None:
    """Return what a request's `params.reasoning_tags` asks for: false for none, or a pair of its own."""
    tags = params.get("reasoning_tags") if isinstance(params, dict) else None
    if tags is False:
        return ()
    if isinstance(tags, list) and len(tags) == 2 and all(isinstance(tag, str) and tag for tag in tags):
        return ((tags[0], tags[1]),)
    return None
