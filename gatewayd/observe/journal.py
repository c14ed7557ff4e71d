"""The native protocol of journald: entries with fields, as datagrams (systemd.io/JOURNAL_NATIVE_PROTOCOL).

A thread sends them, so that a journal that does not read blocks nobody. What does not fit into a datagram is
sent as a sealed memory file.
"""

import contextlib
import errno
import fcntl
import itertools
import logging
import os
import queue
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

JOURNAL_SOCKET: Final = Path("/run/systemd/journal/socket")
MAX_QUEUED_BYTES: Final = 4 << 20
"""Maximum size of the entries that wait for the journal."""

MAX_FIELD_NAME_CHARACTERS: Final = 64
IDENTIFIER: Final = "gatewayd"
CLOSE_SECONDS: Final = 2.0
"""Maximum time to send what waits at the end."""

SEND_SECONDS: Final = 5.0
"""Maximum wait for the journal to take one entry; then the entry counts as dropped."""

OWN_FIELDS: Final = frozenset({"MESSAGE", "MESSAGE_ID", "PRIORITY", "ERRNO", "INVOCATION_ID", "TID", "UNIT"})
_NO_NAME: Final = re.compile(r"[^A-Z0-9_]")
_LENGTH: Final = struct.Struct("<Q")
_SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
_TOO_LARGE: Final = frozenset({errno.EMSGSIZE, errno.ENOBUFS})


def field_name(name: str) -> str:
    """Return the name of a field of a record as the journal takes it, such as REQUEST_ID.

    A name that the journal or this program gives itself gets the prefix GATEWAYD_.
    """
    made = _NO_NAME.sub("_", name.upper())
    is_taken = made in OWN_FIELDS or made.startswith(("_", "CODE_", "SYSLOG_", "OBJECT_", "COREDUMP_"))
    if is_taken or not made or made[0].isdigit():
        made = f"GATEWAYD_{made}"
    return made[:MAX_FIELD_NAME_CHARACTERS]


def encode_entry(fields: Iterable[tuple[str, str]]) -> bytes:
    """Return an entry; the value of a field with a line end is preceded by its length."""
    parts: list[bytes] = []
    for name, text in fields:
        value = text.encode("utf-8", "backslashreplace")
        if b"\n" in value:
            parts += [name.encode(), b"\n", _LENGTH.pack(len(value)), value, b"\n"]
        else:
            parts += [name.encode(), b"=", value, b"\n"]
    return b"".join(parts)


class JournalSocket:
    """Sends entries to the journal in a thread; `lost` counts those that were dropped.

    `fallback` is called in the thread with an entry that cannot be sent because there is no journal. As in
    `outputs.QueuedOutput`, there is no lock: a finalizer that logs may run within `put`.
    """

    def __init__(self, path: Path = JOURNAL_SOCKET, limit: int = MAX_QUEUED_BYTES) -> None:
        self.lost = 0
        self.fallback: Callable[[bytes], None] = _ignore
        self.path = path
        self._limit = limit
        self._queue: queue.SimpleQueue[bytes | threading.Event | None] = queue.SimpleQueue()
        self._losses = itertools.count(1)
        # Totals of bytes queued (by callers) and taken (by the thread).
        self._put = self._taken = 0
        self._is_closed = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(SEND_SECONDS)
        self._thread = threading.Thread(target=self._run, name="journal writer", daemon=True)
        self._thread.start()

    def has_room(self, size: int) -> bool:
        """Return whether an entry of so many bytes would be queued."""
        return self._put - self._taken + size <= self._limit

    def put(self, entry: bytes) -> None:
        """Queue an entry, or drop it if too many wait."""
        if not self.has_room(len(entry)):
            self.lost = next(self._losses)
            return
        self._put += len(entry)
        self._queue.put(entry)

    def drain(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until the present queue is sent; return False after `seconds`."""
        sent = threading.Event()
        self._queue.put(sent)
        return sent.wait(seconds)

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Send what waits, for at most `seconds`, and end the thread; may be called again."""
        if not self._is_closed:
            self._is_closed = True
            self.drain(seconds)
            self._queue.put(None)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()
                continue
            self._send(item)
            self._taken += len(item)
        self._socket.close()

    def _send(self, entry: bytes) -> None:
        try:
            self._socket.sendto(entry, str(self.path))
        except OSError as error:
            if error.errno in _TOO_LARGE:
                self._send_file(entry)
            elif isinstance(error, TimeoutError):
                self.lost = next(self._losses)
            else:
                self._fall_back(entry)

    def _send_file(self, entry: bytes) -> None:
        """Send an entry as a sealed memory file, whose descriptor is the whole message."""
        try:
            with open_memory_file(entry) as descriptor:
                rights = struct.pack("i", descriptor)
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
                self._socket.sendmsg([], ancillary, 0, str(self.path))
        except OSError:
            self._fall_back(entry)

    def _fall_back(self, entry: bytes) -> None:
        try:
            self.fallback(entry)
        except (OSError, ValueError):  # closed
            self.lost = next(self._losses)


@contextlib.contextmanager
def open_memory_file(content: bytes) -> Iterator[int]:
    """Yield the descriptor of a sealed memory file; raises OSError when there is none."""
    descriptor = os.memfd_create("gatewayd-journal", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        yield descriptor
    finally:
        os.close(descriptor)


class JournalHandler(logging.Handler):
    """Handler of records that sends them to the journal.

    `fields_of` returns the fields of a record without secrets. MESSAGE is the text of the formatter, so that
    the journal shows the same lines as before; the fields can be searched for, as in
    `journalctl REQUEST_ID=...`.
    """

    def __init__(
        self,
        journal: JournalSocket,
        fields_of: Callable[[logging.LogRecord], Iterable[tuple[str, object]]],
        priority_of: Callable[[int], int],
    ) -> None:
        super().__init__()
        self.journal = journal
        self._fields_of = fields_of
        self._priority_of = priority_of
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record; one about dropped entries goes before it."""
        try:
            if self.journal.lost != self._lost:
                self._report(self.journal.lost)
            self.journal.put(encode_entry(self._entry(record)))
        except (ValueError, TypeError, OSError):
            self.handleError(record)

    def close(self) -> None:
        """Send what waits, and end the thread of the socket."""
        self.journal.close()
        super().close()

    def _report(self, lost: int) -> None:
        entry = encode_entry(lost_entry(lost - self._lost))
        if self.journal.has_room(len(entry)):
            self._lost = lost
            self.journal.put(entry)

    def _entry(self, record: logging.LogRecord) -> Iterator[tuple[str, str]]:
        yield "MESSAGE", self.format(record)
        yield "PRIORITY", str(self._priority_of(record.levelno))
        yield "SYSLOG_IDENTIFIER", IDENTIFIER
        yield "LOGGER", record.name
        yield "CODE_FILE", record.pathname
        yield "CODE_LINE", str(record.lineno)
        yield "CODE_FUNC", record.funcName or ""
        for name, value in self._fields_of(record):
            yield field_name(name), str(value)


def lost_entry(count: int) -> Iterator[tuple[str, str]]:
    """Yield the fields of the entry about dropped ones."""
    yield "MESSAGE", f"{__name__}: entries were dropped: the journal is too slow records={count}"
    yield "PRIORITY", "4"
    yield "SYSLOG_IDENTIFIER", IDENTIFIER
    yield "RECORDS", str(count)


def text_of(entry: bytes) -> bytes:
    """Return an entry as `<N>` lines, for an output that is no socket of the journal."""
    priority = re.search(rb"(?m)^PRIORITY=(\d)$", entry)
    level = b"<%b>" % (priority[1] if priority else b"6")
    return b"".join(level + line + b"\n" for line in _message_of(entry).split(b"\n"))


def _message_of(entry: bytes) -> bytes:
    if entry.startswith(b"MESSAGE="):
        return entry[8:].partition(b"\n")[0]
    start = len(b"MESSAGE\n") + _LENGTH.size
    (length,) = _LENGTH.unpack_from(entry, len(b"MESSAGE\n"))
    return entry[start : start + length]


def _ignore(entry: bytes) -> None:
    """Drop an entry."""
