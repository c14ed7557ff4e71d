"""The wish to end: a signal is noticed at the next safe place, a second one ends the program at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StoppedError(Exception):
    """Somebody wants the run to end."""


class Stop:
    """Whether somebody wants the run to end."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask for the end."""
        self._event.set()

    @property
    def is_set(self) -> bool:
        """Whether the end was asked for."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise StoppedError when the end was asked for."""
        if self._event.is_set():
            raise StoppedError

    def sleep(self, seconds: float) -> None:
        """Return after some seconds; raise StoppedError as soon as the end is asked for."""
        if self._event.wait(seconds):
            raise StoppedError

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM as the wish to end; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._heard) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self._event.set()
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
