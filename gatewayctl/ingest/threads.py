"""Thread pool that yields results in order, with a limited lead."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD: Final = 4
"""Maximum number of items that each thread may be ahead of the reader."""


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Yield the result for each item, in their order, with `jobs` threads.

    The first exception ends it: items that have not started are dropped, running ones finish.
    """
    with ThreadPoolExecutor(jobs) as pool:
        running: deque[Future[Result]] = deque()
        try:
            for item in items:
                running.append(pool.submit(work, item))
                if len(running) > jobs * AHEAD:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
