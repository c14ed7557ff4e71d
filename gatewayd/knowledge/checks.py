"""Consistency checks of a collection's indexes against its passages."""

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
    """Counts of a collection's completed `files` and their passages, and a sentence for each problem.

    `vectors` counts the vectors of the active space.
    """

    collection: Collection
    files: int
    passages: int
    vectors: int
    problems: Sequence[str]


@dataclass(frozen=True, slots=True)
class IndexChecks:
    """Checks the indexes of collections, and repairs what can be rebuilt from the database."""

    collections: CollectionService
    passages: PassageStore
    words: LexicalIndex
    index: VectorIndex
    spaces: QuerySpaces

    async def check(self, actor: Actor, ref: str) -> IndexCheckReport:
        """Check, repair and count; `ref` as in `CollectionService.resolve`. Needs write access."""
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
        problems += [problem] if problem else _missing_vectors(space, passages - vectors)
        files = await self.collections.count_files(collection)
        return IndexCheckReport(collection, files, passages, vectors, problems)

    async def _space(self) -> tuple[EmbeddingSpace | None, str]:
        """Return the active space, or None and the reason why vectors were not checked."""
        try:
            found = await self.spaces.query()
        except GatewayError as error:
            return None, f"cannot check the vectors: {error.message}"
        return (None, "") if found is None else (found[0], "")


def _missing_vectors(space: EmbeddingSpace | None, count: int) -> list[str]:
    """Return the problem of passages without vectors; none without a model."""
    if space is None or count <= 0:
        return []
    return [f"not repaired: {count} passages have no vector in {space.name}: a reindex makes them"]
