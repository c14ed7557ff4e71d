"""File locks that allow one daemon per state directory and per database file."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError, system_reason

NAME: Final = "gatewayd.lock"
COPY_NAME: Final = "copying.lock"
JOURNAL: Final = "restore-incomplete"
"""A file in the state directory while a restore replaces the state."""

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class FileLock:
    """A lock on a file that contains its holder's process id and boot id, for display.

    The kernel releases the lock when the process ends in any way. The file is never deleted: otherwise two
    processes could lock two files of the same name.
    """

    def __init__(self, path: Path, what: str, param: str = "database_url") -> None:
        self._path = path
        self._what = what
        self._param = param
        self._descriptor: int | None = None

    @classmethod
    def of_database(cls, path: Path) -> "FileLock":
        """Return the lock of a SQLite file, which its daemon has."""
        return cls(path.with_name(f"{path.name}.lock"), f"the database {path}")

    def acquire(self) -> None:
        """Acquire the lock; conflict names its holder, not_configured the OS error of an unusable file."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            reason = system_reason(error)
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED, f"cannot use {self._what}: {reason}", param=self._param
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            words = os.pread(descriptor, 64, 0).decode("ascii", "replace").split()
            os.close(descriptor)
            holder = words[0] if words else "unknown"
            raise GatewayError(
                ErrorKind.CONFLICT,
                f"cannot use {self._what}: another gatewayd (process {holder}) uses it",
                param=self._param,
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {_boot_id()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock if it is held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def refuse_interrupted(folder: Path) -> None:
    """Raise not_configured for a state directory that a restore began to replace."""
    if (folder / JOURNAL).exists():
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot use the state directory {folder}: a restore was interrupted; "
            "repeat gatewayctl backup restore",
            param="data_dir",
            code="restore_incomplete",
        )


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the state directory, creating it if missing; raises the errors of `FileLock.acquire`."""
    what = f"the state directory {folder}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = system_reason(error)
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED, f"cannot use {what}: {reason}", param="data_dir"
        ) from error
    lock = FileLock(folder / NAME, what, param="data_dir")
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def lock_copying(folder: Path) -> Iterator[None]:
    """Keep backups of a state directory and what replaces that state apart; conflict if one is under way."""
    lock = FileLock(folder / COPY_NAME, f"the state directory {folder}", param="data_dir")
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _boot_id() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip() if BOOT_ID.exists() else "-"
