"""The collection of garbage over the services."""

from collections.abc import Sequence
from functools import partial

from gatewayd.assembly.services import GatewayServices
from gatewayd.batches.interfaces import BatchFileStore
from gatewayd.http.control.garbage import ControlGarbageRoutes
from gatewayd.http.routes import Route
from gatewayd.ingest.garbage import BlobHolder, GarbageCollector
from gatewayd.ingest.interfaces import FileStore
from gatewayd.ingest.records import file_id_of
from gatewayd.storage.batches import TortoiseBatchFiles


def make_garbage(services: GatewayServices) -> GarbageCollector:
    """Return the collector of what nothing needs."""
    accounts, stores = services.accounts, services.documents.stores
    expired = {
        "expired sessions": accounts.sessions.prune,
        "expired links": accounts.links.tokens.prune,
        "used values of sign-ins": accounts.external.prune,
        "old ids of responses": services.answering.response_ids.prune,
        "expired responses": services.answering.responses.prune,
        "old replies of repeated requests": services.resumption.replies.prune,
    }
    batch_files = TortoiseBatchFiles()
    holders = [
        BlobHolder(stores.blobs, stores.files.blob_keys, partial(_names_file, stores.files)),
        BlobHolder(
            services.documents.file_stores.batches,
            batch_files.ids,
            partial(_names_batch_file, batch_files),
        ),
    ]
    return GarbageCollector(holders, services.documents.spaces, expired, accounts.commits)


def control_garbage_rows(services: GatewayServices) -> Sequence[Route]:
    """Return the row of the collection of garbage of the control socket."""
    return ControlGarbageRoutes(make_garbage(services)).routes()


async def _names_file(files: FileStore, key: str) -> bool:
    file = await files.find(file_id_of(key))
    return file is not None and file.blob_key == key


async def _names_batch_file(files: BatchFileStore, key: str) -> bool:
    return await files.find(key) is not None
