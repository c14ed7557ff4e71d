"""Asks a daemon for its health again and again, from a process of its own, and prints how long it took.

    python -m tests.fakes.daemons.health_probe URL PID

A line for each request: milliseconds without those in which a thread of the daemon, or the probe, had to wait
for a processor, and those, which other processes are to blame for. A thread that waits may hold the lock of
the interpreter, for which the loop waits then. The threads of the daemon are only looked at when there is
no answer after some milliseconds, for which nobody else is to blame: to look takes longer than most answers.
The probe ends with its standard input.
"""

import contextlib
import os
import re
import select
import socket
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.005
QUICK_SECONDS = 0.02


class Threads:
    """How long the threads of a process have waited for a processor; the files that tell it stay open."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}/task")
        self._files: dict[str, int] = {}

    def waited(self) -> dict[str, float]:
        """Return how many seconds each thread has waited so far."""
        names = [path.name for path in self._folder.iterdir()]
        for name in self._files.keys() - set(names):
            os.close(self._files.pop(name))
        found = {}
        for name in names:
            # A thread may end meanwhile.
            with contextlib.suppress(OSError):
                if name not in self._files:
                    self._files[name] = os.open(f"{self._folder}/{name}/schedstat", os.O_RDONLY)
                found[name] = int(os.pread(self._files[name], 100, 0).split()[1]) / 1e9
        return found

    def crowd_since(self, before: dict[str, float]) -> float:
        """Return how long the thread that waited most has waited since a measurement."""
        now = self.waited()
        return max((seconds - before.get(name, 0.0) for name, seconds in now.items()), default=0.0)


class Health:
    """A connection on which the daemon is asked for its health."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._channel = socket.create_connection((str(address.hostname), address.port), timeout=120)
        self._request = f"GET /health HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode()

    def ask(self) -> None:
        """Send a request."""
        self._channel.sendall(self._request)

    def is_answered(self) -> bool:
        """Wait a moment for the answer to begin."""
        return bool(select.select([self._channel], [], [], QUICK_SECONDS)[0])

    def read(self) -> None:
        """Read the answer."""
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0 or len(data) < end + 4 + _length(data[:end]):
            part = self._channel.recv(65536)
            if not part:
                raise ConnectionError(f"the daemon closed the connection after {data!r}")
            data += part


def _length(head: bytes) -> int:
    found = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    if found is None:
        raise ValueError(f"no length in {head!r}")
    return int(found[1])


def main() -> None:
    """Probe until nobody listens."""
    health = Health(sys.argv[1])
    daemon, own = Threads(int(sys.argv[2])), Threads(os.getpid())
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.wait(PAUSE_SECONDS):
        before = own.waited()
        began = time.perf_counter()
        health.ask()
        busy = None if health.is_answered() else daemon.waited()
        health.read()
        took = time.perf_counter() - began
        crowd = own.crowd_since(before) + (0.0 if busy is None else daemon.crowd_since(busy))
        sys.stdout.write(f"{max(took - crowd, 0.0) * 1000:.1f} {crowd * 1000:.1f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
