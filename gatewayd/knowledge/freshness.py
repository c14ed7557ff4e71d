"""Tells the vector index what became of collections; called once the change is committed."""

import logging
from collections.abc import Awaitable, Sequence

from gatewayd.errors import GatewayError
from gatewayd.ingest.interfaces import VectorIndex
from gatewayd.ingest.records import Scope, ScopeKind
from gatewayd.tasks import Tasks

log = logging.getLogger(__name__)


class Freshness:
    """Waits for the index, and goes on telling it when the caller is cancelled meanwhile.

    A failure is logged: the index is a cache, and its check mends it.
    """

    def __init__(self, index: VectorIndex, tasks: Tasks) -> None:
        self._index = index
        self._tasks = tasks

    async def changed(self, collection_id: str, file_ids: Sequence[str]) -> None:
        """Tell that files came into a collection or went out of it."""
        if file_ids:
            work = self._refresh(Scope(ScopeKind.COLLECTION, collection_id), file_ids)
            await self._tasks.finish("refresh of the vector index", work)

    async def gone(self, collection_id: str) -> None:
        """Tell that a collection is gone or empty."""
        scope = Scope(ScopeKind.COLLECTION, collection_id)
        await self._tasks.finish("refresh of the vector index", self._learn(self._index.forget(scope)))

    async def _refresh(self, scope: Scope, file_ids: Sequence[str]) -> None:
        for file_id in file_ids:
            await self._learn(self._index.refresh(scope, file_id))

    async def _learn(self, change: Awaitable[None]) -> None:
        try:
            await change
        except GatewayError as error:
            log.warning("the vector index missed a change until its next check: %s", error.message)
