"""Makes what was written survive a power failure."""

import os
from pathlib import Path


def sync_to_disk(path: Path) -> None:
    """Write a file, or the entries of a folder, out to the disk; OSError when it refuses."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
