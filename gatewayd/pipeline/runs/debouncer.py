"""Debouncer: runs a function soon after a change, with a minimum interval between two runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

from gatewayd.errors import GatewayError
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)


class Debouncer:
    """Inside a `with` block, calls `work` soon after a `touch`; of repeated failures the first is logged."""

    def __init__(
        self,
        tasks: TaskRegistry,
        work: Callable[[], Awaitable[object]],
        seconds: Callable[[], float],
        log_fields: Mapping[str, str],
    ) -> None:
        self._tasks = tasks
        self._work = work
        self._seconds = seconds
        self._log_fields = log_fields
        self._changed = asyncio.Event()
        self._task = ""

    def touch(self) -> None:
        """Report a change."""
        self._changed.set()

    async def __aenter__(self) -> Self:
        """Start."""
        self._task = self._tasks.spawn("progress of an answer", self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, even if a change is pending."""
        await self._tasks.stop(self._task)

    async def _run(self) -> None:
        is_failing = False
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._work()
                is_failing = False
            except GatewayError as error:
                if not is_failing:
                    log.warning(
                        "progress of an answer not saved: %s", error.full_message, extra=self._log_fields
                    )
                is_failing = True
            await asyncio.sleep(self._seconds())
