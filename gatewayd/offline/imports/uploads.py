"""The directory of uploads of Open WebUI, opened before the process becomes the user of the state."""

import os
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gatewayd.errors import invalid, shorten, system_reason

READ_BYTES: Final = 1 << 20


class UploadDirectory:
    """An open directory; only regular files that are directly in it can be read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def open(self, names: Sequence[str]) -> int:
        """Return the open file of the first of these names that is there; raise invalid_request without."""
        for name in names:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                found = os.open(name, flags, dir_fd=self._descriptor)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise invalid(f"cannot read the upload {shorten(name)}: {system_reason(error)}") from error
            if stat.S_ISREG(os.fstat(found).st_mode):
                return found
            os.close(found)
            raise invalid(f"cannot read the upload {shorten(name)}: it is no regular file")
        wanted = shorten(names[0]) if names else "name"
        raise invalid(f"its bytes are missing: there is no {wanted} in uploads")


async def read_bytes(descriptor: int) -> AsyncIterator[bytes]:
    """Yield the bytes of an open file; raise invalid_request when they cannot be read."""
    while True:
        try:
            piece = os.read(descriptor, READ_BYTES)
        except OSError as error:
            raise invalid(f"cannot read the upload: {system_reason(error)}") from error
        if not piece:
            return
        yield piece


@contextmanager
def open_uploads(path: Path) -> Iterator[UploadDirectory]:
    """Open a directory of uploads; raise invalid_request if it is none, or may not be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise invalid(f"cannot open the uploads {path}: {system_reason(error)}", param="uploads") from error
    try:
        yield UploadDirectory(descriptor)
    finally:
        os.close(descriptor)
