"""Whoever reads the log of the daemon stands still."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayd.observe.outputs import CLOSE_SECONDS
from tests.fakes.daemons import forking
from tests.fakes.daemons.daemon import Daemon, environment, free_port, running_daemon, wait_ready
from tests.fakes.daemons.killed_daemon_clients import Caller
from tests.fakes.storage.migrated import migrated_copy
from tests.faults.acknowledged import Some
from tests.faults.lines import line_of

pytestmark = [pytest.mark.faults, pytest.mark.short]

PIPE_BYTES = 1 << 16
SECONDS = 5.0


@pytest.fixture
def stalled(tmp_path: Path) -> Iterator[tuple[Daemon, int]]:
    """Yield a daemon and the end of the pipe that its two outputs are, which nobody reads."""
    migrated_copy(tmp_path)
    port = free_port()
    reading, writing = os.pipe()
    with Path(os.devnull).open("rb") as nothing:
        streams = [nothing.fileno(), writing, writing]
        process = forking.start("gatewayd", [], environment(tmp_path, port, {}), streams)
    os.close(writing)
    daemon = Daemon(process, f"http://127.0.0.1:{port}", tmp_path / "control.sock", tmp_path)
    try:
        wait_ready(daemon)
        yield daemon, reading
    finally:
        process.kill()
        process.wait(30)
        os.close(reading)


def refuse(daemon: Daemon) -> int:
    """Have more refused than a pipe takes lines of, and return how often."""
    count = PIPE_BYTES // 60
    for number in range(count):
        began = time.monotonic()
        assert daemon.call("GET", f"/no/such/path/{number}")[0] == 404
        assert time.monotonic() - began < SECONDS
    return count


def test_a_daemon_whose_log_nobody_reads_answers_and_ends(stalled: tuple[Daemon, int]) -> None:
    daemon, _ = stalled
    refuse(daemon)
    assert daemon.call("GET", "/health")[0] == 200
    some, caller = Some(), Caller(daemon)
    caller.sign_up()
    some.make(line_of(daemon, caller.token))
    began = time.monotonic()
    assert daemon.stop(signal.SIGTERM) == 0
    assert time.monotonic() - began < CLOSE_SECONDS + SECONDS
    with running_daemon(daemon.state) as daemon:
        some.assert_there(line_of(daemon, caller.token))


def test_a_log_that_is_read_late_has_every_line(stalled: tuple[Daemon, int]) -> None:
    daemon, reading = stalled
    count = refuse(daemon)
    with os.fdopen(os.dup(reading), "rb") as log:
        daemon.process.terminate()
        lines = log.readlines()
    assert sum(b"request refused" in line for line in lines) == count
    assert lines[-1].endswith(b"stopped\n")
    assert daemon.stop() == 0
