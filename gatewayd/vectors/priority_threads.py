"""Threads that work through jobs in order: many patient ones for passages, a prompt one for queries."""

import queue
import threading
from collections.abc import Callable
from typing import Final

from gatewayd.process_memory import return_memory
from gatewayd.workers import make_nice

Job = Callable[[], None]

PASSAGE_NICENESS: Final = 10
"""What is added to the niceness of threads whose jobs can wait."""


class JobThread:
    """A queue of jobs with threads that end with the process."""

    def __init__(self, name: str, threads: int, *, is_patient: bool) -> None:
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._is_patient = is_patient
        for number in range(threads):
            threading.Thread(target=self._work, name=f"{name} {number}", daemon=True).start()

    def put(self, job: Job) -> None:
        """Have a job done after those that were put before."""
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
    # By its own number: a confined process may do that and no more.
    make_nice(0, PASSAGE_NICENESS)
