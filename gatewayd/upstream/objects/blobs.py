"""Blob store in a bucket: the bytes of files as objects, and copies on disk where a path is needed."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.blob_copies import BlobCopies
from gatewayd.ingest.records import BlobContent, ReceivedBytes
from gatewayd.upstream.objects.bucket import PART_BYTES, Bucket

HASHED_BYTES: Final = 1 << 20


class ObjectBlobs:
    """Implements `ingest.interfaces.BlobStore` with the objects `<folder>/<key>` of a bucket."""

    is_shared = True

    def __init__(self, bucket: Bucket, folder: str, copies: BlobCopies) -> None:
        self._bucket = bucket
        self._folder = folder
        self._copies = copies

    async def receive(self, key: str, stream: AsyncIterator[bytes], limit: int) -> ReceivedBytes:
        """Store the bytes of a stream under a key that is used once."""
        measured = _MeasuredStream(stream, limit)
        first = await measured.take(PART_BYTES)
        if len(first) < PART_BYTES:
            await self._bucket.put(self._name(key), first)
        else:
            await self._bucket.put_parts(self._name(key), measured.rest(first))
        received = measured.received()
        stored = await self._bucket.head(self._name(key))
        if stored.size != received.size:
            await self.remove([key])
            message = f"cannot store the file: the object store has {stored.size} of {received.size} bytes"
            raise GatewayError(ErrorKind.UNAVAILABLE, message)
        return received

    async def find(self, key: str) -> BlobContent | None:
        """Return the bytes of a key."""
        try:
            stored = await self._bucket.head(self._name(key))
        except GatewayError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return None
            raise
        return BlobContent(
            stored.size, stored.modified_at, key, lambda start, end: self._bucket.read(stored.key, start, end)
        )

    @asynccontextmanager
    async def local(self, key: str, digest: str = "") -> AsyncGenerator[Path, None]:
        """Lend a copy on disk, which is compared with the digest and deleted afterwards."""
        async with self._copies.lend(self._pieces(key), digest) as path:
            yield path

    async def keep_copy(self, key: str, digest: str = "") -> Path:
        """Return the path of a copy on disk, which later copies replace."""
        return await self._copies.keep(key, self._pieces(key), digest)

    async def missing(self, keys: Iterable[str]) -> Sequence[str]:
        """Return the keys without bytes."""
        return [key for key in keys if await self.find(key) is None]

    async def remove(self, keys: Iterable[str]) -> None:
        """Delete the bytes of keys; missing ones are ignored."""
        for key in keys:
            await self._bucket.delete(self._name(key))

    async def sweep(self, known: AsyncIterator[str]) -> int:
        """Return 0: other daemons may be storing files."""
        return 0

    async def sweep_old(self, known: AsyncIterator[str], before: int) -> int:
        """Delete the bytes from before a time that belong to no known key; return how many."""
        orphans = await self.find_orphans(known, before)
        await self.remove(key for key, _ in orphans)
        return len(orphans)

    async def find_orphans(self, known: AsyncIterator[str], before: int) -> Sequence[tuple[str, int]]:
        """Return the keys and sizes of the bytes from before a time that belong to no known key."""
        begin = len(self._folder) + 1
        found = {
            each.key[begin:]: each.size
            async for each in self._bucket.list(self._folder)
            if each.modified_at < before
        }
        async for key in known:
            found.pop(key, None)
        return list(found.items())

    async def remove_orphan(self, key: str, before: int) -> Sequence[int]:
        """Delete bytes if they are still from before a time; return their size, nothing for newer ones."""
        found = await self.find(key)
        if found is None or found.modified_at >= before:
            return []
        await self.remove([key])
        return [found.size]

    async def find_abandoned(self, before: int) -> Sequence[int]:
        """Return nothing: a bucket keeps unfinished uploads apart, and its own rule deletes them."""
        return []

    async def remove_abandoned(self, before: int) -> Sequence[int]:
        """Return nothing, as `find_abandoned` does."""
        return []

    def _name(self, key: str) -> str:
        return f"{self._folder}/{key}"

    async def _pieces(self, key: str) -> AsyncGenerator[bytes, None]:
        stored = await self._bucket.head(self._name(key))
        async for piece in self._bucket.read(self._name(key), 0, stored.size):
            yield piece


class _MeasuredStream:
    """A stream in pieces of about a mebibyte, with its size and digest."""

    def __init__(self, stream: AsyncIterator[bytes], limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._hash = hashlib.sha256()
        self._size = 0

    async def take(self, size: int) -> bytes:
        """Return the first `size` bytes or a few more, all bytes of a shorter stream."""
        buffer = bytearray()
        async for piece in self._pieces():
            buffer += piece
            if len(buffer) >= size:
                break
        return bytes(buffer)

    async def rest(self, first: bytes) -> AsyncGenerator[bytes, None]:
        """Yield what was taken, and then all that follows."""
        yield first
        async for piece in self._pieces():
            yield piece

    def received(self) -> ReceivedBytes:
        """Return the size and the digest of what was read."""
        return ReceivedBytes(self._size, self._hash.hexdigest())

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        buffer = bytearray()
        async for piece in self._stream:
            buffer += piece
            if self._limit and self._size + len(buffer) > self._limit:
                message = f"cannot store the file: it is larger than {self._limit} bytes"
                raise GatewayError(ErrorKind.TOO_LARGE, message, param="file", code="file_too_large")
            if len(buffer) >= HASHED_BYTES:
                yield await self._measured(bytes(buffer))
                buffer.clear()
        if buffer:
            yield await self._measured(bytes(buffer))

    async def _measured(self, piece: bytes) -> bytes:
        self._size += len(piece)
        await asyncio.to_thread(self._hash.update, piece)
        return piece
