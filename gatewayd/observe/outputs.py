"""Queued standard output and error: threads write them, so that a slow reader does not block the daemon.

A pipe that is not read takes 64 KiB and then blocks its writer, which on the event loop is the whole daemon.
Here writes are queued; records that do not fit into the queue are dropped and counted.
"""

import contextlib
import errno
import io
import itertools
import os
import queue
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TextIO

MAX_QUEUED_BYTES: Final = 4 << 20
"""Maximum size of the queue of each output."""
CLOSE_SECONDS: Final = 2.0
"""Maximum time to write the queue at the end."""
BLOCK_BYTES: Final = 1 << 16
UNIT_BYTES: Final = 256
"""Unit in which the queue is counted; a part of a unit counts as a whole."""
PIECE_BYTES: Final = select.PIPE_BUF
"""A pipe that is ready for writing takes so many bytes at once."""

Report = Callable[[int], str]
"""Returns the line with the number of dropped records."""


def plain_report(lost: int) -> str:
    """Return the line for an output that is not a log."""
    return f"gatewayd: {lost} lines of output were dropped: the reader of the output is too slow\n"


class QueuedOutput(io.BufferedIOBase):
    """A file descriptor with a queue and a writer thread; the order of writes is kept.

    `report` returns the line that replaces dropped records and failed writes.

    There is no lock: the garbage collector may run a finalizer that logs at any moment, also within a write
    of the same thread. Threads share counters of `itertools.count`, which are atomic.
    """

    def __init__(self, descriptor: int, limit: int = MAX_QUEUED_BYTES) -> None:
        self.report: Report = plain_report
        self._descriptor = descriptor
        self._limit = limit // UNIT_BYTES
        # Pieces to write, totals of records dropped before the next piece, and events to set.
        self._queue: queue.SimpleQueue[bytes | int | threading.Event] = queue.SimpleQueue()
        self._units, self._losses = itertools.count(1), itertools.count(1)
        # Totals: units queued, records dropped, and records of which the queue has a report.
        self._put = self._lost = self._marked = 0
        # Of the thread: units written, dropped records that it knows of, and those still to report.
        self._taken = self._known = self._owed = 0
        self._is_broken = self._is_direct = self._is_stalled = False
        threading.Thread(target=self._run, name="output writer", daemon=True).start()

    # What a text stream needs ----------------------------------------------------------------------------

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether the descriptor is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, data: Any) -> int:
        """Queue bytes, or drop them if the queue is full."""
        piece = bytes(data)
        units = _units(piece)
        if self._is_direct:
            self._write_now(piece)
        elif self._put + units - self._taken > self._limit:
            if _is_record(piece):
                self._lost = next(self._losses)
        else:
            if self._marked != self._lost:
                self._marked = self._lost
                self._queue.put(self._marked)
            for _ in range(units):
                self._put = next(self._units)
            self._queue.put(piece)
        return len(piece)

    # The end ---------------------------------------------------------------------------------------------

    def drain(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until the present queue is written; return False after `seconds`."""
        written = threading.Event()
        self._queue.put(written)
        return written.wait(seconds)

    def finish(self, seconds: float = CLOSE_SECONDS) -> None:
        """Write the queue for at most `seconds`; later writes bypass the queue or are dropped."""
        self._is_stalled = not self.drain(seconds)
        self._is_direct = True

    def _write_now(self, piece: bytes) -> None:
        """Write as much as the descriptor takes; wait for a blocked reader only once."""
        for start in range(0, len(piece), PIECE_BYTES):
            if self._is_stalled or not _wait(self._descriptor, CLOSE_SECONDS):
                self._is_stalled = True
                return
            with contextlib.suppress(OSError):
                os.write(self._descriptor, piece[start : start + PIECE_BYTES])

    # The thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._write_block(self._queue.get())
            if self._queue.empty() and not self._is_broken:
                self._owe(self._lost)
                self._write([])

    def _write_block(self, item: bytes | int | threading.Event) -> None:
        """Write an item and the queued ones after it, up to the size of a block."""
        parts: list[bytes] = []
        size = 0
        while True:
            if isinstance(item, bytes):
                parts.append(item)
                size += len(item)
            else:
                self._write(parts)
                parts = []
                if isinstance(item, int):
                    self._owe(item)
                else:
                    item.set()
            if size >= BLOCK_BYTES or self._queue.empty():
                break
            item = self._queue.get()
        self._write(parts)

    def _owe(self, lost: int) -> None:
        """Record the total of records dropped before the next write."""
        self._owed += max(0, lost - self._known)
        self._known = max(lost, self._known)

    def _write(self, parts: Sequence[bytes]) -> None:
        """Write the report of dropped records and the pieces; pieces of a failed write count as dropped."""
        report = self.report(self._owed).encode("utf-8", "backslashreplace") if self._owed else b""
        if not parts and not report:
            return
        self._is_broken = not _written(self._descriptor, report + b"".join(parts))
        self._owed = self._owed + sum(map(_is_record, parts)) if self._is_broken else 0
        self._taken += sum(map(_units, parts))


@contextmanager
def queued_outputs(seconds: float = CLOSE_SECONDS) -> Iterator[None]:
    """Queue writes to `sys.stdout` and `sys.stderr`; at the end write the queue for at most `seconds`.

    The streams are not restored: they write directly then. Streams without a descriptor are not queued.
    """
    outputs = []
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        queued = None if stream is None else _queued(stream)
        if queued is not None:
            setattr(sys, name, queued)
            outputs.append(queued.buffer)
    try:
        yield
    finally:
        until = time.monotonic() + seconds
        for output in outputs:
            output.finish(max(0.0, until - time.monotonic()))


def _units(piece: bytes) -> int:
    return len(piece) // UNIT_BYTES + 1


def _is_record(piece: bytes) -> bool:
    return piece.endswith(b"\n")


def _queued(stream: TextIO) -> Any:
    try:
        stream.flush()
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return None
    return io.TextIOWrapper(
        QueuedOutput(descriptor),
        encoding=stream.encoding,
        errors=stream.errors,
        newline="\n",
        write_through=True,
    )


def _written(descriptor: int, block: bytes) -> bool:
    """Write a block without a time limit; return False if it cannot be written whole."""
    left = memoryview(block)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except OSError as error:
            if error.errno != errno.EAGAIN or not _wait(descriptor, None):
                return False
    return True


def _wait(descriptor: int, seconds: float | None) -> bool:
    """Wait until a descriptor takes bytes; return False after `seconds` or on an error."""
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT)
    events = poller.poll(None if seconds is None else seconds * 1000)
    return bool(events) and not events[0][1] & (select.POLLERR | select.POLLNVAL)
