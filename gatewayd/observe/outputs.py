"""The standard output and error of the daemon: written by threads, so that nobody waits for who reads them.

A pipe that is not read takes 64 KiB, and then its writer stands still: on the event loop, the whole daemon.
Here what is written is queued, and what does not fit into the queue is left out and counted.
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
"""Of each output."""
CLOSE_SECONDS: Final = 2.0
"""How long the end waits for what is queued to be written."""
BLOCK_BYTES: Final = 1 << 16
UNIT_BYTES: Final = 256
"""What is queued is counted in these, each begun one whole."""
PIECE_BYTES: Final = select.PIPE_BUF
"""A pipe that can be written at all takes this many at once."""

Report = Callable[[int], str]
"""Returns the line that tells how many records were left out."""


def plain_report(lost: int) -> str:
    """Return the line for an output that is not a log."""
    return f"gatewayd: {lost} lines of output were lost: what reads it did not keep up\n"


class QueuedOutput(io.BufferedIOBase):
    """A file descriptor that is written by a thread of its own, in the order in which it was given.

    `report` makes the line that stands where something was left out, or could not be written.

    There is no lock: the collector may run a finalizer that logs at any moment, in any thread, and so in the
    middle of a write. What several threads count is counted by `itertools.count`, which no thread interrupts.
    """

    def __init__(self, descriptor: int, limit: int = MAX_QUEUED_BYTES) -> None:
        self.report: Report = plain_report
        self._descriptor = descriptor
        self._limit = limit // UNIT_BYTES
        # Pieces to write, totals of what was left out before the next piece, and who waits for the thread.
        self._queue: queue.SimpleQueue[bytes | int | threading.Event] = queue.SimpleQueue()
        self._units, self._losses = itertools.count(1), itertools.count(1)
        # Totals: units that were queued, records that were left out, and those of them that are in the queue.
        self._put = self._lost = self._marked = 0
        # Of the thread: units that it took, records of `_lost` that it knows of, and those to be reported.
        self._taken = self._known = self._owed = 0
        self._is_broken = self._is_direct = self._is_stalled = False
        threading.Thread(target=self._run, name="output writer", daemon=True).start()

    # What a text stream needs ----------------------------------------------------------------------------

    def writable(self) -> bool:
        """Tell that it can be written."""
        return True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Tell whether it is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, data: Any) -> int:
        """Queue bytes, or leave them out when the queue is full."""
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
        """Wait until what is queued by now is written; False when that takes longer."""
        written = threading.Event()
        self._queue.put(written)
        return written.wait(seconds)

    def finish(self, seconds: float = CLOSE_SECONDS) -> None:
        """Write what is queued, at most for so long; what comes later is written at once or not at all."""
        self._is_stalled = not self.drain(seconds)
        self._is_direct = True

    def _write_now(self, piece: bytes) -> None:
        """Write as far as the descriptor takes it; a reader that stands still is waited for once."""
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
        """Write an item and those that follow it, as far as there are some and a block takes them."""
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
        """Note up to which total records were left out before what is written next."""
        self._owed += max(0, lost - self._known)
        self._known = max(lost, self._known)

    def _write(self, parts: Sequence[bytes]) -> None:
        """Write pieces, before them the report of what was left out; what fails is left out, too."""
        report = self.report(self._owed).encode("utf-8", "backslashreplace") if self._owed else b""
        if not parts and not report:
            return
        self._is_broken = not _written(self._descriptor, report + b"".join(parts))
        self._owed = self._owed + sum(map(_is_record, parts)) if self._is_broken else 0
        self._taken += sum(map(_units, parts))


@contextmanager
def queued_outputs(seconds: float = CLOSE_SECONDS) -> Iterator[None]:
    """Queue what is written to `sys.stdout` and `sys.stderr`; at the end write what is queued, for so long.

    The streams stay the queued ones, which write at once then. Streams without a descriptor stay as they are.
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
    """Write a block, however long that takes; False when it cannot be written whole."""
    left = memoryview(block)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except OSError as error:
            if error.errno != errno.EAGAIN or not _wait(descriptor, None):
                return False
    return True


def _wait(descriptor: int, seconds: float | None) -> bool:
    """Wait until a descriptor takes bytes; False when it does not, or never will."""
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT)
    events = poller.poll(None if seconds is None else seconds * 1000)
    return bool(events) and not events[0][1] & (select.POLLERR | select.POLLNVAL)
