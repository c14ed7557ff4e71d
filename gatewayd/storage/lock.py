"""One daemon on one state directory."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gatewayd.errors import GatewayError, Kind

NAME: Final = "gatewayd.lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the directory for this process; conflict names the process that holds it.

    The kernel lets the lock go when the process ends, however it ends.
    """
    path = folder / NAME
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise GatewayError(
            Kind.NOT_CONFIGURED, f"cannot use the state directory {folder}: {reason}", param="data_dir"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            raise GatewayError(
                Kind.CONFLICT,
                f"cannot use the state directory {folder}: another gatewayd (process {holder}) uses it",
                param="data_dir",
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
