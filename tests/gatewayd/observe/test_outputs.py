import fcntl
import gc
import io
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayd.observe.logs import LogFormat, configure_logging
from gatewayd.observe.outputs import UNIT_BYTES, QueuedOutput, plain_report, queued_outputs

F_GETPIPE_SZ = 1032


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Yield the two ends of a pipe of one page.

    The number of the second is not given away: a thread that a test leaves behind may still write to it.
    """
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    yield reading, writing
    os.close(reading)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, writing)
    os.close(null)


def read_all(reading: int, output: QueuedOutput) -> bytes:
    """Read until all that is queued has come."""
    found = bytearray()

    def read() -> None:
        while not found.endswith(b"end\n"):
            found.extend(os.read(reading, 65536))

    reader = threading.Thread(target=read)
    reader.start()
    assert output.drain(30)
    output.write(b"end\n")
    reader.join(30)
    return bytes(found).removesuffix(b"end\n")


def test_lines_are_written_in_their_order(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = QueuedOutput(writing)
    lines = b"".join(b"line %d\n" % number for number in range(5000))
    for line in lines.splitlines(keepends=True):
        output.write(line)
    assert read_all(reading, output) == lines


def test_a_reader_that_stands_still_costs_lines_and_not_time(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = QueuedOutput(writing, limit=100_000)
    line = b"x" * 99 + b"\n"
    for _ in range(1000):
        output.write(line)
    assert not output.drain(0.01)
    *kept, report = read_all(reading, output).splitlines(keepends=True)
    assert set(kept) == {line}
    assert 350 <= len(kept) < 500
    assert report.decode() == plain_report(1000 - len(kept))
    output.write(b"next\n")
    assert read_all(reading, output) == b"next\n"


def test_the_report_stands_where_the_lines_are_missing(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = QueuedOutput(writing, limit=33 * UNIT_BYTES)
    before, after = b"a" * 8000 + b"\n", b"after\n"
    output.write(before)
    for _ in range(100):
        output.write(b"lost\n" * UNIT_BYTES)
    output.report = lambda lost: f"{lost} lost\n"
    output.write(after)
    assert read_all(reading, output) == before + b"100 lost\n" + after


def test_a_finalizer_that_writes_in_the_middle_of_a_write_holds_nothing_up(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = QueuedOutput(writing)

    class Late(list[object]):
        """Part of a circle, which the collector frees."""

        def __del__(self) -> None:
            output.write(b"from a finalizer\n")

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(2000):
            late = Late()
            late.append(late)
            del late
            output.write(b"plain\n")
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    lines = read_all(reading, output).splitlines()
    assert lines.count(b"plain") == lines.count(b"from a finalizer") == 2000


def test_threads_that_write_at_once_lose_nothing(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = QueuedOutput(writing)
    writers = [
        threading.Thread(target=lambda: [output.write(b"line\n") for _ in range(1000)]) for _ in range(8)
    ]
    for each in writers:
        each.start()
    for each in writers:
        each.join(30)
    assert read_all(reading, output) == b"line\n" * 8000


def test_a_reader_that_is_gone_is_no_failure() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    output = QueuedOutput(writing)
    for _ in range(3):
        output.write(b"nobody reads this\n")
        assert output.drain(30)
    assert output._owed == 3
    output.finish(30)
    output.write(b"nor this\n")
    os.close(writing)


def test_the_end_waits_for_a_bounded_time_only(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = QueuedOutput(writing)
    output.write(b"x" * 100_000)
    output.finish(0.01)
    output.write(b"never\n")
    os.set_blocking(reading, False)
    assert b"never" not in os.read(reading, 65536)


def test_what_is_written_after_the_end_is_written_at_once(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = QueuedOutput(writing)
    output.finish()
    output.write(b"last words\n")
    assert os.read(reading, 100) == b"last words\n"


def test_a_descriptor_that_does_not_block_is_waited_for(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(writing, False)
    output = QueuedOutput(writing)
    data = b"y" * 50_000 + b"\n"
    output.write(data)
    assert read_all(reading, output) == data


def test_both_streams_are_queued_and_stay_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        with queued_outputs():
            sys.stdout.write("printed\n")
            sys.stderr.write("half ")
            sys.stderr.write("a line å\n")
            assert sys.stderr.fileno() == err.fileno()
            assert not sys.stdout.isatty()
        sys.stdout.write("late\n")
        assert (tmp_path / "out").read_text() == "printed\nlate\n"
        assert (tmp_path / "err").read_text() == "half a line å\n"


def test_streams_without_a_descriptor_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stdout", plain)
    monkeypatch.setattr(sys, "stderr", None)
    with queued_outputs():
        assert sys.stdout is plain
        assert sys.stderr is None


@pytest.mark.parametrize("log_format", LogFormat)
def test_the_log_tells_how_many_of_its_lines_were_lost(log_format: LogFormat, pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    output = QueuedOutput(writing, limit=20_000)
    stream = io.TextIOWrapper(output, write_through=True)  # type: ignore[type-var]
    handler = configure_logging("info", log_format, stream, {})
    try:
        for number in range(1000):
            logging.getLogger("some").info("a line of the log %d", number)
        *kept, report = read_all(reading, output).decode().splitlines()
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger("gatewayd").setLevel(logging.NOTSET)
    assert "log records were dropped" in report
    assert str(1000 - len(kept)) in report
    assert [f"log {number}" in line for number, line in enumerate(kept)] == [True] * len(kept)


CRASH = """\
import sys
from gatewayd.observe.outputs import queued_outputs
with queued_outputs():
    for number in range(1000):
        print(number, file=sys.stderr)
    raise ValueError("the last word")
"""


@pytest.mark.process
def test_a_crash_is_told_after_what_was_queued() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CRASH], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    lines = ended.stderr.splitlines()
    assert lines[:1000] == [str(number) for number in range(1000)]
    assert lines[1000] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: the last word"
