"""Files of batches: requests that users upload, and results that the gateway writes."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayd import ids
from gatewayd.batches.interfaces import BatchFileStore, Fence
from gatewayd.batches.records import BatchFile
from gatewayd.batches.room import FileRoom
from gatewayd.errors import invalid, not_found
from gatewayd.ingest.interfaces import BlobStore
from gatewayd.ingest.records import BlobContent
from gatewayd.ingest.storage_room import StorageLimiter, StorageReservation, UnlimitedStorage

INPUT_PURPOSE: Final = "batch"
OUTPUT_PURPOSE: Final = "batch_output"

MAX_FILE_BYTES: Final = 200 * 1024 * 1024
"""Maximum number of bytes of a file of requests, as at OpenAI."""

MAX_USER_FILES: Final = 1000
MAX_USER_BYTES: Final = 2 * 1024**3
MAX_NAME_CHARACTERS: Final = 255
MIN_LIFE_SECONDS: Final = 3600
MAX_LIFE_SECONDS: Final = 30 * 24 * 3600
"""Bounds of the time for which a file is kept; without a wish it is the longest."""

MAX_EXPIRED_AT_ONCE: Final = 500
ORPHAN_SECONDS: Final = 3600
"""Age at which bytes without a row belong to no upload."""


@dataclass(frozen=True, slots=True)
class FileWishes:
    """What an upload says about its file: the purpose, and for how long it is kept."""

    purpose: str
    life_seconds: int = MAX_LIFE_SECONDS


@dataclass(frozen=True, slots=True)
class _BatchBytes:
    """The bytes of a file, at most `limit` of them, 0 for no limit, and their room."""

    stream: AsyncIterator[bytes]
    limit: int
    space: StorageReservation


class BatchFiles:
    """Stores files with their bytes; a file is known only to its user."""

    def __init__(
        self,
        rows: BatchFileStore,
        blobs: BlobStore,
        clock: ids.Clock = ids.now,
        quotas: StorageLimiter | None = None,
        fence: Fence = nullcontext,
    ) -> None:
        self._fence = fence
        self._quotas = quotas or UnlimitedStorage()
        self._rows = rows
        self._room = FileRoom(rows, MAX_USER_FILES, MAX_USER_BYTES)
        self._blobs = blobs
        self._clock = clock
        self._receiving: dict[str, bool] = {}
        """Files whose row may not be there: whether they are being received; others wait for a sweep."""
        self._sweeps = 0

    async def start(self) -> None:
        """Delete bytes without a row, which a killed daemon left."""
        await self._blobs.sweep(self._rows.ids())

    async def content(self, file: BatchFile) -> BlobContent:
        """Return the bytes of a file; not_found if they are gone."""
        found = await self._blobs.find(file.id)
        if found is None:
            raise not_found("the bytes of file", file.id)
        return found

    async def has_bytes(self, file_id: str) -> bool:
        """Return whether the bytes of a file are there."""
        return not await self._blobs.missing([file_id])

    def local(self, file_id: str) -> AbstractAsyncContextManager[Path]:
        """Lend a path of the bytes of a file on this machine for the length of the block."""
        return self._blobs.local(file_id)

    async def upload(
        self, user_id: str, name: str, stream: AsyncIterator[bytes], wishes: Callable[[], "FileWishes"]
    ) -> BatchFile:
        """Store an upload; `wishes` is called when all bytes are there.

        Raises invalid_request for another purpose than batch, too_large above a limit or quota, and conflict
        if the user has too many files, or too many bytes in them, those of uploads that run included.
        """
        async with self._room.reserved(user_id) as room, self._quotas.reserved(user_id) as space:
            bytes_ = _BatchBytes(space.fill(room.fill(stream)), MAX_FILE_BYTES, space)
            file = await self._store(user_id, name, bytes_, lambda: _checked(wishes()))
            room.is_kept = True
        return file

    async def check_room(self, user_id: str, size: int = 0) -> None:
        """Raise conflict if a user has too many files or bytes, too_large if a quota has no room for more."""
        async with self._room.reserved(user_id), self._quotas.reserved(user_id, size):
            return

    async def write(self, user_id: str, name: str, stream: AsyncIterator[bytes]) -> BatchFile:
        """Store results of the gateway in place of those that a stopped attempt left under this name.

        Results of calls that were made are stored also over a quota. Raises conflict, and changes no row,
        once another node has taken the batches over.
        """
        async with self._fence():
            former = await self._rows.named(user_id, OUTPUT_PURPOSE, name)
            if former:
                await self._rows.remove(former)
        if former:
            await self._blobs.remove(former)
        results = _BatchBytes(stream, 0, UnlimitedStorage())
        file = await self._store(user_id, name, results, lambda: FileWishes(OUTPUT_PURPOSE), self._fence)
        self._room.note(user_id, 1, file.size)
        return file

    async def _store(
        self,
        user_id: str,
        name: str,
        content: "_BatchBytes",
        wishes: Callable[[], "FileWishes"],
        fence: Fence = nullcontext,
    ) -> BatchFile:
        file_id = f"file-{ids.new_id().replace('-', '')}"
        self._receiving[file_id] = True
        is_stored = False
        try:
            received = await self._blobs.receive(file_id, content.stream, content.limit)
            wanted, now = wishes(), self._clock()
            file = BatchFile(
                file_id,
                user_id,
                name[:MAX_NAME_CHARACTERS] or "file.jsonl",
                wanted.purpose,
                received.size,
                now,
                now + wanted.life_seconds,
            )
            async with content.space.settled(file.size), fence():
                await self._rows.add(file)
            is_stored = True
        finally:
            try:
                if not is_stored:
                    await self._blobs.remove([file_id])
            finally:
                self._receiving[file_id] = False
                self._forget_received()
        return file

    async def get(self, user_id: str, file_id: str) -> BatchFile:
        """Return a file of a user; raises not_found for any other."""
        file = await self._rows.find(file_id)
        if file is None or file.user_id != user_id or file.expires_at <= self._clock():
            raise not_found("file", file_id)
        return file

    async def list(
        self, user_id: str, purpose: str | None, *, after: str | None, limit: int
    ) -> Sequence[BatchFile]:
        """Return files of a user, newest first."""
        return await self._rows.list(user_id, purpose, after=after, limit=limit)

    async def remove(self, file: BatchFile) -> None:
        """Delete a file."""
        await self._rows.remove([file.id])
        self._room.note(file.user_id, -1, -file.size)
        await self._blobs.remove([file.id])

    async def remove_orphans(self) -> int:
        """Delete the bytes that went with a removed user; return how many.

        At once where this daemon alone stores files; young ones without a row may be another's uploads.
        """
        age = ORPHAN_SECONDS if self._blobs.is_shared else -ORPHAN_SECONDS
        self._sweeps += 1
        try:
            return await self._blobs.sweep_old(self._known(), self._clock() - age)
        finally:
            self._sweeps -= 1
            self._forget_received()

    async def _known(self) -> AsyncIterator[str]:
        async for file_id in self._rows.ids():
            yield file_id
        # A file that was received during the sweep may have got its row behind the reader.
        for file_id in list(self._receiving):
            yield file_id

    def _forget_received(self) -> None:
        if not self._sweeps:
            self._receiving = {file_id: True for file_id, runs in self._receiving.items() if runs}

    async def prune(self) -> int:
        """Delete expired files, and the bytes of those that went with their user; return how many."""
        found = await self._rows.expired(self._clock(), MAX_EXPIRED_AT_ONCE)
        if found:
            await self._rows.remove(found)
            await self._blobs.remove(found)
        swept = await self._blobs.sweep_old(self._rows.ids(), self._clock() - ORPHAN_SECONDS)
        return len(found) + swept


def _checked(wishes: FileWishes) -> FileWishes:
    if wishes.purpose != INPUT_PURPOSE:
        raise invalid(
            f"cannot accept purpose: the gateway keeps files with purpose {INPUT_PURPOSE} only",
            param="purpose",
            code="purpose_not_supported",
        )
    if not MIN_LIFE_SECONDS <= wishes.life_seconds <= MAX_LIFE_SECONDS:
        raise invalid(
            f"cannot accept expires_after: expected {MIN_LIFE_SECONDS} to {MAX_LIFE_SECONDS} seconds",
            param="expires_after",
        )
    return wishes
