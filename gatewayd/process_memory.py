"""How the process takes memory from the system, and gives it back."""

import asyncio
import ctypes
import logging
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

M_MMAP_THRESHOLD: Final = -3
"""The parameter's number in glibc's malloc.h (mallopt(3))."""

LARGE_BLOCK_BYTES: Final = 1024 * 1024
"""Bytes from which on a block is the system's again the moment it is freed."""


MIN_GROWTH_BYTES: Final = 8 * LARGE_BLOCK_BYTES
"""Bytes by which the process grows before it is worth while to look for what is free."""


def return_large_blocks() -> bool:
    """Let large blocks go back to the system when they are freed; False where the C library cannot.

    By itself glibc raises the limit to the largest block that was ever freed: one password hash or one large
    body, and its memory stays with the process.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        log.debug("the C library has no mallopt")
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES))


def resident_bytes() -> int:
    """Return the bytes of memory that the process holds, 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()


class MemoryKeeper:
    """Gives memory back once large work is over: called now and then, it acts when the process has grown.

    `forget` lets go of what is kept for speed alone.
    """

    def __init__(
        self,
        forget: Callable[[], Awaitable[None]],
        measure: Callable[[], int] = resident_bytes,
        give_back: Callable[[], None] | None = None,
    ) -> None:
        self._forget = forget
        self._measure = measure
        self._give_back = give_back or return_memory
        self._least = measure()

    async def look(self) -> None:
        """Give back what is free when the process holds more than it did before; beside the event loop."""
        held = self._measure()
        if held < self._least + MIN_GROWTH_BYTES:
            self._least = min(held, self._least)
            return
        await self._forget()
        await asyncio.to_thread(self._give_back)
        self._least = self._measure()


def return_memory() -> None:
    """Give memory that is not in use back to the system: the allocator keeps what the largest work took."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
