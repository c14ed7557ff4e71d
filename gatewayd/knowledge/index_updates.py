"""Vector index updates after committed changes of collections."""

from collections.abc import Sequence

from gatewayd.ingest.interfaces import VectorIndex
from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.ingest.updates import notify_index
from gatewayd.tasks import TaskRegistry


class IndexNotifier:
    """Updates the index and waits for it; a cancelled caller does not interrupt the update."""

    def __init__(self, index: VectorIndex, tasks: TaskRegistry) -> None:
        self._index = index
        self._tasks = tasks

    async def changed(self, collection_id: str, file_ids: Sequence[str]) -> None:
        """Refresh the index of a collection for files that were added or removed."""
        if file_ids:
            work = self._refresh(SearchScope(ScopeKind.COLLECTION, collection_id), file_ids)
            await self._tasks.finish("refresh of the vector index", work)

    async def gone(self, collection_id: str) -> None:
        """Drop the index of a collection that was removed or emptied."""
        scope = SearchScope(ScopeKind.COLLECTION, collection_id)
        await self._tasks.finish("refresh of the vector index", notify_index(self._index.forget(scope)))

    async def _refresh(self, scope: SearchScope, file_ids: Sequence[str]) -> None:
        for file_id in file_ids:
            await notify_index(self._index.refresh(scope, file_id))
