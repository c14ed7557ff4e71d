"""A file system of a test's own, which can be full."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import missing


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount a small file system in memory over a folder."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        missing("a small file system", f"{getattr(error, 'stderr', None) or error}".strip())
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(path: Path, leave: int) -> None:
    """Take the space of a file system, but for so many bytes."""
    free = os.statvfs(path.parent)
    with path.open("wb") as ballast:
        os.posix_fallocate(ballast.fileno(), 0, free.f_bavail * free.f_frsize - leave)
