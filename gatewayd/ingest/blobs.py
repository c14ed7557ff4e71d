"""Local blob store: the bytes of files in a directory of the daemon."""

import asyncio
import hashlib
import os
import shutil
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.fsync import sync_to_disk
from gatewayd.ingest.records import BlobContent, ReceivedBytes

INCOMING: Final = "incoming"
WRITE_BYTES: Final = 1 << 20

Result = TypeVar("Result")


class LocalBlobs:
    """Stores the bytes of a key at `<last two characters of key>/<key>` under a folder.

    An incomplete blob is at `incoming/<key>`, that of a node at `incoming/<node>/<key>`. File names that
    clients send never become part of a path. A key is used once: what is there is neither replaced nor
    deleted by another attempt to store it. Other daemons may use a folder that `is_shared`.
    """

    def __init__(self, folder: Path, node_id: str = "", *, is_shared: bool = False) -> None:
        self._folder = folder
        self.is_shared = is_shared
        self._incoming = folder / INCOMING / node_id

    def path(self, file_id: str) -> Path:
        """Return the path of the bytes of a file."""
        return self._folder / file_id[-2:] / file_id

    async def receive(self, file_id: str, stream: AsyncIterator[bytes], limit: int) -> ReceivedBytes:
        """Store the bytes of a stream; when this returns, they survive a power failure.

        Raises too_large after more than `limit` bytes (0 for no limit) and unavailable on an OS error, for
        a key that is taken too. The partial file is deleted when this raises or is cancelled, or when the
        stream raises.
        """
        sink = _Sink(self._incoming / file_id, self.path(file_id))
        is_complete = False
        try:
            await _in_thread(sink.open)
            await self._fill(sink, stream, limit)
            received = await _in_thread(sink.finish)
            is_complete = True
            return received
        finally:
            if not is_complete:
                await _in_thread(sink.discard)

    async def find(self, key: str) -> BlobContent | None:
        """Return the bytes of a key."""
        path = self.path(key)
        found = await _in_thread(lambda: _stat(path))
        if found is None:
            return None
        return BlobContent(found.st_size, found.st_mtime, key, partial(_read, path), path)

    @asynccontextmanager
    async def local(self, key: str, digest: str = "") -> AsyncGenerator[Path, None]:
        """Lend the path of the bytes."""
        yield self.path(key)

    async def keep_copy(self, key: str, digest: str = "") -> Path:
        """Return the path of the bytes, which is no copy."""
        return self.path(key)

    async def missing(self, keys: Iterable[str]) -> Sequence[str]:
        """Return the keys without bytes."""
        return await _in_thread(lambda: [key for key in keys if not self.path(key).exists()])

    async def remove(self, keys: Iterable[str]) -> None:
        """Delete the bytes of keys; missing ones are ignored."""
        paths = [self.path(key) for key in keys]
        if paths:
            await _in_thread(lambda: _unlink(paths))

    async def sweep(self, known: AsyncIterator[str]) -> int:
        """Delete the blobs that belong to none of the known files; return how many were deleted.

        Only for the start, before any upload: a blob without a row counts as a leftover. Nothing is deleted
        from a folder that is shared, in which others are storing files.
        """
        if self.is_shared:
            return 0
        found = await _in_thread(self._stored)
        async for file_id in known:
            found.pop(file_id, None)
        leftovers = [*found.values(), *await _in_thread(self._unfinished)]
        await _in_thread(lambda: _unlink(leftovers))
        return len(leftovers)

    async def sweep_old(self, known: AsyncIterator[str], before: int) -> int:
        """Delete the blobs from before a time that belong to none of the known files; return how many.

        At any time, if the row of an upload follows its blob earlier than that.
        """
        stored = await _in_thread(self._stored)
        found = await _in_thread(
            lambda: {name: path for name, path in stored.items() if _is_older(path, before)}
        )
        async for file_id in known:
            found.pop(file_id, None)
        await _in_thread(lambda: _unlink(found.values()))
        return len(found)

    async def find_orphans(self, known: AsyncIterator[str], before: int) -> Sequence[tuple[str, int]]:
        """Return the ids and sizes of the blobs from before a time that belong to none of the known files."""
        stored = await _in_thread(self._stored)
        async for file_id in known:
            stored.pop(file_id, None)
        return await _in_thread(
            lambda: [(name, size) for name, path in stored.items() if (size := _old_size(path, before)) >= 0]
        )

    async def remove_orphan(self, file_id: str, before: int) -> Sequence[int]:
        """Delete a blob if it is still from before a time; return its size, nothing for a newer one."""
        return await _in_thread(lambda: _remove_old([self.path(file_id)], before))

    async def find_abandoned(self, before: int) -> Sequence[int]:
        """Return the sizes of the unfinished uploads that were not written to since a time."""
        return await _in_thread(
            lambda: [size for path in self._unfinished() if (size := _old_size(path, before)) >= 0]
        )

    async def remove_abandoned(self, before: int) -> Sequence[int]:
        """Delete the unfinished uploads that were not written to since a time; return their sizes.

        The empty folders of other nodes that were not written to since then go, too.
        """
        return await _in_thread(lambda: self._remove_abandoned(before))

    async def _fill(self, sink: "_Sink", stream: AsyncIterator[bytes], limit: int) -> None:
        buffer = bytearray()
        size = 0
        async for piece in stream:
            size += len(piece)
            if limit and size > limit:
                message = f"cannot store the file: it is larger than {limit} bytes"
                raise GatewayError(ErrorKind.TOO_LARGE, message, param="file", code="file_too_large")
            buffer += piece
            if len(buffer) >= WRITE_BYTES:
                await self._write(sink, bytes(buffer))
                buffer.clear()
        await self._write(sink, bytes(buffer))

    async def _write(self, sink: "_Sink", data: bytes) -> None:
        await _in_thread(lambda: sink.write(data))

    def _stored(self) -> dict[str, Path]:
        folders = [each for each in _entries(self._folder) if each.name != INCOMING and each.is_dir()]
        return {path.name: path for folder in folders for path in _entries(folder)}

    def _remove_abandoned(self, before: int) -> Sequence[int]:
        others = [
            path
            for path in _entries(self._folder / INCOMING)
            if path.is_dir() and path != self._incoming and _is_older(path, before)
        ]
        removed = _remove_old(self._unfinished(), before)
        for path in others:
            with suppress(OSError):
                # It has files, or another node removed it.
                path.rmdir()
        return removed

    def _unfinished(self) -> list[Path]:
        found = _entries(self._folder / INCOMING)
        return [each for path in found for each in (_entries(path) if path.is_dir() else [path])]


class _Sink:
    """One file being received. Its methods run in threads, one at a time."""

    def __init__(self, part: Path, target: Path) -> None:
        self._part = part
        self._target = target
        self._file = -1
        self._hash = hashlib.sha256()
        self._size = 0
        self._discarded = False
        self._has_part = False
        self._has_target = False
        # The thread of a cancelled caller goes on running.
        self._lock = threading.Lock()

    def open(self) -> None:
        """Create the file."""
        with self._lock:
            if self._discarded:
                return
            try:
                self._create()
            except FileNotFoundError:
                # Another node has just removed the empty folder.
                self._create()
            self._has_part = True

    def _create(self) -> None:
        self._part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        with self._lock:
            if self._discarded:
                return
            self._hash.update(data)
            self._size += len(data)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._file, rest) :]

    def finish(self) -> ReceivedBytes:
        """Sync the file to disk and rename it to its final path."""
        with self._lock:
            if not self._discarded:
                os.fsync(self._file)
                self._close()
                self._target.parent.mkdir(mode=0o700, exist_ok=True)
                # The target is made here and replaced: a rename alone would replace the bytes of another.
                os.close(os.open(self._target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
                self._has_target = True
                self._part.rename(self._target)
                # The directory entry of a new folder is stored in its parent.
                sync_to_disk(self._target.parent)
                sync_to_disk(self._target.parent.parent)
            return ReceivedBytes(self._size, self._hash.hexdigest())

    def discard(self) -> None:
        """Delete the file, whether partial or complete."""
        with self._lock:
            self._discarded = True
            self._close()
            _unlink([self._part, self._target] if self._has_target else [self._part] * self._has_part)

    def _close(self) -> None:
        if self._file != -1:
            os.close(self._file)
            self._file = -1


async def _in_thread(work: Callable[[], Result]) -> Result:
    """Run work in a thread; it also runs to its end when the caller is cancelled.

    An OS error becomes unavailable.
    """
    try:
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, work))
    except OSError as error:
        raise GatewayError(
            ErrorKind.UNAVAILABLE, f"cannot store the file: {error.strerror or error}"
        ) from error


async def _read(path: Path, start: int, end: int) -> AsyncGenerator[bytes, None]:
    while start < end:
        piece = await _in_thread(partial(_read_at, path, start, min(WRITE_BYTES, end - start)))
        if not piece:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read the file: it ended too early")
        yield piece
        start += len(piece)


def _read_at(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def _is_older(path: Path, before: int) -> bool:
    try:
        return path.stat().st_mtime < before
    except FileNotFoundError:
        return False


def _old_size(path: Path, before: int) -> int:
    """Return the size of a file that is older than a time, -1 for another or an absent one."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return -1
    return found.st_size if found.st_mtime < before else -1


def _remove_old(paths: Iterable[Path], before: int) -> list[int]:
    removed = []
    for path in paths:
        size = _old_size(path, before)
        if size >= 0:
            _unlink([path])
            removed.append(size)
    return removed


def _unlink(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
