"""Retrieval: hybrid search for the passages that answer a question, by vectors and by words."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from gatewayd.errors import GatewayError
from gatewayd.ingest.interfaces import Embedder, FileStore, LexicalIndex, VectorIndex
from gatewayd.ingest.records import EmbeddingPurpose, EmbeddingSpace, SearchHit, SearchScope
from gatewayd.knowledge.fusion import (
    WORD_WEIGHT,
    FusionMethod,
    cosine_to_similarity,
    fuse_scores,
    merge_hits,
    sort_by_score,
)
from gatewayd.knowledge.interfaces import CollectionStore, PassageReader, Reranker
from gatewayd.knowledge.passage_selection import PassageSelector, SelectedPassage
from gatewayd.knowledge.records import Passage

MIN_CANDIDATES: Final = 50
MAX_K: Final = 1000
MAX_CONCURRENT_SCOPES: Final = 8
RERANK_FACTOR: Final = 4

Result = TypeVar("Result")


class QuerySpaces(Protocol):
    """Provides the active embedding space."""

    async def query(self) -> tuple[EmbeddingSpace, Embedder] | None:
        """Return the active space and its model for queries, None without one."""
        ...


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Search options. `k` is the maximum number of passages; `threshold` (0 to 1) the minimum similarity.

    With `hybrid` the lexical score has the `weight` (0 to 1) and the dense score the rest; without it only
    the dense score counts. A reranker scores 4 * `k_reranker` passages.
    """

    k: int = 5
    threshold: float = 0.0
    hybrid: bool = True
    weight: float = WORD_WEIGHT
    fusion: FusionMethod = FusionMethod.MINMAX
    k_reranker: int = 5


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A prepared question: its text, and its vector in a space; `problem` is the reason for no vector."""

    text: str
    space: EmbeddingSpace | None = None
    vector: bytes = b""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The passages, best first, warnings about steps that failed, and the searched space."""

    passages: Sequence[Passage]
    warnings: Sequence[str] = ()
    space: EmbeddingSpace | None = None


@dataclass(frozen=True, slots=True)
class SearchBackends:
    """The indexes and stores that a search reads."""

    index: VectorIndex
    words: LexicalIndex
    passages: PassageReader
    files: FileStore
    collections: CollectionStore


@dataclass(frozen=True, slots=True)
class _Hits:
    """Hits of each kind of search, and the scope of each hit; `problem` is the reason for no vector
    search."""

    dense: Sequence[SearchHit]
    lexical: Sequence[SearchHit]
    within: Mapping[int, SearchScope]
    problem: str


class RetrievalService:
    """Searches scopes. The caller must check that the actor may read them."""

    def __init__(
        self, backends: SearchBackends, spaces: QuerySpaces, reranker: Reranker | None = None
    ) -> None:
        self._backends = backends
        self._spaces = spaces
        self._reranker = reranker
        self._selector = PassageSelector(backends.passages, backends.files, backends.collections)

    async def question(self, text: str, options: SearchOptions) -> SearchQuery:
        """Return a question with its vector, for use in several searches."""
        if options.hybrid and options.weight >= 1 and options.threshold <= 0:
            return SearchQuery(text)
        try:
            found = await self._spaces.query()
            if found is None:
                return SearchQuery(text, problem="no embedding model is set up")
            space, embedder = found
            vector = await embedder.embed([text], EmbeddingPurpose.QUERY)
        except GatewayError as error:
            return SearchQuery(text, problem=error.message)
        return SearchQuery(text, space, vector)

    async def search(
        self, scopes: Sequence[SearchScope], query: str | SearchQuery, options: SearchOptions
    ) -> RetrievalResult:
        """Return the passages of the scopes that answer a question best.

        When the vector search fails, the result is that of the lexical search without the threshold, and a
        warning names the reason.
        """
        scopes = list(dict.fromkeys(scopes))
        if not scopes:
            return RetrievalResult([])
        if not (query.text if isinstance(query, SearchQuery) else query).strip():
            return RetrievalResult([], ["cannot search: the question is empty"])
        options = replace(options, k=min(max(options.k, 1), MAX_K))
        question, hits = await self._hits(scopes, query, options)
        cosines = await self._cosines(hits, question)
        scores = _scores(hits, cosines, options)
        is_reranked = self._reranker is not None and options.hybrid
        wanted = max(options.k, options.k_reranker * RERANK_FACTOR) if is_reranked else options.k
        picked = await self._selector.pick(scopes, [passage_id for passage_id, _ in scores], wanted)
        passages = _passages(picked, hits, dict(scores), cosines)
        warnings = _warnings(hits.problem, options)
        if self._reranker is not None and options.hybrid and passages:
            passages, problem = await _rerank(self._reranker, question.text, passages)
            warnings += problem
        return RetrievalResult(passages[: options.k], warnings, None if hits.problem else question.space)

    async def _hits(
        self, scopes: Sequence[SearchScope], query: str | SearchQuery, options: SearchOptions
    ) -> tuple[SearchQuery, _Hits]:
        """Run the lexical search concurrently with the embedding of the question and the vector search."""
        limit = max(MIN_CANDIDATES, 4 * options.k)
        text = query.text if isinstance(query, SearchQuery) else query
        by_words = _Lexical(self._backends.words, text, limit)
        lexical: Sequence[Sequence[SearchHit]] = ()
        if options.hybrid and options.weight > 0:
            nearest, lexical = await asyncio.gather(
                self._nearest(scopes, query, options, limit), _each(scopes, by_words)
            )
        else:
            nearest = await self._nearest(scopes, query, options, limit)
            if nearest.problem:
                lexical = await _each(scopes, by_words)
        within: dict[int, SearchScope] = {}
        for lists in (nearest.hits, lexical):
            for scope, hits in zip(scopes, lists, strict=False):
                within.update((hit.passage_id, scope) for hit in hits)
        return nearest.question, _Hits(merge_hits(nearest.hits), merge_hits(lexical), within, nearest.problem)

    async def _nearest(
        self, scopes: Sequence[SearchScope], query: str | SearchQuery, options: SearchOptions, limit: int
    ) -> "_Nearest":
        question = query if isinstance(query, SearchQuery) else await self.question(query, options)
        if question.space is None or (options.hybrid and options.weight >= 1):
            return _Nearest(question, (), question.problem)
        try:
            found = await _each(scopes, _Dense(self._backends.index, question, limit))
        except GatewayError as error:
            return _Nearest(question, (), error.message)
        return _Nearest(question, found, question.problem)

    async def _cosines(self, hits: _Hits, question: SearchQuery) -> Mapping[int, float]:
        """Return the cosine of every hit that has a vector, by passage id."""
        cosines = {hit.passage_id: hit.score for hit in hits.dense}
        if question.space is None or hits.problem:
            return cosines
        unknown: dict[SearchScope, list[int]] = {}
        for hit in hits.lexical:
            if hit.passage_id not in cosines:
                unknown.setdefault(hits.within[hit.passage_id], []).append(hit.passage_id)
        for found in await _each(list(unknown), _Cosines(self._backends.index, question, unknown)):
            cosines.update(found)
        return cosines


@dataclass(frozen=True, slots=True)
class _Nearest:
    """Hits of the vector search for each scope; `problem` is the reason for no search."""

    question: SearchQuery
    hits: Sequence[Sequence[SearchHit]]
    problem: str


@dataclass(frozen=True, slots=True)
class _Dense:
    index: VectorIndex
    question: SearchQuery
    limit: int

    async def __call__(self, scope: SearchScope) -> Sequence[SearchHit]:
        space = self.question.space
        return await self.index.search(space, scope, self.question.vector, self.limit) if space else ()


@dataclass(frozen=True, slots=True)
class _Lexical:
    words: LexicalIndex
    text: str
    limit: int

    async def __call__(self, scope: SearchScope) -> Sequence[SearchHit]:
        return await self.words.search(scope, self.text, self.limit)


@dataclass(frozen=True, slots=True)
class _Cosines:
    index: VectorIndex
    question: SearchQuery
    wanted: Mapping[SearchScope, Sequence[int]]

    async def __call__(self, scope: SearchScope) -> Mapping[int, float]:
        space, vector = self.question.space, self.question.vector
        return await self.index.similarities(space, scope, vector, self.wanted[scope]) if space else {}


async def _each(
    scopes: Sequence[SearchScope], ask: Callable[[SearchScope], Awaitable[Result]]
) -> Sequence[Result]:
    """Call `ask` for every scope, a few at a time, and return the results in order."""
    results: list[Result] = []
    for start in range(0, len(scopes), MAX_CONCURRENT_SCOPES):
        results += await asyncio.gather(*map(ask, scopes[start : start + MAX_CONCURRENT_SCOPES]))
    return results


def _scores(hits: _Hits, cosines: Mapping[int, float], options: SearchOptions) -> Sequence[tuple[int, float]]:
    """Return the ids and scores of the hits above the threshold, best first."""
    if options.hybrid or hits.problem:
        scores = fuse_scores(hits.dense, hits.lexical, options.weight, options.fusion)
    else:
        scores = {hit.passage_id: cosine_to_similarity(hit.score) for hit in hits.dense}
    if options.threshold > 0 and not hits.problem:
        near = {key for key, cosine in cosines.items() if cosine_to_similarity(cosine) >= options.threshold}
        scores = {key: score for key, score in scores.items() if key in near}
    return sort_by_score(scores)


def _passages(
    picked: Sequence[SelectedPassage], hits: _Hits, scores: Mapping[int, float], cosines: Mapping[int, float]
) -> list[Passage]:
    dense = {hit.passage_id: rank for rank, hit in enumerate(hits.dense, 1)}
    lexical = {hit.passage_id: rank for rank, hit in enumerate(hits.lexical, 1)}
    words = {hit.passage_id: hit.score for hit in hits.lexical}
    found = []
    for each in picked:
        key = each.stored.id
        cosine = cosines.get(key)
        found.append(
            Passage(
                stored=each.stored,
                file_name=each.file.name,
                file_hash=each.file.text_hash or "",
                owner_id=each.file.user_id,
                score=scores[key],
                similarity=None if cosine is None else cosine_to_similarity(cosine),
                dense=cosine,
                lexical=words.get(key),
                dense_rank=dense.get(key),
                lexical_rank=lexical.get(key),
                path=each.path,
            )
        )
    return found


async def _rerank(
    reranker: Reranker, question: str, passages: list[Passage]
) -> tuple[list[Passage], list[str]]:
    """Return the passages in the reranker's order, or unchanged with a warning when it fails."""
    try:
        scores = await reranker.rerank(question, [each.stored.text for each in passages])
    except GatewayError as error:
        return passages, [f"cannot rerank the passages: {error.message}"]
    rated = [replace(each, score=score) for each, score in zip(passages, scores, strict=True)]
    return sorted(rated, key=lambda each: -each.score), []


def _warnings(problem: str, options: SearchOptions) -> list[str]:
    if not problem:
        return []
    sentence = f"cannot search by meaning, passages were found by their words alone: {problem}"
    if options.threshold > 0:
        sentence += "; the relevance threshold was not applied"
    return [sentence]
