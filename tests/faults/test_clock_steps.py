"""The wall clock of the daemon is set back, and ahead, by an hour."""

import json
import mmap
import shutil
import struct
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.fakes.daemons.daemon import free_port, running_daemon
from tests.fakes.daemons.ingest_runs import Caller
from tests.faults.acknowledged import Some
from tests.faults.lines import line_of

pytestmark = pytest.mark.faults

HOUR = 3600
OFFSET = struct.Struct("=q")
# Takes the place of the functions of libc; monotonic clocks stay as they are.
SHIFTED = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset() {
    static volatile long long *shared;
    if (!shared) {
        int file = open(getenv("CLOCK_OFFSET"), O_RDONLY);
        shared = (long long *)mmap(0, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
        close(file);
    }
    return *shared;
}

extern "C" int clock_gettime(clockid_t clock, struct timespec *now) noexcept {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return failed;
}

extern "C" int gettimeofday(struct timeval *now, void *) noexcept {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

extern "C" time_t time(time_t *now) noexcept {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
"""


class Clock:
    """The wall clock of processes that are started with `environment`."""

    def __init__(self, folder: Path) -> None:
        source, library, offset = folder / "clock.cc", folder / "clock.so", folder / "offset"
        source.write_text(SHIFTED)
        subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
        offset.write_bytes(bytes(OFFSET.size))
        with offset.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), OFFSET.size)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(offset)}

    def set(self, offset: int) -> None:
        self._shared[:] = OFFSET.pack(offset)


class Embeddings(BaseHTTPRequestHandler):
    """Gives every text a vector."""

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        count = 1 if isinstance(texts, str) else len(texts)
        data = [{"index": number, "embedding": [0.6, 0.8, 0.0]} for number in range(count)]
        body = json.dumps({"object": "list", "data": data, "model": "m"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    if shutil.which("g++") is None:
        missing("g++", "no clock can be set")
    return Clock(tmp_path)


@pytest.mark.parametrize("step", [-HOUR, HOUR], ids=["back", "ahead"])
def test_a_step_of_the_clock_holds_nothing_up(tmp_path: Path, clock: Clock, step: int) -> None:
    port = free_port()
    settings = {
        **clock.environment,
        "RAG_EMBEDDING_ENGINE": "openai",
        "RAG_EMBEDDING_MODEL": "m",
        "RAG_OPENAI_API_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "RAG_OPENAI_API_KEY": "sk-of-nobody",
    }
    caller = Caller()
    with running_daemon(tmp_path / "s", module="gatewayd.__main__", **settings) as daemon:
        caller.daemon = daemon
        caller.sign_up()
        # Nobody makes vectors yet: the file waits for its next attempt.
        line, some = line_of(daemon, caller.token), Some()
        some.make(line)
        waiting = caller.upload("a.txt", b"The heron stands in shallow water.", {}).json["id"]
        daemon.wait_for("next attempt in")
        clock.set(step)
        server = ThreadingHTTPServer(("127.0.0.1", port), Embeddings)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            later = caller.upload("b.txt", b"The owl is out at night.", {}).json["id"]
            began = time.monotonic()
            ended = caller.wait([waiting, later], 60)
            assert set(ended.values()) == {"completed"}, ended
            assert time.monotonic() - began < 60
        finally:
            server.shutdown()
            server.server_close()
        some.make(line)
        some.assert_there(line)
        # The session is the one from before the step.
        assert caller.ask("GET", "/api/v1/auths/").status == 200
        shown = json.loads(daemon.run_ctl("health", "-o", "json").stdout)
        assert 0 <= shown["uptime_seconds"] < HOUR
        assert daemon.stop() == 0
