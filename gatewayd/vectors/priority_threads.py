"""Job queues with threads of their own: low priority for passages, normal priority for queries."""

import queue
import threading
from collections.abc import Callable
from typing import Final

from gatewayd.process_memory import return_memory
from gatewayd.workers import make_nice

Job = Callable[[], None]

PASSAGE_NICENESS: Final = 10
"""Increment of the niceness of threads for passages."""


class JobThread:
    """A queue of jobs with daemon threads; `is_patient` lowers their priority."""

    def __init__(self, name: str, threads: int, *, is_patient: bool) -> None:
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._is_patient = is_patient
        for number in range(threads):
            threading.Thread(target=self._work, name=f"{name} {number}", daemon=True).start()

    def put(self, job: Job) -> None:
        """Append a job to the queue."""
        self._jobs.put(job)

    def _work(self) -> None:
        if self._is_patient:
            lower_priority()
        while True:
            self._jobs.get()()
            if self._is_patient and self._jobs.empty():
                return_memory()


def lower_priority() -> None:
    """Add to the niceness of the calling thread."""
    # Thread id 0 is the calling thread: a confined process may change no other.
    make_nice(0, PASSAGE_NICENESS)
