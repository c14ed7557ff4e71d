"""Compares the indexes of a collection with its passages."""

from collections.abc import Sequence
from dataclasses import dataclass

from gatewayd.accounts.records import Actor
from gatewayd.errors import GatewayError
from gatewayd.ingest.interfaces import LexicalIndex, PassageStore, VectorIndex
from gatewayd.ingest.records import EmbeddingSpace, ScopeKind, SearchScope
from gatewayd.knowledge.collections import CollectionService
from gatewayd.knowledge.records import Collection
from gatewayd.knowledge.retrieval import QuerySpaces


@dataclass(frozen=True, slots=True)
class IndexCheckReport:
    """What a collection has, completed `files` alone, and a sentence for each thing that did not fit.

    `vectors` counts those of the space that is searched.
    """

    collection: Collection
    files: int
    passages: int
    vectors: int
    problems: Sequence[str]


@dataclass(frozen=True, slots=True)
class IndexChecks:
    """Looks into the indexes of collections, and mends what can be made anew from the database."""

    collections: CollectionService
    passages: PassageStore
    words: LexicalIndex
    index: VectorIndex
    spaces: QuerySpaces

    async def check(self, actor: Actor, ref: str) -> IndexCheckReport:
        """Compare, mend and count; `ref` as in `CollectionService.resolve`, and the actor may change it."""
        collection = await self.collections.resolve(actor, ref)
        collection = await self.collections.get_writable(actor, collection.id)
        scope = SearchScope(ScopeKind.COLLECTION, collection.id)
        problems = list(await self.words.check(scope))
        space, problem = await self._space()
        vectors = 0
        if space is not None:
            problems += await self.index.check(space, scope)
            vectors = await self.passages.count_vectors(space.name, scope)
        passages = await self.passages.count(scope)
        problems += [problem] if problem else _lacking(space, passages - vectors)
        files = await self.collections.count_files(collection)
        return IndexCheckReport(collection, files, passages, vectors, problems)

    async def _space(self) -> tuple[EmbeddingSpace | None, str]:
        """Return the space that is searched, or None and why vectors were not looked at."""
        try:
            found = await self.spaces.query()
        except GatewayError as error:
            return None, f"cannot check the vectors: {error.message}"
        return (None, "") if found is None else (found[0], "")


def _lacking(space: EmbeddingSpace | None, count: int) -> list[str]:
    """Return what is to be done about passages without vectors; without a model there is nothing to do."""
    if space is None or count <= 0:
        return []
    return [f"not mended: {count} passages have no vector in {space.name}: a reindex makes them"]
