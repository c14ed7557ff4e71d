"""Tells the vector index what became of collections; called once the change is committed."""

from collections.abc import Sequence

from gatewayd.ingest.interfaces import VectorIndex
from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.ingest.updates import notify_index
from gatewayd.tasks import TaskRegistry


class IndexNotifier:
    """Waits for the index, and goes on telling it when the caller is cancelled meanwhile."""

    def __init__(self, index: VectorIndex, tasks: TaskRegistry) -> None:
        self._index = index
        self._tasks = tasks

    async def changed(self, collection_id: str, file_ids: Sequence[str]) -> None:
        """Tell that files came into a collection or went out of it."""
        if file_ids:
            work = self._refresh(SearchScope(ScopeKind.COLLECTION, collection_id), file_ids)
            await self._tasks.finish("refresh of the vector index", work)

    async def gone(self, collection_id: str) -> None:
        """Tell that a collection is gone or empty."""
        scope = SearchScope(ScopeKind.COLLECTION, collection_id)
        await self._tasks.finish("refresh of the vector index", notify_index(self._index.forget(scope)))

    async def _refresh(self, scope: SearchScope, file_ids: Sequence[str]) -> None:
        for file_id in file_ids:
            await notify_index(self._index.refresh(scope, file_id))
