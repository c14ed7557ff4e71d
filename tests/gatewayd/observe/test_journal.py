"""The native protocol of journald, against a socket that takes its place."""

import array
import fcntl
import io
import logging
import mmap
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

import pytest

from gatewayd.observe import journal
from gatewayd.observe.journal import JournalHandler, JournalSocket, encode_entry, field_name, text_of
from gatewayd.observe.logs import LogFormat, configure_logging

log = logging.getLogger("gatewayd.test")

STREAMS: list[TextIO] = []
"""The files that stand for standard error, which a test closes at its end."""


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger("gatewayd")
    before, levels = list(root.handlers), (root.level, own.level)
    yield
    for handler in root.handlers:
        if handler not in before:
            handler.close()
    root.handlers[:] = before
    root.setLevel(levels[0])
    own.setLevel(levels[1])
    while STREAMS:
        STREAMS.pop().close()


class Journald:
    """Receives entries, as datagrams or as memory files."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(5)
        self.socket.bind(str(path))

    def next(self) -> dict[str, str]:
        size = array.array("i").itemsize
        data, ancillary, _, _ = self.socket.recvmsg(1 << 20, socket.CMSG_SPACE(size))
        if ancillary:
            assert data == b""
            (descriptor,) = struct.unpack("i", ancillary[0][2][:size])
            seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
            assert seals & fcntl.F_SEAL_WRITE
            assert seals & fcntl.F_SEAL_SHRINK
            with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as content:
                data = content[:]
            os.close(descriptor)
        return decoded(data)


@pytest.fixture
def journald(tmp_path: Path) -> Iterator[Journald]:
    made = Journald(tmp_path / "socket")
    yield made
    made.socket.close()


def decoded(data: bytes) -> dict[str, str]:
    """Read an entry as the journal does: KEY=value, or KEY, a length, and so many bytes."""
    found: dict[str, str] = {}
    while data:
        line, _, rest = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if equals:
            data = rest
        else:
            (length,) = struct.unpack_from("<Q", rest)
            value, data = rest[8 : 8 + length], rest[8 + length + 1 :]
        found[name.decode()] = value.decode()
    return found


def logged(tmp_path: Path, log_format: LogFormat = LogFormat.TEXT) -> logging.Handler:
    """Send the log to the journal of a test, as with standard error that goes there."""
    stream = next((each for each in STREAMS if each.name == str(tmp_path / "stderr")), None)
    if stream is None:
        stream = (tmp_path / "stderr").open("w")
        STREAMS.append(stream)
    facts = os.fstat(stream.fileno())
    environ = {"JOURNAL_STREAM": f"{facts.st_dev}:{facts.st_ino}"}
    return configure_logging("info", log_format, stream, environ, (), tmp_path / "socket")


def test_a_record_has_the_fields_of_the_journal_and_its_own(journald: Journald, tmp_path: Path) -> None:
    logged(tmp_path)
    log.warning(
        "request refused: %s",
        "no",
        extra={"request_id": "r-1", "token": "secret", "priority": "9", "_pid": 1, "8bit": 2, "none": None},
    )
    entry = journald.next()
    assert entry["MESSAGE"].startswith("gatewayd.test: request refused: no request_id=r-1 token=[redacted]")
    assert (entry["PRIORITY"], entry["SYSLOG_IDENTIFIER"], entry["LOGGER"]) == (
        "4",
        "gatewayd",
        "gatewayd.test",
    )
    assert entry["CODE_FILE"] == __file__
    assert int(entry["CODE_LINE"]) > 0
    assert entry["CODE_FUNC"] == "test_a_record_has_the_fields_of_the_journal_and_its_own"
    assert (entry["REQUEST_ID"], entry["TOKEN"]) == ("r-1", "[redacted]")
    assert (entry["GATEWAYD_PRIORITY"], entry["GATEWAYD__PID"], entry["GATEWAYD_8BIT"]) == ("9", "1", "2")
    assert "NONE" not in entry


@pytest.mark.parametrize("size", [100, 500_000])
def test_large_entries_go_as_sealed_memory_files(journald: Journald, tmp_path: Path, size: int) -> None:
    made = JournalSocket(tmp_path / "socket")
    made.put(encode_entry([("MESSAGE", "m" * size), ("PRIORITY", "6")]))
    assert journald.next() == {"MESSAGE": "m" * size, "PRIORITY": "6"}
    made.close()


def test_a_text_with_line_ends_cannot_add_fields(journald: Journald, tmp_path: Path) -> None:
    made = JournalSocket(tmp_path / "socket")
    made.put(encode_entry([("MESSAGE", "one\nPRIORITY=0\n_UID=0"), ("MODEL", "x\ny\ud800")]))
    assert journald.next() == {"MESSAGE": "one\nPRIORITY=0\n_UID=0", "MODEL": "x\ny\\ud800"}
    made.close()


def test_tracebacks_and_json(journald: Journald, tmp_path: Path) -> None:
    logged(tmp_path)
    try:
        raise ValueError("wrong")
    except ValueError:
        log.exception("it failed")
    message = journald.next()["MESSAGE"].split("\n")
    assert message[0] == "gatewayd.test: it failed"
    assert message[-1] == "  | ValueError: wrong"
    logged(tmp_path, LogFormat.JSON)
    log.info("plain")
    entry = journald.next()
    assert '"message": "plain"' in entry["MESSAGE"]
    assert entry["PRIORITY"] == "6"


def test_a_reload_keeps_the_queue(journald: Journald, tmp_path: Path) -> None:
    first = logged(tmp_path)
    assert isinstance(first, JournalHandler)
    second = logged(tmp_path)
    assert isinstance(second, JournalHandler)
    assert first.journal is second.journal
    log.info("after")
    assert journald.next()["MESSAGE"] == "gatewayd.test: after"


def test_without_a_journal_lines_go_to_standard_error(tmp_path: Path, journald: Journald) -> None:
    handler = logged(tmp_path)
    journald.socket.close()
    log.error("two\nlines", extra={"n": 1})
    assert isinstance(handler, JournalHandler)
    assert handler.journal.drain()
    assert (tmp_path / "stderr").read_text() == '<3>gatewayd.test: "two\\nlines" n=1\n'
    handler.close()
    (tmp_path / "socket").unlink()
    assert not isinstance(logged(tmp_path), JournalHandler)


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"MESSAGE": "one", "PRIORITY": "3"}, b"<3>one\n"),
        ({"MESSAGE": "one\n  | two", "PRIORITY": "7"}, b"<7>one\n<7>  | two\n"),
        ({"MESSAGE": "none"}, b"<6>none\n"),
    ],
)
def test_an_entry_as_lines(fields: Mapping[str, str], lines: bytes) -> None:
    assert text_of(encode_entry(fields.items())) == lines


def test_a_journal_that_does_not_read_blocks_nobody(
    tmp_path: Path, journald: Journald, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SEND_SECONDS", 0.05)
    made = JournalSocket(tmp_path / "socket", limit=20_000)
    handler = JournalHandler(made, lambda _: (), lambda _: 6)
    record = logging.makeLogRecord({"msg": "x" * 1000, "name": "gatewayd.test"})
    for _ in range(200):
        handler.emit(record)
    assert made.lost > 100
    seen = [journald.next()["MESSAGE"][:1] for _ in range(10)]
    assert seen == ["x"] * 10
    lost = made.lost
    told = 0
    while told < lost:
        handler.emit(record)
        entry = journald.next()
        told += int(entry.get("RECORDS", 0))
    assert told == made.lost
    made.close(0.1)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("request_id", "REQUEST_ID"),
        ("x-y.z", "X_Y_Z"),
        ("", "GATEWAYD_"),
        ("message", "GATEWAYD_MESSAGE"),
        ("code_line", "GATEWAYD_CODE_LINE"),
        ("é", "GATEWAYD__"),
        ("n" * 100, "N" * 64),
    ],
)
def test_names_of_fields(name: str, made: str) -> None:
    assert field_name(name) == made


def test_other_streams_are_no_journal(tmp_path: Path, journald: Journald) -> None:
    handler = configure_logging("info", LogFormat.TEXT, io.StringIO(), {}, (), tmp_path / "socket")
    assert not isinstance(handler, JournalHandler)
