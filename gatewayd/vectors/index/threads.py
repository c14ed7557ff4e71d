"""Threads of the indexes' own, so that searches never wait behind somebody else's work."""

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

log = logging.getLogger(__name__)

Given = ParamSpec("Given")
Result = TypeVar("Result")

SEARCH_THREADS: Final = 4
WORK_THREADS: Final = 2


class IndexThreads:
    """Some threads for searches, others for what takes long; none is started before it is needed."""

    def __init__(self) -> None:
        self._searching = ThreadPoolExecutor(SEARCH_THREADS, "vector-search")
        self._working = ThreadPoolExecutor(WORK_THREADS, "vector-work")

    async def search(
        self, function: Callable[Given, Result], *given: Given.args, **also: Given.kwargs
    ) -> Result:
        """Return what a function that changes nothing returns."""
        call = functools.partial(function, *given, **also)
        return await asyncio.get_running_loop().run_in_executor(self._searching, call)

    async def work(
        self, function: Callable[Given, Result], *given: Given.args, **also: Given.kwargs
    ) -> Result:
        """Return what a function returns, which has ended when this has, even by a cancellation."""
        call = functools.partial(function, *given, **also)
        job = asyncio.get_running_loop().run_in_executor(self._working, call)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            while not job.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([job])
            if not job.cancelled() and (error := job.exception()) is not None:
                log.warning("what was cancelled has failed as well: %s", error)
            raise

    def close(self) -> None:
        """Wait for what runs, and end the threads."""
        self._searching.shutdown()
        self._working.shutdown()
