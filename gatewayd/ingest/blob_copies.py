"""Copies on disk of bytes that are stored elsewhere, for what reads paths: few, and short-lived."""

import asyncio
import hashlib
import os
import shutil
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError, system_reason

MAX_KEPT_COPIES: Final = 32
"""Maximum number of copies that plugins were given and that remain."""

MAX_LENT_COPIES: Final = 16
"""Maximum number of copies that are lent at once; who asks for more waits."""


class BlobCopies:
    """Copies in a folder of their own, which is emptied at the start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: OrderedDict[str, Path] = OrderedDict()
        self._making = asyncio.Lock()
        self._turns = asyncio.Semaphore(MAX_LENT_COPIES)

    async def clear(self) -> None:
        """Delete what a stopped daemon left."""
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    @asynccontextmanager
    async def lend(self, pieces: AsyncGenerator[bytes, None], digest: str) -> AsyncGenerator[Path, None]:
        """Yield the path of a copy that is deleted at the end of the block.

        Raises unavailable on an OS error, or if the bytes do not have the given SHA-256 ("" for any).
        """
        path = self._folder / ids.new_id()
        async with self._turns:
            try:
                await self._write(path, pieces, digest)
                yield path
            finally:
                await asyncio.to_thread(_discard, path)

    async def keep(self, key: str, pieces: AsyncGenerator[bytes, None], digest: str) -> Path:
        """Return the path of a copy that stays until MAX_KEPT_COPIES others were made, or the next start."""
        async with self._making, aclosing(pieces):
            path = self._kept.get(key)
            if path is None or not await asyncio.to_thread(path.exists):
                path = self._folder / f"kept-{ids.new_id()}"
                await self._write(path, pieces, digest)
            self._kept[key] = path
            self._kept.move_to_end(key)
            while len(self._kept) > MAX_KEPT_COPIES:
                _, former = self._kept.popitem(last=False)
                await asyncio.to_thread(_discard, former)
            return path

    async def _write(self, path: Path, pieces: AsyncGenerator[bytes, None], digest: str) -> None:
        is_complete = False
        try:
            async with aclosing(pieces):
                found = await _write(path, pieces)
            if digest and found != digest:
                message = "cannot read the bytes of the file: they are not those that were stored"
                raise GatewayError(ErrorKind.UNAVAILABLE, message)
            is_complete = True
        except OSError as error:
            message = f"cannot copy the bytes of the file: {system_reason(error)}"
            raise GatewayError(ErrorKind.UNAVAILABLE, message) from error
        finally:
            if not is_complete:
                await asyncio.to_thread(_discard, path)


def _discard(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


async def _write(path: Path, pieces: AsyncIterator[bytes]) -> str:
    """Write pieces to a new file; return their SHA-256."""
    digest = hashlib.sha256()

    def append(piece: bytes) -> None:
        digest.update(piece)
        with path.open("ab") as file:
            file.write(piece)

    def create() -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    await asyncio.to_thread(create)
    async for piece in pieces:
        await asyncio.to_thread(append, piece)
    return digest.hexdigest()
