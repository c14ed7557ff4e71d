"""A real redis-server on a socket of its own, which tests stop, pause, empty and restart."""

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import missing

START_SECONDS = 20


@dataclass
class RedisServer:
    """A server that keeps nothing on disk; its socket is below a short path."""

    folder: Path
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    @property
    def socket(self) -> Path:
        return self.folder / "redis.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        program = find_redis()
        assert program is not None
        arguments = ["--port", "0", "--unixsocket", str(self.socket), "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(
            [program, *arguments, "--dir", str(self.folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                if self.command("PING") == b"+PONG\r\n":
                    return
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(10)
            self.process = None
            self.socket.unlink(missing_ok=True)

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def command(self, *words: str) -> bytes:
        """Send a command and return the first bytes of the reply."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(5)
            channel.connect(str(self.socket))
            channel.sendall(" ".join(words).encode() + b"\r\n")
            return channel.recv(65536)


def find_redis() -> str | None:
    """Return the path of the server, None if it is not installed."""
    return shutil.which("redis-server")


@contextlib.contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Run a server; skip the test without one."""
    if find_redis() is None:
        missing("redis-server", "Debian: apt-get install redis-server")
    # A socket path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="gw-redis-") as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """A server of its own for a test."""
    with redis_server() as made:
        yield made
