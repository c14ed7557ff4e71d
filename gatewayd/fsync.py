"""Durable writes: fsync(2) of files and directories."""

import os
from pathlib import Path


def sync_to_disk(path: Path) -> None:
    """Write a file, or the entries of a directory, out to the disk; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
