"""A progress that remembers what it was told."""

import threading


class Gauge:
    """The stages that were begun: title, total, and how far each came."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int, int]] = []
        self._lock = threading.Lock()

    def begin(self, title: str, total: int) -> None:
        self.stages.append((title, total, 0))

    def advance(self, amount: int) -> None:
        with self._lock:
            title, total, done = self.stages[-1]
            self.stages[-1] = (title, total, done + amount)
