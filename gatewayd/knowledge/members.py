"""Members of collections: adds files to collections and removes them, singly or in batches."""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.catalog.access_grants import WRITE
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found
from gatewayd.ingest.files import FileService
from gatewayd.ingest.records import File, FileStatus
from gatewayd.ingest.updates import FileRemoval
from gatewayd.knowledge.access import CollectionAccess
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.index_updates import IndexNotifier
from gatewayd.knowledge.interfaces import CollectionStore
from gatewayd.knowledge.records import Collection, CollectionDirectory, CollectionLink
from gatewayd.knowledge.scopes import unfinished_reason
from gatewayd.transactions import Transactor

MAX_WAIT_SECONDS: Final = 300.0
PAGE_SIZE: Final = 500
LINK_LOCK: Final = "collection files"

# Errors of one file, which do not stop the other files of a batch.
PER_FILE_ERROR_KINDS: Final = frozenset(
    {ErrorKind.NOT_FOUND, ErrorKind.FORBIDDEN, ErrorKind.INVALID_REQUEST, ErrorKind.EMPTY_CONTENT}
)


@dataclass(frozen=True, slots=True)
class CollectionServices:
    """The services and stores that the services for files of collections share."""

    collections: CollectionService
    store: CollectionStore
    files: FileService
    removal: FileRemoval
    access: CollectionAccess
    transactor: Transactor
    notifier: IndexNotifier
    clock: ids.Clock = ids.now


@dataclass(frozen=True, slots=True)
class FileAddition:
    """A file to add to a collection, and its directory there."""

    file_id: str
    directory_id: str | None = None


@dataclass(frozen=True, slots=True)
class MemberResult:
    """Result for one file of a batch: `is_changed` when it was added or removed, else maybe an `error`."""

    file_id: str
    is_changed: bool = False
    is_deleted: bool = False
    error: GatewayError | None = None


class CollectionMembers:
    """Adds files to collections and removes them.

    Every method except `list` needs write access to the collection. Files that the actor may not read do not
    exist for them. All readers of a collection can read its files, so adding a file needs write access to the
    file, too: read access does not include the right to share.
    """

    def __init__(self, services: CollectionServices) -> None:
        self._services = services
        self._collections = services.collections
        self._store = services.store
        self._files = services.files

    async def list(
        self,
        actor: Actor,
        collection_id: str,
        *,
        query: str = "",
        directory_id: str | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> tuple[Sequence[tuple[CollectionLink, File]], int]:
        """Return one page of the files in any status, in the order of linking, and the total count."""
        await self._collections.get(actor, collection_id)
        return await self._store.list_files(
            collection_id, directory_id=directory_id, query=query, offset=offset, limit=limit
        )

    async def completed(self, actor: Actor, collection_id: str, limit: int) -> Sequence[File] | None:
        """Return all completed files; None when the collection has over `limit` files."""
        found, total = await self.list(actor, collection_id, limit=limit)
        if total > limit:
            return None
        return [file for _, file in found if file.status is FileStatus.COMPLETED]

    async def add(
        self,
        actor: Actor,
        collection_id: str,
        file_id: str,
        *,
        directory_id: str | None = None,
        wait: float = 0.0,
    ) -> Collection:
        """Add a completed file; wait up to `wait` seconds (300 at most) for a pending one.

        A file that is already a member stays, and moves to `directory_id` unless that is None. Raises
        forbidden for a file that the actor may only read, empty_content for one without passages,
        invalid_request (code duplicate_content) for a text that another file of the collection has.
        """
        collection = await self._collections.get_writable(actor, collection_id)
        if await self._add(actor, collection, FileAddition(file_id, directory_id), wait):
            return await self._collections.touch(collection)
        return collection

    async def add_many(
        self, actor: Actor, collection_id: str, additions: Sequence[FileAddition], *, wait: float = 0.0
    ) -> tuple[Collection, Sequence[MemberResult]]:
        """Add files independently: an error of one file does not affect the others.

        `wait` is the total number of seconds to wait for all pending files.
        """
        collection = await self._collections.get_writable(actor, collection_id)
        now = asyncio.get_running_loop().time
        deadline = now() + min(wait, MAX_WAIT_SECONDS)
        results = [
            await _result(addition.file_id, self._add(actor, collection, addition, deadline - now()))
            for addition in additions
        ]
        if any(result.is_changed for result in results):
            collection = await self._collections.touch(collection)
        return collection, results

    async def preview_add(
        self, actor: Actor, collection_id: str, file_ids: Sequence[str]
    ) -> Sequence[MemberResult]:
        """Return the results that `add_many` would have for each file alone; changes nothing."""
        collection = await self._collections.get_writable(actor, collection_id)
        return [await _result(file_id, self._check(actor, collection, file_id)) for file_id in file_ids]

    async def preview_remove(
        self, actor: Actor, collection_id: str, file_ids: Sequence[str], *, delete_files: bool = True
    ) -> Sequence[MemberResult]:
        """Return the results that `remove_many` would have; changes nothing."""
        collection = await self._collections.get_writable(actor, collection_id)
        holding = await self._store.holding(file_ids)
        results = []
        for file_id in dict.fromkeys(file_ids):
            holders = [each.id for each in holding.get(file_id, ())]
            if collection.id not in holders:
                results.append(MemberResult(file_id, error=_not_a_member(collection, file_id)))
                continue
            file = await self._files.get(actor, file_id)
            is_last = delete_files and holders == [collection.id]
            goes = is_last and await self._services.access.may(actor, file, WRITE)
            results.append(MemberResult(file_id, is_changed=True, is_deleted=goes))
        return results

    async def update_file(self, actor: Actor, collection_id: str, file_id: str) -> Collection:
        """Refresh the index for a member file; changed texts are also indexed once they are processed."""
        collection = await self._collections.get_writable(actor, collection_id)
        file = await self._files.get(actor, file_id)
        if file_id not in await self._store.find_links(collection.id, [file_id]):
            raise _not_a_member(collection, file_id)
        _check_finished(file)
        await self._services.notifier.changed(collection.id, [file_id])
        return await self._collections.touch(collection)

    async def remove_file(
        self, actor: Actor, collection_id: str, file_id: str, *, delete_file: bool = True
    ) -> Collection:
        """Remove a file from a collection; not_found when it is not a member.

        With `delete_file` the file itself is deleted, too, if the actor may write it and no other collection
        contains it.
        """
        collection = await self._collections.get_writable(actor, collection_id)
        result = await self._remove(actor, collection, file_id, delete_file=delete_file)
        if result.error is not None:
            raise result.error
        return await self._collections.touch(collection)

    async def remove_many(
        self, actor: Actor, collection_id: str, file_ids: Sequence[str], *, delete_files: bool = True
    ) -> Sequence[MemberResult]:
        """Remove files independently; results of files that are not members have a not_found error."""
        collection = await self._collections.get_writable(actor, collection_id)
        results = []
        for piece in _batches(list(dict.fromkeys(file_ids))):
            held = await self._store.find_links(collection.id, piece)
            results += [
                await self._remove(actor, collection, file_id, delete_file=delete_files)
                if file_id in held
                else MemberResult(file_id, error=_not_a_member(collection, file_id))
                for file_id in piece
            ]
        if any(result.is_changed for result in results):
            await self._collections.touch(collection)
        return results

    async def reset(self, actor: Actor, collection_id: str, *, directories: bool = True) -> Collection:
        """Unlink all files without deleting them, and remove the directories."""
        collection = await self._collections.get_writable(actor, collection_id)
        while True:
            async with self._services.transactor.exclusive(LINK_LOCK):
                page, _ = await self._store.list_files(collection.id, limit=PAGE_SIZE)
                if page:
                    await self._store.unlink(collection.id, [file.id for _, file in page])
            if not page:
                break
        if directories:
            known = await self._store.list_directories(collection.id)
            await self._store.remove_directories(collection.id, [each.id for each in known])
        await self._services.notifier.gone(collection.id)
        return await self._collections.touch(collection)

    async def _add(self, actor: Actor, collection: Collection, addition: FileAddition, wait: float) -> bool:
        """Add one file; False when it was already a member."""
        file = await self._files.get(actor, addition.file_id)
        if file.status is FileStatus.PENDING and wait > 0:
            file = await self._files.finished(file.id, min(wait, MAX_WAIT_SECONDS))
        async with self._services.transactor.exclusive(LINK_LOCK):
            if addition.directory_id is not None:
                await get_ancestors(self._store, collection.id, addition.directory_id)
            known = (await self._store.find_links(collection.id, [file.id])).get(file.id)
            if known is not None and file.status is not FileStatus.FAILED:
                await self._move(known, addition.directory_id)
                return False
            await self._check_new(actor, collection, file)
            link = CollectionLink(
                collection.id,
                file.id,
                actor.user_id,
                directory_id=addition.directory_id,
                created_at=self._services.clock(),
            )
            await self._store.link(link)
        await self._services.notifier.changed(collection.id, [file.id])
        return True

    async def _check(self, actor: Actor, collection: Collection, file_id: str) -> bool:
        """Return whether `_add` would add a file; raises the errors of `_add`."""
        file = await self._files.get(actor, file_id)
        if file.status is not FileStatus.FAILED and await self._store.find_links(collection.id, [file.id]):
            return False
        await self._check_new(actor, collection, file)
        return True

    async def _move(self, link: CollectionLink, directory_id: str | None) -> None:
        if directory_id is not None and directory_id != link.directory_id:
            await self._store.move_files(link.collection_id, [link.file_id], directory_id)

    async def _check_new(self, actor: Actor, collection: Collection, file: File) -> None:
        if not await self._services.access.may(actor, file, WRITE):
            raise GatewayError(
                ErrorKind.FORBIDDEN, f"cannot add file {file.id!r}: it is not yours to share", param="file_id"
            )
        _check_finished(file)
        if not file.text_hash:
            return
        # A synchronised tree may contain the same text at several paths, which is no duplicate.
        other = await self._store.find_same_text(collection.id, file.text_hash, but=file.id)
        if other is not None:
            raise invalid(
                f"Duplicate content: file {file.id!r} has the same text as file {other!r}, which is in the"
                " collection already",
                param="file_id",
                code="duplicate_content",
            )

    async def _remove(
        self, actor: Actor, collection: Collection, file_id: str, *, delete_file: bool
    ) -> MemberResult:
        goes = False
        async with self._services.transactor.exclusive(LINK_LOCK):
            if file_id not in await self._store.find_links(collection.id, [file_id]):
                return MemberResult(file_id, error=_not_a_member(collection, file_id))
            if delete_file:
                # Must precede `unlink`: the write access may come from this collection.
                file = await self._files.get(actor, file_id)
                goes = await self._services.access.may(actor, file, WRITE)
            await self._store.unlink(collection.id, [file_id])
        await self._services.notifier.changed(collection.id, [file_id])
        is_deleted = goes and await self._services.removal.remove(file_id, unused=True)
        return MemberResult(file_id, is_changed=True, is_deleted=is_deleted)


async def _result(file_id: str, work: Awaitable[bool]) -> MemberResult:
    """Return the result for one file of a batch; errors of PER_FILE_ERROR_KINDS become part of it."""
    try:
        return MemberResult(file_id, is_changed=await work)
    except GatewayError as error:
        if error.kind not in PER_FILE_ERROR_KINDS:
            raise
        return MemberResult(file_id, error=error)


def _batches(file_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(file_ids), PAGE_SIZE):
        yield file_ids[start : start + PAGE_SIZE]


async def get_ancestors(
    store: CollectionStore, collection_id: str, directory_id: str
) -> Sequence[CollectionDirectory]:
    """Return a directory and its ancestors, the highest first; raises not_found."""
    ancestors = await store.find_ancestors(collection_id, directory_id)
    if not ancestors:
        raise not_found("directory", directory_id)
    return ancestors


def _check_finished(file: File) -> None:
    problem = unfinished_reason(file)
    if problem:
        raise GatewayError(
            ErrorKind.EMPTY_CONTENT,
            f"cannot add file {file.id!r}: {problem}",
            param="file_id",
            code="empty_content",
        )


def _not_a_member(collection: Collection, file_id: str) -> GatewayError:
    return not_found(f"in collection {collection.id!r} the file", file_id)
