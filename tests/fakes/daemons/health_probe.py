"""Asks a daemon for its health again and again, from a process of its own, and prints how long it took.

    python -m tests.fakes.daemons.health_probe URL PID

A line for each request: milliseconds without those in which a thread of the daemon, or the probe, had to wait
for a processor, and those, which other processes are to blame for. A thread that waits may hold the lock of
the interpreter, for which the loop waits then. The probe ends with its standard input.
"""

import contextlib
import http.client
import os
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.005


def waited(pid: int) -> dict[str, float]:
    """Return how many seconds each thread of a process has waited for a processor."""
    found = {}
    for path in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end meanwhile.
        with contextlib.suppress(OSError):
            found[path.name] = int((path / "schedstat").read_text().split()[1]) / 1e9
    return found


def crowd_since(before: dict[str, float], pid: int) -> float:
    """Return how long the thread that waited most has waited since a measurement."""
    now = waited(pid)
    return max((seconds - before.get(name, 0.0) for name, seconds in now.items()), default=0.0)


def main() -> None:
    """Probe until nobody listens."""
    url, pid = urlsplit(sys.argv[1]), int(sys.argv[2])
    connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=120)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.wait(PAUSE_SECONDS):
        daemon, own = waited(pid), waited(os.getpid())
        began = time.perf_counter()
        connection.request("GET", "/health")
        connection.getresponse().read()
        took = time.perf_counter() - began
        crowd = crowd_since(daemon, pid) + crowd_since(own, os.getpid())
        sys.stdout.write(f"{max(took - crowd, 0.0) * 1000:.1f} {crowd * 1000:.1f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
