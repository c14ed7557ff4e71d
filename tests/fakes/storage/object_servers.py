"""Servers of the S3 protocol: moto, which checks conditions, and nanio, which checks keys and has a disk."""

import contextlib
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gatewayd.upstream.objects.bucket import BucketAddress
from tests.fakes.daemons.daemon import free_port

BUCKET = "bucket"
START_SECONDS = 30
PROGRAMS = {"moto": "moto_server", "nanio": "nanio"}


@dataclass(frozen=True)
class ObjectServer:
    """One server with an empty bucket."""

    kind: str
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def address(self, prefix: str, secret_key: str = "secret", bucket: str = BUCKET) -> BucketAddress:
        return BucketAddress(f"s3://{bucket}/{prefix}", self.endpoint, "us-east-1", "key", secret_key)

    def uploads(self) -> str:
        """Return the list of unfinished uploads."""
        with urllib.request.urlopen(f"{self.endpoint}/{BUCKET}?uploads") as reply:
            return str(reply.read().decode())


def find_server(kind: str) -> str | None:
    """Return the path of the program of a server, None if it is not installed.

    The servers pin libraries that differ from those of the gateway: they are in an environment of their own.
    """
    places = os.pathsep.join(filter(None, (os.environ.get("OBJECT_SERVERS"), os.environ.get("PATH"))))
    return shutil.which(PROGRAMS[kind], path=places)


@contextlib.contextmanager
def object_server(kind: str, folder: Path) -> Iterator[ObjectServer]:
    """Run a server that has its state below a folder."""
    program = find_server(kind)
    assert program is not None
    port = free_port()
    (folder / BUCKET).mkdir(parents=True, exist_ok=True)
    if kind == "moto":
        command = [program, "-H", "127.0.0.1", "-p", str(port)]
    else:
        command = [program, "serve", "--data-dir", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    given = {**os.environ, "NANIO_ACCESS_KEY": "key", "NANIO_SECRET_KEY": "secret"}
    given.pop("PYTHONPATH", None)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=given, stdout=log, stderr=log)
    try:
        _await_start(process, port, is_moto=kind == "moto")
        yield ObjectServer(kind, port)
    finally:
        # It keeps nothing that is wanted, and on a busy machine its own end takes long.
        process.kill()
        process.wait(30)


def _await_start(process: "subprocess.Popen[bytes]", port: int, *, is_moto: bool) -> None:
    make = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT" if is_moto else "GET")
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, "the server has ended"
        try:
            urllib.request.urlopen(make, timeout=2).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.1)
        else:
            return
