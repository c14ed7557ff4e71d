"""Stop request: a signal takes effect at the next safe place, a second one ends the program at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StoppedError(Exception):
    """A stop of the run was requested."""


class Stop:
    """Whether a stop of the run was requested."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Request the stop."""
        self._event.set()

    @property
    def is_set(self) -> bool:
        """Whether the stop was requested."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise StoppedError if the stop was requested."""
        if self._event.is_set():
            raise StoppedError

    def sleep(self, seconds: float) -> None:
        """Return after some seconds; raise StoppedError as soon as the stop is requested."""
        if self._event.wait(seconds):
            raise StoppedError

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let SIGINT and SIGTERM request the stop; only the main thread may call this."""
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
