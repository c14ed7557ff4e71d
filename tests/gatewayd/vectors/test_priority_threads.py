import os
import queue
import threading

import pytest

from gatewayd.vectors import priority_threads
from gatewayd.vectors.priority_threads import PASSAGE_NICENESS, JobThread


@pytest.mark.parametrize(("is_patient", "added"), [(True, PASSAGE_NICENESS), (False, 0)])
def test_jobs_are_done_in_order_with_the_niceness_of_the_lane(is_patient: bool, added: int) -> None:
    lane = JobThread("test", 1, is_patient=is_patient)
    done: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    for number in range(5):
        lane.put(
            lambda number=number: done.put(
                (number, os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
            )
        )
    niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + added, 19)
    assert [done.get(timeout=10) for _ in range(5)] == [(number, niceness) for number in range(5)]


def test_a_lane_works_with_as_many_threads_as_it_was_given() -> None:
    lane = JobThread("test", 3, is_patient=False)
    together = threading.Barrier(4)
    for _ in range(3):
        lane.put(lambda: together.wait(timeout=10) and None)
    together.wait(timeout=10)


def test_memory_is_returned_when_no_passage_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    returned: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: list[int] = []
    monkeypatch.setattr(priority_threads, "return_memory", lambda: returned.put(len(done)))
    begin = threading.Event()
    lane = JobThread("test", 1, is_patient=True)
    lane.put(lambda: begin.wait(timeout=10) and None)
    for number in range(3):
        lane.put(lambda number=number: done.append(number))
    begin.set()
    assert returned.get(timeout=10) == 3
