"""Memory of the process: settings of the allocator, and return of unused memory to the system."""

import asyncio
import ctypes
import logging
import resource
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

M_MMAP_THRESHOLD: Final = -3
"""Number of the parameter in malloc.h of glibc (mallopt(3))."""

LARGE_BLOCK_BYTES: Final = 1024 * 1024
"""Minimum size of a block that returns to the system as soon as it is freed."""


MIN_GROWTH_BYTES: Final = 8 * LARGE_BLOCK_BYTES
"""Minimum growth of the process before unused memory is returned."""


def return_large_blocks() -> bool:
    """Let large blocks return to the system when they are freed; False if the C library cannot.

    By default glibc raises this threshold to the largest block that was ever freed, so that after one
    password hash or large body its memory stays with the process.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        log.debug("the C library has no mallopt")
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES))


def resident_bytes() -> int:
    """Return the resident memory of the process in bytes, 0 if it is not known."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()


class MemoryKeeper:
    """Returns memory to the system after large work: a periodic check acts if the process has grown.

    `forget` empties caches.
    """

    def __init__(
        self,
        forget: Callable[[], Awaitable[None]],
        measure: Callable[[], int] = resident_bytes,
        give_back: Callable[[], None] | None = None,
    ) -> None:
        self._forget = forget
        self._measure = measure
        self._return_memory = give_back or return_memory
        self._baseline = measure()

    async def look(self) -> None:
        """Return unused memory, in a thread, if the process has grown since the last check."""
        held = self._measure()
        if held < self._baseline + MIN_GROWTH_BYTES:
            self._baseline = min(held, self._baseline)
            return
        await self._forget()
        await asyncio.to_thread(self._return_memory)
        self._baseline = self._measure()


def return_memory() -> None:
    """Return unused memory of the allocator to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
