"""Stopping plain code."""

import contextlib
import threading

import pytest

from gatewayd.plugins.runtime.interrupts import Interrupted, StoppableCode, interrupt, is_stopped

pytestmark = pytest.mark.timeout(30)


def test_code_that_spins_is_stopped_once() -> None:
    code, entered, told, go = StoppableCode(), threading.Event(), threading.Event(), threading.Event()
    found: list[object] = []

    def spin() -> str:
        try:
            while True:
                entered.set()
        finally:
            told.set()
            go.wait()

    thread = threading.Thread(target=lambda: found.append(code.run(spin).error))
    thread.start()
    entered.wait()
    code.stop()
    told.wait()
    code.stop()
    go.set()
    thread.join()
    assert isinstance(found[0], Interrupted)


def test_code_that_has_ended_is_not_stopped() -> None:
    code = StoppableCode()
    assert code.run(lambda: 1).value == 1
    code.stop()
    assert code.run(lambda: 2).value == 2


def test_code_that_is_stopped_at_its_end_leaves_nothing_behind() -> None:
    code = StoppableCode()
    code.run(code.stop)
    assert {code.run(lambda: 3).value for _ in range(100)} == {3}


def test_a_thread_is_interrupted() -> None:
    entered = threading.Event()

    def spin() -> None:
        with contextlib.suppress(Interrupted):
            while True:
                entered.set()

    thread = threading.Thread(target=spin)
    interrupt(thread)
    thread.start()
    entered.wait()
    interrupt(thread)
    thread.join()
    assert not thread.is_alive()


def test_code_that_catches_its_stop_knows_of_it() -> None:
    code = StoppableCode()

    def work() -> tuple[bool, bool]:
        before = is_stopped()
        with contextlib.suppress(Interrupted):
            code.stop()
            for _ in range(1000):
                pass
        return before, is_stopped()

    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append((code.run(work).value, is_stopped())))
    thread.start()
    thread.join()
    assert found == [((False, True), False)]
