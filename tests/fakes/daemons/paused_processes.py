"""Processes that stand still for a while."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Let processes stand still until the end of the block (SIGSTOP)."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
