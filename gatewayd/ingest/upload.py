"""Storage of new files for `knowledge.uploads`: first the bytes, then the record with its job."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.texts import is_plain
from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.ingest.records import File, FileStatus, IngestJob, ReceivedBytes, make_blob_key
from gatewayd.ingest.storage_room import StorageLimiter, StorageReservation, UnlimitedStorage
from gatewayd.ingest.updates import IngestStores
from gatewayd.text import compose_nfc
from gatewayd.transactions import after_commit

MAX_FIELD_CHARACTERS: Final = 255
MAX_NAME_CHARACTERS: Final = 255

OnAdd = Callable[[File], Awaitable[None]]
"""Runs in the transaction that adds a file."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class NewFile:
    """The client's description of an upload; `name` is as the client sent it.

    `data` is the client's metadata, which may follow the file in the request: it is read after the end of the
    stream. `checksum` is the client's own; None selects `file_hash` of the metadata, or else the digest of
    the bytes. Without `process` the file is only stored. `is_unlimited` exempts an administrator from the
    maximum number of files. `id` is the requested id of the file, None for a generated one.
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
        """The collection id in the metadata, "" without one.

        This property and the next two raise invalid_request unless the value is a short text.
        """
        return self._metadata_text("knowledge_id")

    @property
    def directory_id(self) -> str:
        """The directory id in the metadata, "" without one."""
        return self._metadata_text("directory_id")

    @property
    def file_hash(self) -> str:
        """The client's identifier of this version of the file, "" without one."""
        return self._metadata_text("file_hash")

    def _metadata_text(self, name: str) -> str:
        value = self.data.get(name)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > MAX_FIELD_CHARACTERS or not is_plain(value):
            raise invalid(f"cannot accept metadata.{name}: expected a short text", param=f"metadata.{name}")
        return value


@dataclass(frozen=True, slots=True)
class UploadRules:
    """Maximum size in bytes and maximum number of files of a user (0 for no limit), and the processed types.

    `extensions` are in lower case without the dot; an empty set allows every type.
    """

    max_size: int
    max_count: int
    extensions: frozenset[str]


class UploadService:
    """Stores files and adds their jobs; `wake` wakes the queue."""

    def __init__(
        self,
        stores: IngestStores,
        rules: UploadRules,
        wake: Callable[[], None],
        clock: ids.Clock = ids.now,
        new_id: ids.NewId = ids.new_id,
        quotas: StorageLimiter | None = None,
    ) -> None:
        self._quotas = quotas or UnlimitedStorage()
        self._stores = stores
        self._wake = wake
        self._clock = clock
        self._new_id = new_id
        self._reserved_ids: set[str] = set()
        self.rules = rules

    async def keep(
        self,
        upload: NewFile,
        stream: AsyncIterator[bytes],
        on_add: OnAdd | None = None,
    ) -> File:
        """Store a file and return its record; `on_add` runs in the transaction that adds the record.

        Raises invalid_request for a refused name, id or extension, conflict for an id that is taken,
        too_large above a limit or quota, and the errors of the stream and of `on_add`. Nothing is stored when
        this raises or is cancelled.
        """
        name = clean_name(upload.name)
        self._check(upload, name)
        await self._check_count(upload)
        async with self._quotas.reserved(upload.user_id) as space:
            intake = _Intake(upload, name, space, on_add)
            if upload.id is None:
                return await self._receive(self._new_id(), intake, stream)
            with self._reserved(upload.id):
                if await self._stores.files.find(upload.id) is not None:
                    raise _id_taken(upload.id)
                return await self._receive(upload.id, intake, stream)

    async def check_room(self, user_id: str, size: int) -> None:
        """Raise too_large if the quotas of a user have no room for a file of at least a size in bytes."""
        async with self._quotas.reserved(user_id, size):
            return

    async def _receive(self, file_id: str, intake: "_Intake", stream: AsyncIterator[bytes]) -> File:
        # Clients may choose one id at once, on several nodes: only the row decides whose bytes the file has.
        blob = "" if intake.upload.id is None else make_blob_key(file_id, ids.new_id())
        key, blobs = blob or file_id, self._stores.blobs
        received = await blobs.receive(key, intake.space.fill(stream), self.rules.max_size)
        is_added = False
        try:
            file = replace(self._record(file_id, intake.upload, intake.name, received), blob=blob)
            await self._add(file, intake)
            is_added = True
        finally:
            # A caller cancelled during the commit may have added the file nevertheless.
            if not is_added and not await self._is_kept(file_id, key):
                await self._stores.blobs.remove([key])
        return file

    async def _is_kept(self, file_id: str, key: str) -> bool:
        file = await self._stores.files.find(file_id)
        return file is not None and file.blob_key == key

    def check_type(self, name: str) -> None:
        """Raise invalid_request when files with the extension of this name are not processed."""
        allowed = self.rules.extensions
        if allowed and file_extension(name) not in allowed:
            message = f"cannot process {shorten(name)!r}: files of this type are not allowed"
            raise invalid(message, param="file", code="file_type_not_allowed")

    async def enqueue(self, file_id: str) -> None:
        """Add the job of a file, in the caller's transaction."""
        await self._stores.jobs.put(IngestJob(file_id, created_at=self._clock()))
        after_commit(self._wake)

    async def _add(self, file: File, intake: "_Intake") -> None:
        async with self._block(intake.upload), intake.space.settled(file.size):
            # Concurrent uploads may have reached the limit since the first check.
            await self._check_count(intake.upload)
            await self._stores.files.add(file)
            if intake.upload.process:
                await self.enqueue(file.id)
            if intake.on_add is not None:
                await intake.on_add(file)

    def _block(self, upload: NewFile) -> AbstractAsyncContextManager[None]:
        if self.rules.max_count and not upload.is_unlimited:
            return self._stores.transactor.exclusive(f"files of {upload.user_id}")
        return self._stores.transactor.transaction()

    @contextmanager
    def _reserved(self, file_id: str) -> Iterator[None]:
        """Reserve a requested id in this process; raises conflict while another upload has reserved it."""
        if _ID.fullmatch(file_id) is None:
            raise invalid("cannot accept id: expected at most 64 letters, digits, - and _", param="id")
        if file_id in self._reserved_ids:
            raise _id_taken(file_id)
        self._reserved_ids.add(file_id)
        try:
            yield
        finally:
            self._reserved_ids.discard(file_id)

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
            message = f"cannot store the file: the user already has {self.rules.max_count} files, the maximum"
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


@dataclass(frozen=True, slots=True)
class _Intake:
    """One upload, its room, and what runs in the transaction that adds its record."""

    upload: NewFile
    name: str
    space: StorageReservation
    on_add: OnAdd | None


def clean_name(name: str, *, param: str = "file") -> str:
    """Return the last component of a file name in NFC; invalid_request when it is empty or unusable."""
    cleaned = last_component(name)
    if not is_plain(cleaned):
        raise invalid("cannot use the file name: it contains control characters", param=param)
    if cleaned in {"", ".", ".."}:
        raise invalid("cannot use the file name: it is empty", param=param)
    if len(cleaned) > MAX_NAME_CHARACTERS:
        raise invalid(
            f"cannot use the file name: it is longer than {MAX_NAME_CHARACTERS} characters", param=param
        )
    return cleaned


def last_component(name: str) -> str:
    """Return the part after the last slash or backslash, in NFC."""
    return compose_nfc(name.replace("\\", "/").rpartition("/")[2].strip())


def file_extension(name: str) -> str:
    """Return the part after the last dot of a name in lower case, "" without a dot."""
    return name.rpartition(".")[2].lower() if "." in name else ""


def _id_taken(file_id: str) -> GatewayError:
    return GatewayError(ErrorKind.CONFLICT, f"cannot store file {file_id!r}: the id is taken", param="id")
