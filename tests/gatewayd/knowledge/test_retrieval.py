"""Tests for gatewayd.knowledge.retrieval."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import EmbeddingPurpose, ScopeKind, SearchHit, SearchScope
from gatewayd.knowledge.fusion import FusionMethod
from gatewayd.knowledge.records import Passage
from gatewayd.knowledge.retrieval import RetrievalService, SearchBackends, SearchOptions
from tests.fakes.documents.collections import World, a_file, person, shelve
from tests.fakes.documents.memory_stores import MemoryFiles, MemoryPassages, MemoryWords

ANN = person("ann")
TEXTS = {
    "cron": "cron starts jobs at fixed times",
    "tar": "tar keeps many files in one archive",
    "ssh": "ssh opens a shell on another machine",
    "scp": "scp copies files to another machine",
}


@dataclass
class Docs:
    """A collection of four files, and how to search it."""

    world: World
    scope: SearchScope

    async def search(
        self, query: str, retrieval: RetrievalService | None = None, **options: object
    ) -> list[str]:
        found = await (retrieval or self.world.retrieval).search(
            [self.scope],
            query,
            SearchOptions(**options),  # type: ignore[arg-type]
        )
        return [each.stored.file_id for each in found.passages]


@pytest.fixture
async def docs(world: World) -> Docs:
    key = await world.collection(ANN)
    for name, text in TEXTS.items():
        await world.shelve(a_file(name), text, key)
    return Docs(world, SearchScope(ScopeKind.COLLECTION, key))


def with_reranker(world: World, reranker: object) -> RetrievalService:
    passages, store = MemoryPassages(world.library), world.store
    library = SearchBackends(
        world.index, MemoryWords(world.library), passages, MemoryFiles(world.library), store
    )
    return RetrievalService(library, world.space, reranker)  # type: ignore[arg-type]


async def test_the_best_come_first_with_everything_that_explains_them(docs: Docs) -> None:
    query = "copies of many files in one archive"
    found = await docs.world.retrieval.search([docs.scope], query, SearchOptions(k=2))
    assert [each.stored.file_id for each in found.passages] == ["tar", "scp"]
    assert found.warnings == []
    first: Passage = found.passages[0]
    assert (first.file_name, first.file_hash, first.owner_id) == ("tar.txt", "text of tar", "ann")
    assert (first.score, first.dense_rank, first.lexical_rank) == (1.0, 1, 1)
    assert first.dense is not None
    assert first.similarity == pytest.approx((first.dense + 1) / 2)
    assert first.lexical is not None
    assert first.lexical > (found.passages[1].lexical or 0)
    assert found.space is not None
    assert found.space.name == "test:hash:1"


@pytest.mark.parametrize("fusion", list(FusionMethod))
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
async def test_each_way_of_fusing_finds_it(docs: Docs, fusion: FusionMethod, weight: float) -> None:
    assert (await docs.search("shell on a machine", k=1, fusion=fusion, weight=weight)) == ["ssh"]


async def test_words_alone_ask_no_model(docs: Docs) -> None:
    await docs.search("shell", weight=1.0)
    assert docs.world.space.asked == 0


async def test_meaning_alone_scores_by_similarity(docs: Docs) -> None:
    options = SearchOptions(hybrid=False, k=4)
    found = await docs.world.retrieval.search([docs.scope], "another machine", options)
    assert len(found.passages) == 4
    assert all(each.score == each.similarity for each in found.passages)
    assert all(each.lexical_rank is None for each in found.passages)


async def test_the_threshold_holds_on_every_path(docs: Docs) -> None:
    query = TEXTS["ssh"]
    for options in (
        SearchOptions(threshold=0.99),
        SearchOptions(threshold=0.99, hybrid=False),
        SearchOptions(threshold=0.99, weight=1.0),
        SearchOptions(threshold=0.99, weight=0.0),
        SearchOptions(threshold=0.99, fusion=FusionMethod.RRF),
    ):
        found = await docs.world.retrieval.search([docs.scope], query, options)
        assert [each.stored.file_id for each in found.passages] == ["ssh"]
        assert found.warnings == []


async def test_passages_without_a_vector_pass_only_without_a_threshold(docs: Docs) -> None:
    await shelve(docs.world.library, a_file("new"), "zebra in a zoo")
    scope = SearchScope(ScopeKind.FILE, "new")
    for threshold, count in ((0.0, 1), (0.01, 0)):
        options = SearchOptions(threshold=threshold)
        found = await docs.world.retrieval.search([scope], "zebra", options)
        assert len(found.passages) == count
    [passage] = (await docs.world.retrieval.search([scope], "zebra", SearchOptions())).passages
    assert (passage.similarity, passage.dense_rank, passage.lexical_rank) == (None, None, 1)


@pytest.mark.parametrize("hybrid", [True, False])
async def test_without_a_model_words_decide_and_a_warning_says_so(docs: Docs, hybrid: bool) -> None:
    docs.world.space.embedder = None
    options = SearchOptions(k=1, hybrid=hybrid, threshold=0.9)
    found = await docs.world.retrieval.search([docs.scope], "archive", options)
    assert [each.stored.file_id for each in found.passages] == ["tar"]
    [warning] = found.warnings
    assert "no embedding model" in warning
    assert "threshold" in warning
    assert found.space is None


async def test_a_model_that_is_down_is_named_in_the_warning(docs: Docs) -> None:
    docs.world.embedder.failures.append(GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "cannot reach ollama"))
    found = await docs.world.retrieval.search([docs.scope], "archive", SearchOptions(k=1))
    assert [each.stored.file_id for each in found.passages] == ["tar"]
    [warning] = found.warnings
    assert "cannot reach ollama" in warning
    assert (await docs.world.retrieval.search([docs.scope], "archive", SearchOptions())).warnings == []


async def test_an_index_that_is_down_is_a_warning_too(docs: Docs, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*given: object) -> Sequence[SearchHit]:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot load the vectors")

    monkeypatch.setattr(docs.world.index, "search", broken)
    found = await docs.world.retrieval.search([docs.scope], "archive", SearchOptions(k=1))
    assert [each.stored.file_id for each in found.passages] == ["tar"]
    assert "cannot load the vectors" in found.warnings[0]


async def test_several_scopes_are_one_search(docs: Docs) -> None:
    world = docs.world
    await world.shelve(a_file("ftp"), "ftp copies files to another machine slowly")
    scopes = [docs.scope, SearchScope(ScopeKind.FILE, "ftp"), SearchScope(ScopeKind.FILE, "tar"), docs.scope]
    found = await world.retrieval.search(scopes, "copies files to another machine", SearchOptions(k=9))
    keys = [each.stored.file_id for each in found.passages]
    assert keys[:2] == ["scp", "ftp"]
    assert sorted(keys) == sorted([*TEXTS, "ftp"])


async def test_the_same_document_twice_fills_no_answer(docs: Docs) -> None:
    for number in range(3):
        await docs.world.shelve(a_file(f"copy{number}"), f"{TEXTS['tar']} \n", docs.scope.id)
    assert (await docs.search("copies of files in an archive", k=2)) == ["tar", "scp"]


async def test_a_file_that_was_taken_out_is_not_found_any_more(docs: Docs) -> None:
    stale = await docs.world.retrieval.search([docs.scope], "archive", SearchOptions(k=4))
    await docs.world.store.unlink(docs.scope.id, ["tar"])

    async def cached(*given: object) -> Sequence[SearchHit]:
        return [SearchHit(each.stored.id, each.dense or 0.0) for each in stale.passages]

    docs.world.index.search = cached  # type: ignore[method-assign]
    assert "tar" not in await docs.search("archive", k=4)


@pytest.mark.parametrize("query", ["", "  \n"])
async def test_an_empty_question_is_a_warning(docs: Docs, query: str) -> None:
    found = await docs.world.retrieval.search([docs.scope], query, SearchOptions())
    assert list(found.passages) == []
    assert len(found.warnings) == 1


async def test_no_scopes_and_odd_numbers(docs: Docs) -> None:
    assert list((await docs.world.retrieval.search([], "archive", SearchOptions())).passages) == []
    assert len(await docs.search("archive", k=0)) == 1
    assert len(await docs.search("archive", k=10**9)) == 4


async def test_a_question_is_embedded_once_for_several_searches(docs: Docs) -> None:
    retrieval = docs.world.retrieval
    question = await retrieval.question("archive", SearchOptions())
    for _ in range(3):
        await retrieval.search([docs.scope], question, SearchOptions())
    assert docs.world.embedder.texts == ["archive"]


async def test_words_are_searched_while_the_question_is_embedded(
    docs: Docs, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = asyncio.Event()
    embed, words = docs.world.embedder.embed, MemoryWords.search

    async def patient(texts: Sequence[str], purpose: EmbeddingPurpose) -> bytes:
        async with asyncio.timeout(10):
            await looked.wait()
        return await embed(texts, purpose)

    async def looking(self: MemoryWords, scope: SearchScope, query: str, limit: int) -> Sequence[SearchHit]:
        looked.set()
        return await words(self, scope, query, limit)

    monkeypatch.setattr(docs.world.embedder, "embed", patient)
    monkeypatch.setattr(MemoryWords, "search", looking)
    assert (await docs.search("archive"))[0] == "tar"


class Reranker:
    """Likes long texts; fails when told."""

    def __init__(self) -> None:
        self.texts: Sequence[str] = ()
        self.failure: GatewayError | None = None

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        if self.failure is not None:
            raise self.failure
        self.texts = texts
        return [len(text) / 100 for text in texts]


async def test_a_reranker_has_the_last_word(docs: Docs) -> None:
    reranker = Reranker()
    retrieval = with_reranker(docs.world, reranker)
    options = SearchOptions(k=2, k_reranker=1)
    found = await retrieval.search([docs.scope], "archive", options)
    longest = sorted(TEXTS, key=lambda name: -len(TEXTS[name]))[:2]
    assert [each.stored.file_id for each in found.passages] == longest
    assert [each.score for each in found.passages] == [len(TEXTS[name]) / 100 for name in longest]
    assert len(reranker.texts) == 4
    await retrieval.search([docs.scope], "archive", replace(options, hybrid=False))
    reranker.failure = GatewayError(ErrorKind.TIMEOUT, "cannot wait for the reranker")
    found = await retrieval.search([docs.scope], "archive", options)
    assert found.passages[0].stored.file_id == "tar"
    assert "cannot wait for the reranker" in found.warnings[0]
