"""The access log."""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from gatewayd.errors import GatewayError
from gatewayd.measurement.request_notes import RequestNotes, ServedRequest
from gatewayd.observe import access_log
from gatewayd.observe.access_log import (
    AccessFormat,
    AccessLog,
    AccessOptions,
    journal_entry,
    render_json,
    render_text,
)

AT = 1_700_000_000.25


def served(route: str = "/api/chat/completions", client: str = "192.0.2.7", **changes: str) -> ServedRequest:
    notes = RequestNotes(1.0)
    notes.model, notes.provider = changes.get("model", "gpt-5"), "openai"
    notes.first_seconds, notes.prompt, notes.cached, notes.completion = 0.25, 100, 40, 7
    return ServedRequest(
        "r-1", client, "POST", route, 200, 512, 1.5, "u1", "ann@example.org", "sk-12345678", notes
    )


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_log, "BATCH_SECONDS", 0.005)


@pytest.fixture
def made() -> Iterator[AccessLog]:
    log = AccessLog()
    yield log
    log.close()


def until(check: Callable[[], object]) -> None:
    deadline = time.monotonic() + 5
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_line_has_who_what_and_how_long() -> None:
    text = render_text(AT, served(), "u1").decode()
    assert text == (
        "2023-11-14T22:13:20.250Z info gatewayd.access: request request_id=r-1 client=192.0.2.7 method=POST"
        " route=/api/chat/completions status=200 ms=1500.0 bytes=512 user=u1 key=sk-12345678 model=gpt-5"
        " provider=openai first_ms=250.0 prompt_tokens=100 cached_tokens=40 completion_tokens=7\n"
    )
    entry = json.loads(render_json(AT, served(), "ann@example.org"))
    assert entry == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "gatewayd.access",
        "message": "request",
        "request_id": "r-1",
        "client": "192.0.2.7",
        "method": "POST",
        "route": "/api/chat/completions",
        "status": 200,
        "ms": 1500.0,
        "bytes": 512,
        "user": "ann@example.org",
        "key": "sk-12345678",
        "model": "gpt-5",
        "provider": "openai",
        "first_ms": 250.0,
        "prompt_tokens": 100,
        "cached_tokens": 40,
        "completion_tokens": 7,
    }


def test_a_line_as_an_entry_of_the_journal() -> None:
    entry = journal_entry(render_text(AT, served(), "u1")).decode()
    assert entry.startswith("MESSAGE=gatewayd.access: request request_id=r-1 client=")
    assert entry.endswith("\nPRIORITY=6\nSYSLOG_IDENTIFIER=gatewayd\nLOGGER=gatewayd.access\n")
    assert journal_entry(render_json(AT, served(), "u1")).startswith(b'MESSAGE={"time":"2023-')


def test_what_is_not_known_is_left_out() -> None:
    plain = ServedRequest("r", "c", "GET", "-", 404, -1, 0.001, "", "", "", RequestNotes(1.0))
    assert render_text(AT, plain, "").decode().endswith("route=- status=404 ms=1.0\n")
    assert set(json.loads(render_json(AT, plain, ""))) == {
        *("time", "level", "logger", "message", "request_id", "client", "method", "route", "status", "ms")
    }


@pytest.mark.parametrize("render", [render_text, render_json])
@pytest.mark.parametrize(
    "value",
    ["a b=c\n2023 info x: y", '"quoted"\\', "\x1b[31m\u202e", "half \ud800", "m" * 100_000, "e\u0301" * 500],
)
def test_no_value_from_outside_makes_a_line_or_a_field(
    render: Callable[[float, ServedRequest, str], bytes], value: str
) -> None:
    line = render(AT, served(client=value, model=value), value)
    assert line.count(b"\n") == 1
    assert len(line) < 10_000
    assert b"\x1b" not in line
    if render is render_text:
        assert line.count(b" status=") == 1
    else:
        assert json.loads(line)["status"] == 200


def test_lines_go_to_a_file_in_their_order(made: AccessLog, tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    assert not made.is_on
    made.configure(AccessOptions(AccessFormat.JSON, path, has_emails=True))
    assert made.is_on
    for number in range(3000):
        made.served(served(route=f"/{number}"))
    made.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["route"] for line in lines] == [f"/{number}" for number in range(3000)]
    assert {line["user"] for line in lines} == {"ann@example.org"}
    assert path.stat().st_mode & 0o007 == 0


def test_a_rotated_file_is_opened_anew(made: AccessLog, tmp_path: Path) -> None:
    path, old = tmp_path / "access.log", tmp_path / "access.log.1"
    options = AccessOptions(AccessFormat.TEXT, path)
    made.configure(options)
    made.served(served("/one"))
    until(lambda: path.read_bytes())
    path.rename(old)
    made.served(served("/two"))
    until(lambda: b"/two" in old.read_bytes())
    made.reopen()
    made.configure(options)
    made.served(served("/three"))
    until(lambda: path.exists() and b"/three" in path.read_bytes())
    assert b"/three" not in old.read_bytes()


def test_a_file_that_cannot_be_opened_is_refused_and_the_old_one_stays(
    made: AccessLog, tmp_path: Path
) -> None:
    path = tmp_path / "access.log"
    made.configure(AccessOptions(AccessFormat.TEXT, path))
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for bad in (tmp_path / "none" / "access.log", tmp_path, tmp_path / "link"):
        with pytest.raises(GatewayError, match=r"cannot open access_log_path .*: "):
            made.configure(AccessOptions(AccessFormat.TEXT, bad))
    made.served(served())
    until(lambda: path.read_bytes())


class Stalled:
    """An output whose reader takes nothing until it is told to."""

    def __init__(self) -> None:
        self.reads = threading.Event()
        self.lines: list[bytes] = []

    def write(self, lines: Sequence[bytes]) -> None:
        self.reads.wait(10)
        self.lines += lines

    def close(self) -> None:
        pass


def test_a_reader_that_stalls_blocks_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_log, "MAX_QUEUED_REQUESTS", 50)
    output = Stalled()
    log = AccessLog(lambda: output)
    log.configure(AccessOptions(AccessFormat.TEXT))
    began = time.perf_counter()
    for _ in range(1000):
        log.served(served())
    assert time.perf_counter() - began < 0.5
    assert log.lost > 0
    output.reads.set()
    until(lambda: len(output.lines) > 10)
    log.served(served())
    log.close()
    told = [line for line in output.lines if b"were dropped" in line]
    assert sum(int(line.rpartition(b"=")[2]) for line in told) == log.lost
    assert len(output.lines) - len(told) + log.lost == 1001


def test_a_full_disk_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Full(Stalled):
        def write(self, lines: Sequence[bytes]) -> None:
            raise OSError(28, os.strerror(28))

    log = AccessLog(Full)
    log.configure(AccessOptions(AccessFormat.TEXT))
    for number in range(3):
        log.served(served())
        until(lambda: log.lost == number + 1)  # noqa: B023 - called at once
    log.close()
    assert [record.getMessage() for record in caplog.records] == [
        "cannot write the access log: No space left on device"
    ]


def test_the_level_of_its_logger_turns_it_off(made: AccessLog) -> None:
    made.configure(AccessOptions(AccessFormat.TEXT))
    logging.getLogger("gatewayd.access").setLevel(logging.WARNING)
    assert not made.is_on
    logging.getLogger("gatewayd.access").setLevel(logging.INFO)
    assert made.is_on
    made.configure(AccessOptions())
    assert not made.is_on
