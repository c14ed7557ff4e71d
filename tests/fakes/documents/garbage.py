"""The collection of garbage over documents in memory."""

from gatewayd.ingest.garbage import BlobHolder, GarbageCollector
from gatewayd.ingest.records import file_id_of
from gatewayd.transactions import Transactor
from tests.fakes.documents.site import DocumentServices


def make_garbage(documents: DocumentServices, transactor: Transactor) -> GarbageCollector:
    """Return the collector over the blobs and spaces of documents; no row ever expires."""

    async def is_named(key: str) -> bool:
        file = await documents.stores.files.find(file_id_of(key))
        return file is not None and file.blob_key == key

    async def nothing() -> int:
        return 0

    store = documents.stores
    holder = BlobHolder(store.blobs, store.files.blob_keys, is_named)
    return GarbageCollector([holder], documents.spaces, {"expired sessions": nothing}, transactor)
