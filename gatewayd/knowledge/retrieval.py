"""Finds the passages that answer a question, by meaning and by words."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from gatewayd.errors import GatewayError
from gatewayd.ingest.interfaces import Embedder, FileStore, LexicalIndex, VectorIndex
from gatewayd.ingest.records import Hit, Purpose, Scope, Space
from gatewayd.knowledge.fusion import WORD_WEIGHT, Fusion, fuse, merge, ordered, similarity
from gatewayd.knowledge.interfaces import CollectionStore, PassageReader, Reranker
from gatewayd.knowledge.passage_selection import Picked, Picker
from gatewayd.knowledge.records import Passage

LEAST_CANDIDATES: Final = 50
MAX_K: Final = 1000
SCOPES_AT_ONCE: Final = 8
RERANKED: Final = 4

Answer = TypeVar("Answer")


class QuerySpaces(Protocol):
    """Knows the embedding space that is searched."""

    async def query(self) -> tuple[Space, Embedder] | None:
        """Return the space and the model of its questions, None when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search. `k` passages at most; `threshold` (0 to 1) is the least similarity, 0 for any.

    With `hybrid` words count by `weight` (0 to 1), meaning the rest; without it meaning alone counts. A
    reranker looks at `k_reranker` times 4 passages.
    """

    k: int = 5
    threshold: float = 0.0
    hybrid: bool = True
    weight: float = WORD_WEIGHT
    fusion: Fusion = Fusion.MINMAX
    k_reranker: int = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it is searched: its words, and its vector in a space unless `problem` says why not."""

    text: str
    space: Space | None = None
    vector: bytes = b""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The passages, best first, sentences about what could not be done, and the space that was searched."""

    passages: Sequence[Passage]
    warnings: Sequence[str] = ()
    space: Space | None = None


@dataclass(frozen=True, slots=True)
class Library:
    """What a search reads."""

    index: VectorIndex
    words: LexicalIndex
    passages: PassageReader
    files: FileStore
    collections: CollectionStore


@dataclass(frozen=True, slots=True)
class _Hits:
    """What each kind of search found, and where; `problem` says why vectors were not searched."""

    dense: Sequence[Hit]
    lexical: Sequence[Hit]
    within: Mapping[int, Scope]
    problem: str


class Retrieval:
    """Searches scopes. Whoever calls has checked that the actor may read them."""

    def __init__(self, library: Library, spaces: QuerySpaces, reranker: Reranker | None = None) -> None:
        self._library = library
        self._spaces = spaces
        self._reranker = reranker
        self._picker = Picker(library.passages, library.files, library.collections)

    async def question(self, text: str, options: SearchOptions) -> Question:
        """Return a question with its vector, to be searched several times."""
        if options.hybrid and options.weight >= 1 and options.threshold <= 0:
            return Question(text)
        try:
            found = await self._spaces.query()
            if found is None:
                return Question(text, problem="no embedding model is set up")
            space, embedder = found
            vector = await embedder.embed([text], Purpose.QUERY)
        except GatewayError as error:
            return Question(text, problem=error.message)
        return Question(text, space, vector)

    async def search(self, scopes: Sequence[Scope], query: str | Question, options: SearchOptions) -> Found:
        """Return the passages of the scopes that answer a question best.

        When vectors cannot be searched, words decide alone, the threshold does not apply, and a warning says
        why.
        """
        scopes = list(dict.fromkeys(scopes))
        if not scopes:
            return Found([])
        if not (query.text if isinstance(query, Question) else query).strip():
            return Found([], ["cannot search: the question is empty"])
        options = replace(options, k=min(max(options.k, 1), MAX_K))
        question, hits = await self._hits(scopes, query, options)
        cosines = await self._cosines(hits, question)
        scores = _scores(hits, cosines, options)
        is_reranked = self._reranker is not None and options.hybrid
        wanted = max(options.k, options.k_reranker * RERANKED) if is_reranked else options.k
        picked = await self._picker.pick(scopes, [passage_id for passage_id, _ in scores], wanted)
        passages = _passages(picked, hits, dict(scores), cosines)
        warnings = _warnings(hits.problem, options)
        if self._reranker is not None and options.hybrid and passages:
            passages, problem = await _rerank(self._reranker, question.text, passages)
            warnings += problem
        return Found(passages[: options.k], warnings, None if hits.problem else question.space)

    async def _hits(
        self, scopes: Sequence[Scope], query: str | Question, options: SearchOptions
    ) -> tuple[Question, _Hits]:
        """Search for words while the question gets its vector and vectors are searched."""
        limit = max(LEAST_CANDIDATES, 4 * options.k)
        text = query.text if isinstance(query, Question) else query
        by_words = _Lexical(self._library.words, text, limit)
        lexical: Sequence[Sequence[Hit]] = ()
        if options.hybrid and options.weight > 0:
            nearest, lexical = await asyncio.gather(
                self._nearest(scopes, query, options, limit), _each(scopes, by_words)
            )
        else:
            nearest = await self._nearest(scopes, query, options, limit)
            if nearest.problem:
                lexical = await _each(scopes, by_words)
        within: dict[int, Scope] = {}
        for lists in (nearest.hits, lexical):
            for scope, hits in zip(scopes, lists, strict=False):
                within.update((hit.passage_id, scope) for hit in hits)
        return nearest.question, _Hits(merge(nearest.hits), merge(lexical), within, nearest.problem)

    async def _nearest(
        self, scopes: Sequence[Scope], query: str | Question, options: SearchOptions, limit: int
    ) -> "_Nearest":
        question = query if isinstance(query, Question) else await self.question(query, options)
        if question.space is None or (options.hybrid and options.weight >= 1):
            return _Nearest(question, (), question.problem)
        try:
            found = await _each(scopes, _Dense(self._library.index, question, limit))
        except GatewayError as error:
            return _Nearest(question, (), error.message)
        return _Nearest(question, found, question.problem)

    async def _cosines(self, hits: _Hits, question: Question) -> Mapping[int, float]:
        """Return the cosine of every passage that was found and has a vector."""
        cosines = {hit.passage_id: hit.score for hit in hits.dense}
        if question.space is None or hits.problem:
            return cosines
        unknown: dict[Scope, list[int]] = {}
        for hit in hits.lexical:
            if hit.passage_id not in cosines:
                unknown.setdefault(hits.within[hit.passage_id], []).append(hit.passage_id)
        for found in await _each(list(unknown), _Cosines(self._library.index, question, unknown)):
            cosines.update(found)
        return cosines


@dataclass(frozen=True, slots=True)
class _Nearest:
    """What vectors found in each scope; `problem` says why they were not searched."""

    question: Question
    hits: Sequence[Sequence[Hit]]
    problem: str


@dataclass(frozen=True, slots=True)
class _Dense:
    index: VectorIndex
    question: Question
    limit: int

    async def __call__(self, scope: Scope) -> Sequence[Hit]:
        space = self.question.space
        return await self.index.search(space, scope, self.question.vector, self.limit) if space else ()


@dataclass(frozen=True, slots=True)
class _Lexical:
    words: LexicalIndex
    text: str
    limit: int

    async def __call__(self, scope: Scope) -> Sequence[Hit]:
        return await self.words.search(scope, self.text, self.limit)


@dataclass(frozen=True, slots=True)
class _Cosines:
    index: VectorIndex
    question: Question
    wanted: Mapping[Scope, Sequence[int]]

    async def __call__(self, scope: Scope) -> Mapping[int, float]:
        space, vector = self.question.space, self.question.vector
        return await self.index.similarities(space, scope, vector, self.wanted[scope]) if space else {}


async def _each(scopes: Sequence[Scope], ask: Callable[[Scope], Awaitable[Answer]]) -> Sequence[Answer]:
    """Ask about every scope, a few at a time, and return the answers in order."""
    answers: list[Answer] = []
    for start in range(0, len(scopes), SCOPES_AT_ONCE):
        answers += await asyncio.gather(*map(ask, scopes[start : start + SCOPES_AT_ONCE]))
    return answers


def _scores(hits: _Hits, cosines: Mapping[int, float], options: SearchOptions) -> Sequence[tuple[int, float]]:
    """Return the passages that are similar enough with their scores, best first."""
    if options.hybrid or hits.problem:
        scores = fuse(hits.dense, hits.lexical, options.weight, options.fusion)
    else:
        scores = {hit.passage_id: similarity(hit.score) for hit in hits.dense}
    if options.threshold > 0 and not hits.problem:
        near = {key for key, cosine in cosines.items() if similarity(cosine) >= options.threshold}
        scores = {key: score for key, score in scores.items() if key in near}
    return ordered(scores)


def _passages(
    picked: Sequence[Picked], hits: _Hits, scores: Mapping[int, float], cosines: Mapping[int, float]
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
                similarity=None if cosine is None else similarity(cosine),
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
    """Return the passages in the reranker's order, or as they were with a sentence that says why."""
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
