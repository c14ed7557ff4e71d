"""The standard output and error of the daemon: written by threads, so that nobody waits for who reads them.

A pipe that is not read takes 64 KiB, and then its writer stands still: on the event loop, the whole daemon.
Here what is written is queued, and what does not fit into the queue is left out and counted.
"""

import contextlib
import errno
import io
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

MAX_QUEUED_BYTES: Final = 4 << 20
"""Of each output."""
CLOSE_SECONDS: Final = 2.0
"""How long the end waits for what is queued to be written."""
BLOCK_BYTES: Final = 1 << 16
PIECE_BYTES: Final = select.PIPE_BUF
"""A pipe that can be written at all takes this many at once."""

_Piece = tuple[bytes, int]
"""What is to be written, and how many lines are lost when it is not."""

Report = Callable[[int], str]
"""Returns the line that tells how many lines were left out."""


def plain_report(lost: int) -> str:
    """Return the line for an output that is not a log."""
    return f"gatewayd: {lost} lines of output were lost: what reads it did not keep up\n"


class QueuedOutput(io.BufferedIOBase):
    """A file descriptor that is written by a thread of its own, in the order in which it was given.

    `report` makes the line that stands where lines were left out, or could not be written.
    """

    def __init__(self, descriptor: int, limit: int = MAX_QUEUED_BYTES) -> None:
        self.report: Report = plain_report
        self._descriptor = descriptor
        self._limit = limit
        self._lock = threading.Lock()
        self._pieces: deque[_Piece | threading.Event] = deque()
        self._queued = 0
        self._lost = 0
        self._is_idle = True
        self._is_broken = False
        self._is_direct = False
        self._is_stalled = False
        self._work = threading.Lock()
        self._work.acquire()
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
        with self._lock:
            if self._is_direct:
                self._write_now(piece)
            elif self._queued + len(piece) > self._limit:
                self._lost += piece.count(b"\n")
            else:
                self._put_report()
                self._put((piece, piece.count(b"\n")))
        return len(piece)

    # The end ---------------------------------------------------------------------------------------------

    def drain(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until what is queued by now is written; False when that takes longer."""
        written = threading.Event()
        with self._lock:
            self._put(written)
        return written.wait(seconds)

    def finish(self, seconds: float = CLOSE_SECONDS) -> None:
        """Write what is queued, at most for so long; what comes later is written at once or not at all."""
        self._is_stalled = not self.drain(seconds)
        with self._lock:
            self._is_direct = True

    # Details, with the lock ------------------------------------------------------------------------------

    def _put(self, piece: _Piece | threading.Event) -> None:
        self._pieces.append(piece)
        if isinstance(piece, tuple):
            self._queued += len(piece[0])
        if self._is_idle:
            self._is_idle = False
            self._work.release()

    def _put_report(self) -> None:
        if self._lost:
            lost, self._lost = self._lost, 0
            self._put((self.report(lost).encode("utf-8", "backslashreplace"), lost))

    def _write_now(self, piece: bytes) -> None:
        """Write as far as the descriptor takes it; a reader that stands still is waited for once."""
        for start in range(0, len(piece), PIECE_BYTES):
            if self._is_stalled or not _wait(self._descriptor, CLOSE_SECONDS):
                self._is_stalled = True
                return
            with contextlib.suppress(OSError):
                os.write(self._descriptor, piece[start : start + PIECE_BYTES])

    # Details, in the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._work.acquire()
            while (taken := self._take()) is not None:
                block, lines, written = taken
                is_written = not block or _written(self._descriptor, block)
                with self._lock:
                    self._queued -= len(block)
                    self._is_broken = not is_written
                    if self._is_broken:
                        self._lost += lines
                if written is not None:
                    written.set()

    def _take(self) -> tuple[bytes, int, threading.Event | None] | None:
        """Return what is to be written next with its lines, and who waits for it; None for nothing."""
        parts: list[bytes] = []
        size = lines = 0
        with self._lock:
            if not self._pieces and not self._is_broken:
                self._put_report()
            while self._pieces and size < BLOCK_BYTES:
                piece = self._pieces.popleft()
                if isinstance(piece, threading.Event):
                    return b"".join(parts), lines, piece
                parts.append(piece[0])
                size += len(piece[0])
                lines += piece[1]
            self._is_idle = not parts
        return (b"".join(parts), lines, None) if parts else None


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
