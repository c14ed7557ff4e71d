"""Time slices for long work on the event loop, so that other tasks run in between."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SLICE_CHARACTERS: Final = 64 * 1024
_ASCII: Final = re.compile(r"[\x00-\x7f]")
SLICE_SECONDS: Final = 0.005
"""Maximum duration of a slice."""


class LoopPacer:
    """Measures the current slice of one task; the task calls `turn` after each small step."""

    seconds: float = SLICE_SECONDS

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def turn(self) -> None:
        """Let other tasks run if the slice is used up."""
        if time.perf_counter() - self._began >= self.seconds:
            await asyncio.sleep(0)
            self._began = time.perf_counter()


async def iterate_paced(items: Iterable[T]) -> Sequence[T]:
    """Return the items as a list, with pauses between them; for iterators that compute each item."""
    pace = LoopPacer()
    made = []
    for item in items:
        made.append(item)
        await pace.turn()
    return made


async def map_slices(work: Callable[[str], str], text: str) -> str:
    """Return the result of a function over a text, applied piece by piece.

    A piece of a long text ends before an ASCII character if there is one near: normalisation and surrogate
    pairs do not cross it.
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
