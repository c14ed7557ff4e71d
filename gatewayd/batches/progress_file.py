"""Progress of a batch on disk: the answers to finished lines, which survive a restart.

A record is `NUMBER OK JSON` and a line end: the number of the line from 1, 1 for a success or 0, and the line
of the result. A half record at the end, of a killed daemon, is removed: its line runs again.
"""

import os
import threading
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gatewayd.fsync import sync_to_disk


class FinishedLine(NamedTuple):
    """One record."""

    number: int
    is_success: bool
    result: bytes


class ProgressFile:
    """The file of one batch. Its methods block and run in threads.

    The thread of a cancelled task goes on: `close` waits for it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._done = bytearray()
        self._lock = threading.Lock()
        self.size = 0
        """Number of bytes of all records."""
        self.completed = 0
        self.failed = 0

    def open(self, total: int) -> None:
        """Read the records of an earlier run, and open the file for more."""
        self._done = bytearray(total + 1)
        self.completed = self.failed = 0
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.size = 0
        for record, end in self._records():
            self.size = end
            self._count(record)
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, self.size)
        sync_to_disk(self._path.parent)

    def is_done(self, number: int) -> bool:
        """Whether a line has its answer."""
        return bool(self._done[number])

    def append(self, *records: FinishedLine) -> None:
        """Store answers; when this returns, they survive a power failure."""
        data = encode_records(records)
        with self._lock:
            if self._file == -1:
                raise RuntimeError("cannot write to a progress file that is not open")
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
            self.size += len(data)
            for record in records:
                self._count(record)

    def records(self) -> Iterator[FinishedLine]:
        """Yield the records; of a line that was stored twice the first one."""
        seen = bytearray(len(self._done))
        for record, _ in self._records():
            if not seen[record.number]:
                seen[record.number] = 1
                yield record

    def clear(self) -> None:
        """Begin a copy of records that are stored elsewhere."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))

    def extend(self, piece: bytes) -> None:
        """Add whole records to a copy."""
        with self._path.open("ab") as file:
            file.write(piece)

    def sync(self) -> None:
        """Write a copy out to the disk."""
        sync_to_disk(self._path)
        sync_to_disk(self._path.parent)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file != -1:
                os.close(self._file)
                self._file = -1

    def remove(self) -> None:
        """Delete the file."""
        self.close()
        self._path.unlink(missing_ok=True)

    def _count(self, record: FinishedLine) -> None:
        if not self._done[record.number]:
            self._done[record.number] = 1
            self.completed += record.is_success
            self.failed += not record.is_success

    def _records(self) -> Iterator[tuple[FinishedLine, int]]:
        """Yield the whole records with the places of their ends."""
        if not self._path.exists():
            return
        end = 0
        with self._path.open("rb") as file:
            for raw in file:
                record = parse_record(raw)
                if record is None or record.number >= len(self._done):
                    return
                end += len(raw)
                yield record, end


def parse_record(raw: bytes) -> FinishedLine | None:
    """Return a record; None for a half one, and for what a power failure left in its place."""
    number, _, rest = raw.partition(b" ")
    if not raw.endswith(b"\n") or not number.isdigit():
        return None
    return FinishedLine(int(number), rest[:1] == b"1", rest[2:-1])


def encode_records(records: Iterable[FinishedLine]) -> bytes:
    """Return records as they are stored."""
    return b"".join(b"%d %d %b\n" % (each.number, each.is_success, each.result) for each in records)


def remove_others(folder: Path, kept: Collection[str]) -> int:
    """Delete the progress files of all but these batches; return how many."""
    gone = [path for path in folder.iterdir() if path.name not in kept] if folder.exists() else []
    for path in gone:
        path.unlink(missing_ok=True)
    return len(gone)
