"""How texts are put together for one run of a model.

A run takes the memory of its padded tokens, and larger runs are not faster: long texts go alone, short ones
together with those of their length.
"""

from collections.abc import Iterator, Sequence
from typing import Final

MOST_TEXTS: Final = 4
MOST_TOKENS: Final = 512
"""Padded tokens of a run of more than one text."""

BYTES_OF_TOKEN: Final = 3
"""A token has about four letters in English and one character of three bytes in Chinese."""


def runs(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the places of texts that go together, each place once, shortest first."""
    sizes = [estimated(text) for text in texts]
    run: list[int] = []
    for place in sorted(range(len(texts)), key=sizes.__getitem__):
        if run and (len(run) == MOST_TEXTS or (len(run) + 1) * sizes[place] > MOST_TOKENS):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def estimated(text: str) -> int:
    """Return about how many tokens a text has, with those for its ends."""
    return 2 + len(text.encode("utf-8", "replace")) // BYTES_OF_TOKEN
