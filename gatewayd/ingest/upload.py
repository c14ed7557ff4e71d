"""Keeps new files for `knowledge.uploads`: the bytes first, then the record with its job, then the answer."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.texts import is_plain
from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.ingest.blobs import ReceivedBytes
from gatewayd.ingest.file_names import clean_name, file_extension
from gatewayd.ingest.records import File, FileStatus, IngestJob
from gatewayd.ingest.updates import IngestStores
from gatewayd.transactions import after_commit

MAX_FIELD_CHARACTERS: Final = 255

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class NewFile:
    """What a client says about a file; `name` is as it came.

    `data` is the client's metadata, which may stand behind the file: it is read once the stream has ended.
    `checksum` is the client's own; where it is None that is `file_hash` of the metadata, or else the digest
    of the bytes. Without `process` the file is only stored. `is_unlimited` exempts an administrator's files
    from being counted. `id` is the one that the file is to have, None for a new one.
    """

    name: str
    content_type: str | None
    user_id: str
    data: Mapping[str, Any]
    checksum: str | None = None
    process: bool = True
    is_unlimited: bool = False
    id: str | None = None

    @property
    def knowledge_id(self) -> str:
        """The collection that the metadata name, empty where they name none.

        Like the other two it raises invalid_request for what is no short text.
        """
        return self._told("knowledge_id")

    @property
    def directory_id(self) -> str:
        """The directory that the metadata name."""
        return self._told("directory_id")

    @property
    def file_hash(self) -> str:
        """What the client calls this version of the file."""
        return self._told("file_hash")

    def _told(self, name: str) -> str:
        value = self.data.get(name)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > MAX_FIELD_CHARACTERS or not is_plain(value):
            raise invalid(f"cannot accept metadata.{name}: expected a short text", param=f"metadata.{name}")
        return value


@dataclass(frozen=True, slots=True)
class UploadRules:
    """The largest size in bytes and the most files of a user, 0 for no limit; the extensions that are
    processed, any when empty, in lower case without the dot."""

    max_size: int
    max_count: int
    extensions: frozenset[str]


class UploadService:
    """Keeps files and puts them into the queue; `wake` tells the queue of a job."""

    def __init__(
        self,
        stores: IngestStores,
        rules: UploadRules,
        wake: Callable[[], None],
        clock: ids.Clock = ids.now,
        new_id: ids.NewId = ids.new_id,
    ) -> None:
        self._stores = stores
        self._wake = wake
        self._clock = clock
        self._new_id = new_id
        self._chosen: set[str] = set()
        self.rules = rules

    async def keep(
        self,
        upload: NewFile,
        stream: AsyncIterator[bytes],
        also: Callable[[File], Awaitable[None]] | None = None,
    ) -> File:
        """Keep a file for good and return its record; `also` runs in the transaction that adds it.

        Raises invalid_request for a name, id or extension that is refused, conflict for an id that is taken,
        too_large over a limit, and what the stream or `also` raises; nothing is left then, nor when it is
        cancelled.
        """
        name = clean_name(upload.name)
        self._check(upload, name)
        await self._check_count(upload)
        if upload.id is None:
            return await self._receive(self._new_id(), upload, name, stream, also)
        with self._alone(upload.id):
            if await self._stores.files.find(upload.id) is not None:
                raise _taken(upload.id)
            return await self._receive(upload.id, upload, name, stream, also)

    async def _receive(
        self,
        file_id: str,
        upload: NewFile,
        name: str,
        stream: AsyncIterator[bytes],
        also: Callable[[File], Awaitable[None]] | None,
    ) -> File:
        received = await self._stores.blobs.receive(file_id, stream, self.rules.max_size)
        is_kept = False
        try:
            file = self._record(file_id, upload, name, received)
            await self._add(file, upload, also)
            is_kept = True
        finally:
            # A caller that is cancelled while the transaction ends has a file all the same.
            if not is_kept and await self._stores.files.find(file_id) is None:
                await self._stores.blobs.remove([file_id])
        return file

    def check_type(self, name: str) -> None:
        """Raise invalid_request when files with the extension of this name are not processed."""
        allowed = self.rules.extensions
        if allowed and file_extension(name) not in allowed:
            message = f"cannot process {shorten(name)!r}: files of this type are not allowed"
            raise invalid(message, param="file", code="file_type_not_allowed")

    async def enqueue(self, file_id: str) -> None:
        """Put a file into the queue, in the caller's transaction."""
        await self._stores.jobs.put(IngestJob(file_id, created_at=self._clock()))
        after_commit(self._wake)

    async def _add(self, file: File, upload: NewFile, also: Callable[[File], Awaitable[None]] | None) -> None:
        async with self._block(upload):
            # Others were received at the same time.
            await self._check_count(upload)
            await self._stores.files.add(file)
            if upload.process:
                await self.enqueue(file.id)
            if also is not None:
                await also(file)

    def _block(self, upload: NewFile) -> AbstractAsyncContextManager[None]:
        if self.rules.max_count and not upload.is_unlimited:
            return self._stores.transactor.exclusive(f"files of {upload.user_id}")
        return self._stores.transactor.transaction()

    @contextmanager
    def _alone(self, file_id: str) -> Iterator[None]:
        """Be the only one who receives a file of an id that was chosen."""
        if _ID.fullmatch(file_id) is None:
            raise invalid("cannot accept id: expected at most 64 letters, digits, - and _", param="id")
        if file_id in self._chosen:
            raise _taken(file_id)
        self._chosen.add(file_id)
        try:
            yield
        finally:
            self._chosen.discard(file_id)

    def _check(self, upload: NewFile, name: str) -> None:
        if upload.process:
            self.check_type(name)
        if upload.checksum is not None and not 0 < len(upload.checksum) <= MAX_FIELD_CHARACTERS:
            raise invalid(
                f"cannot use file_hash: it must have 1 to {MAX_FIELD_CHARACTERS} characters",
                param="file_hash",
            )

    async def _check_count(self, upload: NewFile) -> None:
        if not self.rules.max_count or upload.is_unlimited:
            return
        _, count = await self._stores.files.list(user_id=upload.user_id, limit=1)
        if count >= self.rules.max_count:
            message = (
                f"cannot store the file: there are {self.rules.max_count} files already, the most allowed"
            )
            raise GatewayError(ErrorKind.TOO_LARGE, message, param="file", code="too_many_files")

    def _record(self, file_id: str, upload: NewFile, name: str, received: ReceivedBytes) -> File:
        now = self._clock()
        content_type = upload.content_type
        return File(
            id=file_id,
            user_id=upload.user_id,
            name=name,
            size=received.size,
            digest=received.digest,
            checksum=upload.checksum or upload.file_hash or received.digest,
            content_type=content_type if content_type and len(content_type) <= MAX_FIELD_CHARACTERS else None,
            status=FileStatus.PENDING if upload.process else FileStatus.STORED,
            data=upload.data,
            updated_at=now,
            created_at=now,
        )


def _taken(file_id: str) -> GatewayError:
    return GatewayError(ErrorKind.CONFLICT, f"cannot store file {file_id!r}: the id is taken", param="id")
