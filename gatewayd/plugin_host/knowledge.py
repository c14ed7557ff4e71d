"""Implementation of `HostKnowledge`: collections and retrieval for plugins."""

from collections.abc import Sequence
from dataclasses import replace

from gatewayd.knowledge.citations import render_passage
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.retrieval import RetrievalService, SearchOptions
from gatewayd.knowledge.scopes import ScopeResolver
from gatewayd.knowledge.serializers import render_collection
from gatewayd.metering.service_calls import paid_by
from gatewayd.plugin_host.actors import PluginActors, none_if_not_found
from gatewayd.plugins.interfaces import Record


class KnowledgeForPlugins:
    """A `plugins.interfaces.HostKnowledge` over the services of collections."""

    def __init__(
        self,
        collections: CollectionService,
        scopes: ScopeResolver,
        retrieval: RetrievalService,
        options: SearchOptions,
        actors: PluginActors,
    ) -> None:
        self._collections = collections
        self._scopes = scopes
        self._retrieval = retrieval
        self._options = options
        self._actors = actors

    async def find(self, collection_id: str) -> Record | None:
        """Return a collection without a check of its access list; None when absent."""
        found = await none_if_not_found(self._collections.get(self._actors.unrestricted(), collection_id))
        return None if found is None else render_collection(found)

    async def list(self, user_id: str) -> Sequence[Record]:
        """Return the collections that a user may read, most recently changed first."""
        actor = await self._actors.find_reader(user_id)
        if actor is None:
            return []
        found, _ = await self._collections.list(actor)
        return [render_collection(collection) for collection in found]

    async def search(self, user_id: str, names: Sequence[str], query: str, k: int | None) -> Sequence[Record]:
        """Return the passages of collections or files (`file-<id>`) for a query, best first.

        Each is `{"text", "score", "metadata"}`. Raises not_found for a name that the user may not read.
        """
        actor = await self._actors.reader(user_id)
        scopes = [await self._scopes.named(actor, name) for name in dict.fromkeys(names)]
        options = self._options if k is None else replace(self._options, k=k)
        with paid_by(actor):
            found = await self._retrieval.search(scopes, query, options)
        return [
            {
                "text": passage.stored.text,
                "score": passage.score,
                "metadata": render_passage(passage, found.space),
            }
            for passage in found.passages
        ]
