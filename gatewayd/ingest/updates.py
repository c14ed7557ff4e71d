"""Tells the vector index what was committed, and removes files everywhere."""

import logging
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass

from gatewayd.errors import GatewayError
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.file_notifications import FileWatch
from gatewayd.ingest.interfaces import BlobStore, FileStore, JobStore, PassageStore, VectorIndex
from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.transactions import Transactor, after_commit

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestStores:
    """Where documents are kept."""

    transactor: Transactor
    files: FileStore
    jobs: JobStore
    passages: PassageStore
    blobs: LocalBlobs


class IndexUpdates:
    """What has to happen after a change of files is committed."""

    def __init__(self, index: VectorIndex, blobs: BlobStore, watch: FileWatch) -> None:
        self._index = index
        self._blobs = blobs
        self.watch = watch

    async def changed(self, file_id: str, collections: Iterable[str]) -> None:
        """A file's passages came or changed."""
        await notify_index(self._index.refresh(SearchScope(ScopeKind.FILE, file_id), file_id))
        await self.moved(file_id, collections)

    async def moved(self, file_id: str, collections: Iterable[str]) -> None:
        """A file came into collections or went from them."""
        for collection_id in collections:
            await notify_index(self._index.refresh(SearchScope(ScopeKind.COLLECTION, collection_id), file_id))

    async def removed(self, file_id: str, collections: Iterable[str]) -> None:
        """A file is gone."""
        await self._blobs.remove([file_id])
        await notify_index(self._index.forget(SearchScope(ScopeKind.FILE, file_id)))
        await self.moved(file_id, collections)

    def notify_after_commit(self, file_id: str) -> None:
        """Wake those who wait for a file, once the present block has committed."""
        after_commit(lambda: self.watch.notify(file_id))


class FileRemoval:
    """Removes files with everything that belongs to them."""

    def __init__(self, stores: IngestStores, updates: IndexUpdates) -> None:
        self._stores = stores
        self._updates = updates

    async def remove(self, file_id: str, *, unused: bool = False) -> bool:
        """Remove a file; False when it is gone already, or with `unused` when a collection holds it.

        Not inside a transaction: bytes do not come back.
        """
        async with self._stores.transactor.transaction():
            collections = await self._stores.files.collections_of(file_id)
            if unused and collections:
                return False
            if not await self._stores.files.remove(file_id):
                return False
            self._updates.notify_after_commit(file_id)
        await self._updates.removed(file_id, collections)
        return True


async def notify_index(change: Awaitable[None]) -> None:
    """Let the vector index learn of a change. A failure is logged: it is a cache, and its check mends it."""
    try:
        await change
    except GatewayError as error:
        log.warning("the vector index missed a change until its next check: %s", error.full_message)
