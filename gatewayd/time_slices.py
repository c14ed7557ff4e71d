"""Long work on the event loop in slices: others are served in between."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SLICE_CHARACTERS: Final = 64 * 1024
_ASCII: Final = re.compile(r"[\x00-\x7f]")
SLICE_SECONDS: Final = 0.005
"""How long work may go on before others are served."""


class LoopPacer:
    """Knows how long the work of one task has gone on; the work calls `turn` after each small step of it."""

    seconds: float = SLICE_SECONDS

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def turn(self) -> None:
        """Let others be served when the slice is used up."""
        if time.perf_counter() - self._began >= self.seconds:
            await asyncio.sleep(0)
            self._began = time.perf_counter()


async def iterate_paced(items: Iterable[T]) -> Sequence[T]:
    """Return the items, each of which takes a while to make."""
    pace = LoopPacer()
    made = []
    for item in items:
        made.append(item)
        await pace.turn()
    return made


async def map_slices(work: Callable[[str], str], text: str) -> str:
    """Return what a function makes of a text, which it may take piece by piece.

    A piece of a long text ends before a character of ASCII where there is one: no normalisation, no pair of
    surrogates crosses that.
    """
    if len(text) <= SLICE_CHARACTERS:
        return work(text)
    pace = LoopPacer()
    made = []
    start = 0
    while start < len(text):
        end = min(start + SLICE_CHARACTERS, len(text))
        found = _ASCII.search(text, end, end + SLICE_CHARACTERS)
        if found is not None:
            end = found.start()
        made.append(work(text[start:end]))
        start = end
        await pace.turn()
    return "".join(made)
