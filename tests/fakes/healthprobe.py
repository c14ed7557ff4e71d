"""Asks a daemon for its health again and again, from a process of its own, and prints how long it took.

    python -m tests.fakes.healthprobe URL PID

A line for each request: milliseconds without those in which the loop of the daemon, or the probe, had to wait
for a processor, and those, which other processes are to blame for. It ends with its standard input.
"""

import http.client
import os
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.005


def waited(pid: int) -> float:
    """Return how many seconds the first thread of a process has waited for a processor."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def main() -> None:
    """Probe until nobody listens."""
    url, pid = urlsplit(sys.argv[1]), int(sys.argv[2])
    connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=120)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.wait(PAUSE_SECONDS):
        before = waited(pid) + waited(os.getpid())
        began = time.perf_counter()
        connection.request("GET", "/health")
        connection.getresponse().read()
        took = time.perf_counter() - began
        crowd = waited(pid) + waited(os.getpid()) - before
        sys.stdout.write(f"{max(took - crowd, 0.0) * 1000:.1f} {crowd * 1000:.1f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
