"""Registry of background tasks: the only module that creates asyncio tasks."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from gatewayd import ids

log = logging.getLogger(__name__)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TaskOwner:
    """Owner of a task: the user, and the message if there is one; tasks of the gateway have no owner."""

    user_id: str
    chat_id: str = ""
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """One running task that a user started; `started_at` is in epoch seconds."""

    id: str
    name: str
    purpose: TaskOwner
    started_at: int


class TaskRegistry:
    """Owns every background task, so that none is garbage-collected early or left running at shutdown."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._started: dict[str, TaskInfo] = {}

        self.is_closing = False
        """Whether all tasks are being cancelled because the gateway stops."""

    def spawn(
        self,
        name: str,
        work: Coroutine[Any, Any, None],
        purpose: TaskOwner | None = None,
        at_end: Callable[[], None] | None = None,
        task_id: str | None = None,
    ) -> str:
        """Start `work` and return its task id, new or given; a failure is logged with `name`, never lost.

        `at_end` is called when the task is over, also when it was cancelled before its first step.
        """
        task_id, task = self._start(name, self._guard(name, work), task_id)
        if purpose is not None:
            self._register(task_id, task, purpose)
        # A task that is cancelled before its first step never awaits its work.
        task.add_done_callback(lambda _: work.close())
        if at_end is not None:
            task.add_done_callback(lambda _: at_end())
        return task_id

    async def finish(
        self, name: str, work: Coroutine[Any, Any, Result], purpose: TaskOwner | None = None
    ) -> Result:
        """Await `work`, which runs to its end even if the caller is cancelled.

        With a purpose it can be found and stopped like a task that a user started; stopping it raises
        CancelledError in the caller.
        """
        task_id, task = self._start(name, work)
        if purpose is not None:
            self._register(task_id, task, purpose)
        return await asyncio.shield(task)

    def list(self) -> dict[str, str]:
        """Return the names of the running tasks by id."""
        return {task_id: task.get_name() for task_id, task in self._running.items()}

    @property
    def count(self) -> int:
        """Number of running tasks, those that users started included."""
        return len(self._running)

    def started(self, *, chat_id: str | None = None) -> Sequence[TaskInfo]:
        """Return the running tasks that users started, all or those of one chat, oldest first."""
        return [info for info in self._started.values() if chat_id is None or info.purpose.chat_id == chat_id]

    def find(self, task_id: str) -> TaskInfo | None:
        """Return a running task that a user started, None if there is none."""
        return self._started.get(task_id)

    async def stop(self, task_id: str) -> bool:
        """Cancel a task and wait until it has ended; False if no such task runs.

        A second stop does not interrupt the clean-up of a cancelled task.
        """
        task = self._running.get(task_id)
        if task is None:
            return False
        if not task.cancelling():
            task.cancel()
        await asyncio.wait([task])
        return True

    async def end_started(self) -> int:
        """Cancel the tasks that users started, wait for all of them and return their number."""
        self.is_closing = True
        running = [self._running[task_id] for task_id in self._started if task_id in self._running]
        for task in running:
            if not task.cancelling():
                task.cancel()
        if running:
            await asyncio.wait(running)
        return len(running)

    async def close(self) -> None:
        """Cancel every task and wait for all of them."""
        self.is_closing = True
        running = list(self._running.values())
        for task_id, task in self._running.items():
            if task_id not in self._started or not task.cancelling():
                task.cancel()
        if running:
            await asyncio.wait(running)

    def _start(
        self, name: str, work: Coroutine[Any, Any, Result], given_id: str | None = None
    ) -> tuple[str, asyncio.Task[Result]]:
        task_id = given_id or ids.new_id()
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running[task_id] = task
        task.add_done_callback(lambda _: self._running.pop(task_id, None))
        return task_id, task

    def _register(self, task_id: str, task: asyncio.Task[Any], purpose: TaskOwner) -> None:
        self._started[task_id] = TaskInfo(task_id, task.get_name(), purpose, ids.now())
        task.add_done_callback(lambda _: self._started.pop(task_id, None))

    async def _guard(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            log.exception("background task failed", extra={"task": name})
