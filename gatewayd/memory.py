"""How the process takes memory from the system, and gives it back."""

import ctypes
import logging
from typing import Final

log = logging.getLogger(__name__)

M_MMAP_THRESHOLD: Final = -3
"""The parameter's number in glibc's malloc.h (mallopt(3))."""

LARGE: Final = 1024 * 1024
"""Bytes from which on a block is the system's again the moment it is freed."""


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
    return bool(mallopt(M_MMAP_THRESHOLD, LARGE))


def return_memory() -> None:
    """Give memory that is not in use back to the system: the allocator keeps what the largest work took."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
