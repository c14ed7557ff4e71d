"""The ingested directory: opened once and locked; files below it are opened without leaving it."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

from gatewayctl.failures import CommandError
from gatewayctl.prompts import usage

# Opening a pipe or a device must not block.
READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
DIRECTORY: Final = READ | os.O_DIRECTORY
ON_THE_WAY: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class IrregularError(Exception):
    """A path is a directory, a pipe or a device instead of a file."""


class Folder:
    """Opens files below a directory name by name, so that no link leads out of it.

    With `follow` all links are followed. Raises OSError.
    """

    def __init__(self, path: Path, *, follow: bool = False) -> None:
        try:
            self._root = os.open(path, DIRECTORY)
        except OSError as error:
            raise usage(f"cannot open the directory {path}: {reason(error)}", param="DIR") from error
        self.path = path
        self._links = 0 if follow else os.O_NOFOLLOW

    def __enter__(self) -> "Folder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._root)

    @property
    def place(self) -> tuple[int, int]:
        """Device and inode of the directory."""
        found = os.fstat(self._root)
        return found.st_dev, found.st_ino

    def lock(self) -> str | None:
        """Lock the directory against other runs; return the reason if the file system has no locks.

        Raises busy if another run holds the lock.
        """
        try:
            fcntl.flock(self._root, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CommandError("busy", f"cannot ingest {self.path}: another run is under way") from error
        except OSError as error:
            return f"cannot lock {self.path}: {reason(error)}; two runs may overlap"
        return None

    @contextmanager
    def listed(self, parts: Sequence[str]) -> Iterator[list["os.DirEntry[str]"]]:
        """Return the entries of a directory sorted by name; they are valid within the block."""
        descriptor = self._open(parts, DIRECTORY)
        try:
            with os.scandir(descriptor) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            yield found
        finally:
            os.close(descriptor)

    def open_file(self, parts: Sequence[str]) -> BinaryIO:
        """Open a regular file; raises IrregularError for other types."""
        return regular(self._open(parts, READ))

    def _open(self, parts: Sequence[str], flags: int) -> int:
        names = list(parts) or ["."]
        here = self._root
        for position, name in enumerate(names):
            wanted = flags if position == len(names) - 1 else ON_THE_WAY
            try:
                below = os.open(name, wanted | self._links, dir_fd=here)
            finally:
                if here != self._root:
                    os.close(here)
            here = below
        return here


def regular(descriptor: int) -> BinaryIO:
    """Return an open regular file as a stream; other types are closed and raise IrregularError."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IrregularError
    return os.fdopen(descriptor, "rb", buffering=0)


def reason(error: OSError) -> str:
    """Return the reason of an operating system error in lower case."""
    if error.errno == errno.ELOOP:
        return "it is a link"
    return (error.strerror or str(error)).lower()
