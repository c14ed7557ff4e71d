"""The collection of garbage over the services."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

from gatewayd.assembly.services import GatewayServices
from gatewayd.batches.interfaces import BatchFileStore
from gatewayd.http.control.garbage import ControlGarbageRoutes
from gatewayd.http.routes import Route
from gatewayd.ingest.garbage import BlobHolder, GarbageCollector
from gatewayd.ingest.interfaces import FileStore
from gatewayd.ingest.records import file_id_of
from gatewayd.privacy.age_limits import AUDIT, AgedKind
from gatewayd.storage.batches import TortoiseBatchFiles
from gatewayd.storage.nodes.nodes import TortoiseNodes


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
    audit = AgedKind(services.audit.keeper.count_old, services.audit.keeper.prune)
    aged = {**services.age_limits.kinds(), AUDIT: audit}
    return GarbageCollector(
        holders,
        services.documents.spaces,
        expired,
        accounts.commits,
        aged=aged,
        duties=services.cluster.duties,
    )


class UnfinishedStore(Protocol):
    """Chats that are being stored."""

    async def list_unfinished(self) -> Sequence[str]:
        """Return the ids of the incomplete chats."""
        ...

    async def purge(self, chat_ids: Sequence[str]) -> None:
        """Delete chats."""
        ...


class UnfinishedChats:
    """Removes chats that a node did not finish to store: those that were unfinished the last time, too."""

    def __init__(self, chats: UnfinishedStore) -> None:
        self._chats = chats
        self._seen: frozenset[str] = frozenset()

    async def prune(self) -> int:
        """Remove them, and return their number."""
        found = frozenset(await self._chats.list_unfinished())
        old = sorted(found & self._seen)
        await self._chats.purge(old)
        self._seen = found - frozenset(old)
        return len(old)


def prunings(services: GatewayServices) -> Sequence[Callable[[], Awaitable[object]]]:
    """Return what removes expired rows, which one process of a cluster does every hour."""
    accounts, answering = services.accounts, services.answering
    log = services.change_log.log
    return [
        accounts.sessions.prune,
        accounts.links.tokens.prune,
        accounts.external.prune,
        answering.response_ids.prune,
        answering.responses.prune,
        services.batches.batches.prune,
        services.resumption.replies.prune,
        services.audit.keeper.prune,
        *[rows.prune for rows in services.age_limits.kinds().values()],
        *([] if log is None else [log.prune]),
        *([] if services.cluster.member is None else prunings_of_nodes(services)),
    ]


def prunings_of_nodes(services: GatewayServices) -> Sequence[Callable[[], Awaitable[object]]]:
    """Return what removes rows that only a cluster has, or that a daemon alone removes at its start."""
    return [UnfinishedChats(services.live.stores.chats).prune, TortoiseNodes().prune]


def control_garbage_rows(services: GatewayServices) -> Sequence[Route]:
    """Return the row of the collection of garbage of the control socket."""
    return ControlGarbageRoutes(make_garbage(services)).routes()


async def _names_file(files: FileStore, key: str) -> bool:
    file = await files.find(file_id_of(key))
    return file is not None and file.blob_key == key


async def _names_batch_file(files: BatchFileStore, key: str) -> bool:
    return await files.find(key) is not None
