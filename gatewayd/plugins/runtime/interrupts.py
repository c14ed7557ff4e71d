"""Stops plain code of plugins: an exception is raised in its thread, wherever it is in Python code.

Nothing else ends `while True: pass`, which takes the time of everybody. A blocked call is reached once it
comes back.
"""

import ctypes
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from gatewayd.plugins.runtime.invoke import CallOutcome, run_guarded


class Interrupted(SystemExit):
    """Raised inside code of a plugin that is to end; plugins do not catch it by accident."""


def interrupt(thread: threading.Thread) -> None:
    """Raise Interrupted in a thread that is running, once."""
    if thread.ident is not None:
        _raise_in(thread.ident, ctypes.py_object(Interrupted))


class _Running(threading.local):
    """What runs in a thread."""

    code: "StoppableCode | None" = None


_running: Final = _Running()


def is_stopped() -> bool:
    """Tell whether the code that runs in this thread was told to stop, although it may have caught that."""
    return _running.code is not None and _running.code.is_told


class StoppableCode:
    """Code that runs in some thread, and can be stopped from others as long as it does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self.is_told = False
        """Whether it was stopped while it ran."""

    def run(self, work: Callable[[], Any]) -> CallOutcome:
        """Run code here and return what came of it; it fails with Interrupted when it was stopped in time."""
        ran = run_guarded(partial(self._run, work))
        # The exception may come when the code has just ended, but it comes once and not after `_run`.
        return CallOutcome(error=ran.error) if ran.error is not None else ran.value

    def stop(self) -> None:
        """Raise Interrupted in the code if it runs now; only the first time, as it may clean up."""
        with self._lock:
            if self._thread is not None and not self.is_told:
                self.is_told = True
                _raise_in(self._thread, ctypes.py_object(Interrupted))

    def _run(self, work: Callable[[], Any]) -> CallOutcome:
        _running.code = self
        with self._lock:
            self._thread = threading.get_ident()
        outcome = run_guarded(work)
        with self._lock:
            if self.is_told:
                _raise_in(threading.get_ident(), None)
            self._thread = None
        _running.code = None
        return outcome


def _raise_in(thread: int, error: Any) -> None:
    """Have an exception type raised in a thread, or with None take back what was not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), error)
