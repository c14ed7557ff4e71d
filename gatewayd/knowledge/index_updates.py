"""Tells the vector index what became of collections; called once the change is committed."""

from collections.abc import Sequence

from gatewayd.ingest.interfaces import VectorIndex
from gatewayd.ingest.records import Scope, ScopeKind
from gatewayd.ingest.updates import learn
from gatewayd.tasks import Tasks


class Freshness:
    """Waits for the index, and goes on telling it when the caller is cancelled meanwhile."""

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
        await self._tasks.finish("refresh of the vector index", learn(self._index.forget(scope)))

    async def _refresh(self, scope: Scope, file_ids: Sequence[str]) -> None:
        for file_id in file_ids:
            await learn(self._index.refresh(scope, file_id))
