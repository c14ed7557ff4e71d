"""Interruption of synchronous plugin code, by an exception raised in its thread.

Nothing else ends `while True: pass`, which slows down the whole gateway. A blocked call gets the exception
when it returns to Python code.
"""

import ctypes
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from gatewayd.plugins.runtime.invoke import PluginOutcome, run_guarded


class Interrupted(SystemExit):
    """Raised in code of a plugin to stop it; a SystemExit, which `except Exception` does not catch."""


def interrupt(thread: threading.Thread) -> None:
    """Raise Interrupted once in a running thread."""
    if thread.ident is not None:
        _raise_in(thread.ident, ctypes.py_object(Interrupted))


class _Running(threading.local):
    """The code that runs in a thread."""

    code: "StoppableCode | None" = None


_running: Final = _Running()


def is_stopped() -> bool:
    """Whether the code of this thread was stopped, even if it caught the exception."""
    return _running.code is not None and _running.code.was_stopped


class StoppableCode:
    """Code that runs in one thread and can be stopped from others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self.was_stopped = False
        """Whether `stop` was called while it ran."""

    def run(self, work: Callable[[], Any]) -> PluginOutcome:
        """Run code in this thread and return its outcome, whose error is Interrupted when it was stopped."""
        ran = run_guarded(partial(self._run, work))
        # The exception may come when the code has just ended, but it comes once and not after `_run`.
        return PluginOutcome(error=ran.error) if ran.error is not None else ran.value

    def stop(self) -> None:
        """Raise Interrupted in the code if it runs; only once, so that it can clean up."""
        with self._lock:
            if self._thread is not None and not self.was_stopped:
                self.was_stopped = True
                _raise_in(self._thread, ctypes.py_object(Interrupted))

    def _run(self, work: Callable[[], Any]) -> PluginOutcome:
        _running.code = self
        with self._lock:
            self._thread = threading.get_ident()
        outcome = run_guarded(work)
        with self._lock:
            if self.was_stopped:
                _raise_in(threading.get_ident(), None)
            self._thread = None
        _running.code = None
        return outcome


def _raise_in(thread: int, error: Any) -> None:
    """Raise an exception type in a thread; None withdraws one that is still pending."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), error)
