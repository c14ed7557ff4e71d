"""The official clients for Node, in one process that is asked line by line."""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "node"
PINS = ("package.json", "package-lock.json")
INSTALL_SECONDS = 100


class NodeMissingError(Exception):
    """Node, npm or the packages cannot be had; the text says which."""


@dataclass
class Node:
    """The process that holds the clients."""

    process: subprocess.Popen[str]

    def call(
        self, client: str, operation: str, url: str, key: str | None, body: Any = None, **options: Any
    ) -> Any:
        """Have a client do something; return `{"value", "items", "error": {"name", "message", "status"}}`."""
        asked = {"client": client, "operation": operation, "url": url, "key": key, "body": body, **options}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the process of the Node clients ended"
        return json.loads(line)


@contextlib.contextmanager
def running_node() -> Iterator[Node]:
    """Start the process; raises NodeMissingError."""
    program = shutil.which("node")
    if program is None:
        raise NodeMissingError("node is not on the PATH")
    packages = install()
    command = [program, str(HERE / "main.mjs"), str(packages)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Node(process)


def install(pinned: Path = HERE) -> Path:
    """Install the packages that a folder pins, once, into the user's cache, and return where.

    Raises NodeMissingError.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise NodeMissingError("npm is not on the PATH")
    mark = hashlib.sha256(b"".join((pinned / name).read_bytes() for name in PINS)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gatewayd"
    folder = cache / f"node-{mark}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".node-") as made:
        unfinished = Path(made) / "packages"
        unfinished.mkdir()
        _run_npm(npm, pinned, unfinished)
        # Another process of the same run may have been faster; both have installed the same.
        with contextlib.suppress(OSError):
            unfinished.rename(folder)
    return folder


def _run_npm(npm: str, pinned: Path, folder: Path) -> None:
    for name in PINS:
        shutil.copy(pinned / name, folder)
    options = ("--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    command = [npm, "ci", *options]
    try:
        subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=True
        )
    except subprocess.TimeoutExpired as error:
        raise NodeMissingError("npm takes too long to install the clients") from error
    except subprocess.CalledProcessError as error:
        raise NodeMissingError(f"npm cannot install the clients: {error.stderr.strip()[-500:]}") from error
