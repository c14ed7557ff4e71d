"""Thread pools of the vector indexes, apart from others so that searches never wait for other work."""

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
    """One pool for searches, one for slow work; threads start on first use."""

    def __init__(self) -> None:
        self._searching = ThreadPoolExecutor(SEARCH_THREADS, "vector-search")
        self._working = ThreadPoolExecutor(WORK_THREADS, "vector-work")

    async def search(
        self, function: Callable[Given, Result], *given: Given.args, **also: Given.kwargs
    ) -> Result:
        """Run a read-only function in a search thread and return its result."""
        call = functools.partial(function, *given, **also)
        return await asyncio.get_running_loop().run_in_executor(self._searching, call)

    async def work(
        self, function: Callable[Given, Result], *given: Given.args, **also: Given.kwargs
    ) -> Result:
        """Run a function in a work thread and return its result; a cancellation waits for its end."""
        call = functools.partial(function, *given, **also)
        job = asyncio.get_running_loop().run_in_executor(self._working, call)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            while not job.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([job])
            if not job.cancelled() and (error := job.exception()) is not None:
                log.warning("cancelled index job failed: %s", error)
            raise

    def close(self) -> None:
        """Wait for running jobs, and end the threads."""
        self._searching.shutdown()
        self._working.shutdown()
