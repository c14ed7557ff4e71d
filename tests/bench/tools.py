"""The C tools: compiling them, and one run of the load generator."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.processes import follow_priority

HERE = Path(__file__).parent
PACKAGES = {"cc": "gcc", "nginx": "nginx-light", "git": "git", "tar": "tar"}


class CannotRunError(Exception):
    """Why the benchmark cannot run, as a sentence for people."""


def require(*programs: str) -> None:
    """Refuse to go on without these programs."""
    absent = [program for program in programs if shutil.which(program) is None]
    if absent:
        packages = " ".join(PACKAGES[program] for program in absent)
        raise CannotRunError(
            f"cannot run the benchmark: {' and '.join(absent)} not on the PATH;"
            f" on Debian, apt-get install {packages}"
        )


@dataclass(frozen=True)
class Tools:
    """The compiled programs."""

    mock: Path
    load: Path


def build(folder: Path) -> Tools:
    """Compile the tools into a folder."""
    require("cc")
    return Tools(_compile("mock", folder), _compile("load", folder))


def _compile(name: str, folder: Path) -> Path:
    command = [
        "cc",
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-o",
        str(folder / name),
        str(HERE / f"{name}.c"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotRunError(f"cannot compile {name}.c:\n{done.stderr}")
    return folder / name


@dataclass(frozen=True)
class Work:
    """What the load generator does: see the head of load.c. `chunks` is the number per stream."""

    mode: str
    model: str
    connections: int = 1
    seconds: float = 2.0
    warm_up: float = 0.5
    chunks: int = 1
    ramp: float = 4000.0

    def arguments(self, port: int, path: str, key: str | None) -> list[str]:
        """Return the command line for a server on a loopback port."""
        options: dict[str, Any] = {
            "port": port,
            "path": path,
            "model": self.model,
            "connections": self.connections,
            "seconds": self.seconds,
            "warm-up": self.warm_up,
            "chunks": self.chunks,
            "ramp": self.ramp,
        }
        if key is not None:
            options["key"] = key
        return [self.mode, *(f"--{name}={value}" for name, value in options.items())]


class Load:
    """A running load generator."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def wait_window(self) -> None:
        """Wait until the samples begin, then until they end."""
        if "window" not in self._line("its samples were taken"):
            raise CannotRunError("the load generator does not tell when its samples begin and end")

    def wait_held(self) -> int:
        """Wait until all streams of `hold` or `leave` have begun and return how many are held."""
        return int(self._line("its streams had begun")["held"])

    def _line(self, what: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise CannotRunError(f"the load generator ended before {what}")
        found: dict[str, Any] = json.loads(line)
        return found

    def result(self) -> dict[str, Any]:
        """End what is held, wait for the end and return the last line of the output."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        output = self.process.stdout.read()
        self.process.wait()
        if self.process.returncode or not output.strip():
            raise CannotRunError(f"the load generator ended with status {self.process.returncode}")
        result: dict[str, Any] = json.loads(output.splitlines()[-1])
        return result


@contextmanager
def running_load(load: Path, work: Work, port: int, path: str, key: str | None = None) -> Iterator[Load]:
    """Start the load generator; it is gone at the end."""
    process = subprocess.Popen(
        [str(load), *work.arguments(port, path, key)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        follow_priority(process.pid)
        try:
            yield Load(process)
        finally:
            if process.poll() is None:
                process.kill()
