"""The file service: access checks, and the operations on one file."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.accounts.texts import clean_object
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.ingest.interfaces import FileGrants
from gatewayd.ingest.processor import FileProcessor
from gatewayd.ingest.records import BlobContent, File, FileStatus
from gatewayd.ingest.updates import FileRemoval, IndexUpdates, IngestStores
from gatewayd.ingest.upload import UploadService, clean_name
from gatewayd.text import storage_fault

REMOVAL_BATCH_SIZE: Final = 500
FINAL_STATUSES: Final = frozenset({FileStatus.COMPLETED, FileStatus.FAILED})


class FileService:
    """The service for files. A file that an actor may not read does not exist for them: not_found.

    Owners and exempt actors (administrators) have every permission on a file; others have the permissions
    that collections grant. `uploads` stores new files; its caller checks the permission to upload.
    """

    def __init__(
        self,
        stores: IngestStores,
        uploads: UploadService,
        grants: FileGrants,
        processor: FileProcessor,
        updates: IndexUpdates,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._stores = stores
        self.uploads = uploads
        self._grants = grants
        self._processor = processor
        self._updates = updates
        self._clock = clock
        self._removal = FileRemoval(stores, updates)
        self._busy: set[str] = set()

    async def get(self, actor: Actor, file_id: str) -> File:
        """Return a file that the actor may read."""
        file = await self._stores.files.find(file_id)
        if file is None or not await self._grants.may(actor, file, "read"):
            raise not_found("file", file_id)
        return file

    async def get_writable(self, actor: Actor, file_id: str) -> File:
        """Return a file that the actor may change; forbidden when they may only read it."""
        file = await self.get(actor, file_id)
        if not await self._grants.may(actor, file, "write"):
            raise GatewayError(ErrorKind.FORBIDDEN, f"cannot change file {file_id!r}: it is not yours")
        return file

    async def rename(self, actor: Actor, file_id: str, name: str) -> File:
        """Rename a file."""
        return await self._update(actor, file_id, name=clean_name(name, param="filename"))

    async def set_data(self, actor: Actor, file_id: str, data: Mapping[str, Any]) -> File:
        """Replace the client's metadata of a file."""
        return await self._update(actor, file_id, data=clean_object(data, "metadata"))

    async def give(self, actor: Actor, file_id: str, owner_id: str) -> File:
        """Make another account, which exists, the owner of a file; for administrators only."""
        if not actor.is_admin:
            raise GatewayError(ErrorKind.FORBIDDEN, "cannot give files to another account")
        return await self._update(actor, file_id, user_id=owner_id)

    async def remove(self, actor: Actor, file_id: str) -> File:
        """Delete a file with its passages, links and bytes; returns it as it was."""
        file = await self.get_writable(actor, file_id)
        if not await self._removal.remove(file_id):
            raise not_found("file", file_id)
        return file

    async def remove_all(self, actor: Actor) -> None:
        """Delete all files that `list` returns, in batches; files added during the call may remain."""
        _, left = await self.list(actor, limit=1)
        while left > 0:
            found, _ = await self.list(actor, limit=min(left, REMOVAL_BATCH_SIZE))
            for file in found:
                await self._removal.remove(file.id)
            left = left - len(found) if found else 0

    async def retry(self, actor: Actor, file_id: str) -> File:
        """Queue a file for processing; its published passages stay searchable until then.

        Raises conflict while it is being processed, invalid_request when its type is not allowed.
        """
        self.uploads.check_type((await self.get_writable(actor, file_id)).name)
        with self._locked(file_id):
            async with self._stores.transactor.transaction():
                file = await self._idle(file_id)
                if file.status is not FileStatus.COMPLETED:
                    file = replace(file, status=FileStatus.PENDING, error=None, updated_at=self._clock())
                    await self._stores.files.change(file)
                await self._stores.passages.unstage(file_id)
                await self.uploads.enqueue(file_id)
                self._updates.notify_after_commit(file_id)
        return file

    async def text(self, actor: Actor, file_id: str) -> str:
        """Return the text of a file, "" before it is extracted."""
        await self.get(actor, file_id)
        return await self._stores.passages.find_text(file_id) or ""

    async def set_text(self, actor: Actor, file_id: str, text: str) -> File:
        """Replace the text of a file; the new text is searchable when this returns.

        Raises empty_content for a blank text, too_large above the maximum upload size, conflict while the
        file is being processed, and the errors of Embedder.
        """
        await self.get_writable(actor, file_id)
        self._check_text(text)
        with self._locked(file_id):
            return await self._processor.rewrite(await self._idle(file_id), text)

    async def content(self, actor: Actor, file_id: str) -> tuple[File, BlobContent]:
        """Return a file and its bytes."""
        file = await self.get(actor, file_id)
        content = await self._stores.blobs.find(file.blob_key)
        if content is None:
            raise not_found("the bytes of file", file_id)
        return file, content

    async def local_copy(self, actor: Actor, file_id: str) -> Path:
        """Return a path of the bytes of a file on this machine, which stays for a while."""
        file, content = await self.content(actor, file_id)
        return content.path or await self._stores.blobs.keep_copy(file.blob_key, file.digest)

    async def changes(self, actor: Actor, file_id: str) -> AsyncGenerator[File | None, None]:
        """Yield a file now and after each change of its status, up to the final one; None when it is removed.

        Ends early after `end_waits`. Raises not_found at once for a file that the actor may not read.
        """
        await self.get(actor, file_id)
        async with contextlib.aclosing(self._follow(file_id)) as states:
            async for file in states:
                yield file

    async def finished(self, file_id: str, seconds: float) -> File:
        """Return a file once it is not pending, or its state after some seconds or after `end_waits`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), contextlib.aclosing(self._follow(file_id)) as states:
                async for file in states:
                    if file is None or file.status is not FileStatus.PENDING:
                        break
        found = await self._stores.files.find(file_id)
        if found is None:
            raise not_found("file", file_id)
        return found

    def end_waits(self) -> None:
        """End all waits for files because the gateway stops; the next start continues the processing."""
        self._updates.watch.end()

    async def list(
        self,
        actor: Actor,
        *,
        owner_id: str | None = None,
        orphaned: bool = False,
        pattern: str = "",
        status: FileStatus | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[File], int]:
        """Return one page of the actor's files, newest first, and the total count.

        Exempt actors see all files, those of `owner_id`, or with `orphaned` those of removed accounts.
        """
        owner_id = owner_id if self._grants.is_exempt(actor) else actor.user_id
        return await self._stores.files.list(
            user_id=owner_id, orphaned=orphaned, pattern=pattern, status=status, offset=offset, limit=limit
        )

    async def _update(self, actor: Actor, file_id: str, **fields: Any) -> File:
        await self.get_writable(actor, file_id)
        async with self._stores.transactor.transaction():
            file = await self._stores.files.find(file_id)
            if file is None:
                raise not_found("file", file_id)
            described = replace(file, **fields, updated_at=self._clock())
            await self._stores.files.change(described)
        return described

    async def _follow(self, file_id: str) -> AsyncGenerator[File | None, None]:
        yielded: tuple[FileStatus, str | None] | None = None
        while True:
            seen = self._updates.watch.version
            file = await self._stores.files.find(file_id)
            if file is None:
                yield None
                return
            if yielded != (file.status, file.error):
                yielded = file.status, file.error
                yield file
            if file.status in FINAL_STATUSES:
                return
            if self._updates.watch.is_over:
                return
            await self._updates.watch.wait(file_id, seen)

    async def _idle(self, file_id: str) -> File:
        """Return a file; raises conflict when it has a job."""
        file = await self._stores.files.find(file_id)
        if file is None:
            raise not_found("file", file_id)
        if await self._stores.jobs.find(file_id) is not None:
            raise _busy(file_id)
        return file

    @contextmanager
    def _locked(self, file_id: str) -> Iterator[None]:
        """Lock a file in this process for `retry` and `set_text`; raises conflict when it is locked."""
        if file_id in self._busy:
            raise _busy(file_id)
        self._busy.add(file_id)
        try:
            yield
        finally:
            self._busy.discard(file_id)

    def _check_text(self, text: str) -> None:
        fault = storage_fault(text)
        if fault is not None:
            raise invalid(f"cannot use content: {fault}", param="content")
        if not text.strip():
            raise GatewayError(ErrorKind.EMPTY_CONTENT, "cannot use content: it is empty", param="content")
        limit = self.uploads.rules.max_size
        if limit and len(text.encode()) > limit:
            message = f"cannot use content: it is larger than {limit} bytes"
            raise GatewayError(ErrorKind.TOO_LARGE, message, param="content", code="file_too_large")


def _busy(file_id: str) -> GatewayError:
    return GatewayError(ErrorKind.CONFLICT, f"cannot change file {file_id!r}: it is being processed")
