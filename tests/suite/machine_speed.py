"""Speed of this machine just now, for limits of time in tests.

A virtual machine may lose most of its cache and memory bandwidth to its neighbours for an hour. What reads
memory takes several times as long then, and a limit of time holds only in units of work.
"""

import time
from functools import cache
from typing import Final

import orjson

REFERENCE_SECONDS: Final = 0.045
"""Processor time of the work on a machine that has its memory for itself."""


@cache
def _text() -> bytes:
    return b"[" + b"[]," * 500_000 + b"[]]"


def slowness() -> float:
    """Return how many times as long as on an undisturbed machine it takes now to make half a million lists.

    At least 1: a fast machine tightens no limit.
    """
    return max(1.0, min(_work() for _ in range(3)) / REFERENCE_SECONDS)


def _work() -> float:
    began = time.thread_time()
    orjson.loads(_text())
    return time.thread_time() - began
