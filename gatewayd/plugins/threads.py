"""Plain code of plugins, each call in a thread of its own: one that never returns takes nobody's place."""

import asyncio
import contextvars
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from gatewayd.plugins.homes import give
from gatewayd.plugins.interrupts import Stoppable
from gatewayd.plugins.invoke import Outcome
from gatewayd.plugins.items import LeftBehind, ThreadProducer

TURN: Final = 0.0005
"""Seconds that a thread may compute while others wait. Each answer waits several turns for each plugin that
computes: with the 5 ms of Python three such plugins make a request last more than 100 ms."""


class ShortTurns:
    """Lets threads compute for shorter turns while a plugin lives, so that the daemon's loop waits less.

    Plugins begin and end in threads of their own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living = 0
        self._before = 0.0

    def begin(self) -> None:
        """Count a plugin that begins to live."""
        with self._lock:
            self._living += 1
            if self._living == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, TURN))

    def end(self) -> None:
        """Count one that has ended."""
        with self._lock:
            self._living -= 1
            if self._living == 0:
                sys.setswitchinterval(self._before)


async def run_in_thread(
    work: Callable[[], Any],
    context: contextvars.Context,
    left: LeftBehind,
    on_left: Callable[[], object],
) -> Outcome:
    """Run plain code in a new thread; an iterator that it returns is served there, as a ThreadProducer.

    Being cancelled interrupts the code and does not wait for it: it is counted until it ends, and its result
    is thrown away.
    """
    future: Future[Outcome] = Future()
    code = Stoppable()
    thread = threading.Thread(
        target=context.run, args=(_work, code, work, future, left), name="plugin call", daemon=True
    )
    thread.start()
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        left.add(1)
        if future.cancel():
            code.stop()
            on_left()
        else:
            left.add(-1)
            _drop(future.result())
        raise


def _work(code: Stoppable, work: Callable[[], Any], future: "Future[Outcome]", left: LeftBehind) -> None:
    outcome = code.run(work)
    if outcome.error is None and hasattr(type(outcome.value), "__next__"):
        outcome = Outcome(ThreadProducer(outcome.value, left))
    if not give(future, outcome):
        left.add(-1)
        _drop(outcome)
    if isinstance(outcome.value, ThreadProducer):
        outcome.value.serve()


def _drop(outcome: Outcome) -> None:
    if isinstance(outcome.value, ThreadProducer):
        outcome.value.abandon()
