"""The collection of garbage over documents in memory."""

from gatewayd.ingest.garbage import BlobHolder, GarbageCollector
from gatewayd.transactions import Transactor
from tests.fakes.documents.site import DocumentServices


def make_garbage(documents: DocumentServices, transactor: Transactor) -> GarbageCollector:
    """Return the collector over the blobs and spaces of documents; no row ever expires."""

    async def exists(file_id: str) -> bool:
        return await documents.stores.files.find(file_id) is not None

    async def nothing() -> int:
        return 0

    store = documents.stores
    holder = BlobHolder(store.blobs, store.files.ids, exists)
    return GarbageCollector([holder], documents.spaces, {"expired sessions": nothing}, transactor)
