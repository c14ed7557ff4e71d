"""The collection of garbage over the services."""

from collections.abc import Sequence
from functools import partial

from gatewayd.assembly.batches import FOLDER
from gatewayd.assembly.services import GatewayServices
from gatewayd.http.control.garbage import ControlGarbageRoutes
from gatewayd.http.routes import Route
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.garbage import BlobHolder, GarbageCollector, RowFinder
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
    holders = [
        _holder(stores.blobs, stores.files),
        _holder(LocalBlobs(services.settings.data_dir / FOLDER / "files"), TortoiseBatchFiles()),
    ]
    return GarbageCollector(holders, services.documents.spaces, expired, accounts.commits)


def control_garbage_rows(services: GatewayServices) -> Sequence[Route]:
    """Return the row of the collection of garbage of the control socket."""
    return ControlGarbageRoutes(make_garbage(services)).routes()


def _holder(blobs: LocalBlobs, rows: RowFinder) -> BlobHolder:
    return BlobHolder(blobs, rows.ids, partial(_exists, rows))


async def _exists(rows: RowFinder, file_id: str) -> bool:
    return await rows.find(file_id) is not None
