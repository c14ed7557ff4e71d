"""Index updates after committed changes of files, and the removal of files."""

import logging
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass

from gatewayd.errors import GatewayError
from gatewayd.ingest.file_notifications import FileWatch
from gatewayd.ingest.interfaces import BlobStore, FileStore, JobStore, PassageStore, VectorIndex
from gatewayd.ingest.records import File, ScopeKind, SearchScope
from gatewayd.transactions import Transactor, after_commit

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestStores:
    """The stores of documents."""

    transactor: Transactor
    files: FileStore
    jobs: JobStore
    passages: PassageStore
    blobs: BlobStore


class IndexUpdates:
    """Updates of the vector index, the blobs and the waiters after a change of files is committed."""

    def __init__(self, index: VectorIndex, blobs: BlobStore, watch: FileWatch) -> None:
        self._index = index
        self._blobs = blobs
        self.watch = watch

    async def changed(self, file_id: str, collections: Iterable[str]) -> None:
        """Refresh the index of a file whose passages were added or changed, and of its collections."""
        await notify_index(self._index.refresh(SearchScope(ScopeKind.FILE, file_id), file_id))
        await self.moved(file_id, collections)

    async def moved(self, file_id: str, collections: Iterable[str]) -> None:
        """Refresh the index of collections to which a file was added or from which it was removed."""
        for collection_id in collections:
            await notify_index(self._index.refresh(SearchScope(ScopeKind.COLLECTION, collection_id), file_id))

    async def removed(self, file: File, collections: Iterable[str]) -> None:
        """Delete the bytes of a removed file and its vectors in the index."""
        await self._blobs.remove([file.blob_key])
        await notify_index(self._index.forget(SearchScope(ScopeKind.FILE, file.id)))
        await self.moved(file.id, collections)

    def notify_after_commit(self, file_id: str) -> None:
        """Wake the waiters of a file once the current transaction has committed."""
        after_commit(lambda: self.watch.notify(file_id))


class FileRemoval:
    """Removes files with their rows, bytes and index entries."""

    def __init__(self, stores: IngestStores, updates: IndexUpdates) -> None:
        self._stores = stores
        self._updates = updates

    async def remove(self, file_id: str, *, unused: bool = False) -> bool:
        """Remove a file; False when it does not exist, or with `unused` when a collection contains it.

        Not inside a transaction: a rollback cannot restore the bytes.
        """
        async with self._stores.transactor.transaction():
            file = await self._stores.files.find(file_id)
            collections = await self._stores.files.collections_of(file_id)
            if unused and collections:
                return False
            if file is None or not await self._stores.files.remove(file_id):
                return False
            self._updates.notify_after_commit(file_id)
        await self._updates.removed(file, collections)
        return True


async def notify_index(change: Awaitable[None]) -> None:
    """Apply a change to the vector index; a failure is only logged, because a check repairs the cache."""
    try:
        await change
    except GatewayError as error:
        log.warning("cannot update the vector index before its next check: %s", error.full_message)
