"""Checks of the indexes of a collection."""

from collections.abc import Sequence

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.interfaces import LexicalIndex
from gatewayd.ingest.records import EmbeddingSpace, SearchScope
from gatewayd.knowledge.checks import IndexChecks
from tests.fakes.documents.collections import OneSpace, World, a_file, person
from tests.fakes.documents.memory_stores import ExactIndex, HashEmbedder, MemoryPassages, MemoryWords

ANN, BOB = person("ann"), person("bob")
ROOT = person("root", role=Role.ADMIN)


class Words(MemoryWords):
    """Words that do not fit."""

    async def check(self, scope: SearchScope) -> Sequence[str]:
        return ["the words of f1 were missing"]


class Index(ExactIndex):
    """Vectors that do not fit."""

    async def check(self, space: EmbeddingSpace, scope: SearchScope) -> Sequence[str]:
        return [f"the vectors of f1 in {space.name} were missing"]


def checks(
    world: World, words: type[LexicalIndex] = MemoryWords, index: type[ExactIndex] = ExactIndex
) -> IndexChecks:
    passages = MemoryPassages(world.library)
    return IndexChecks(world.collections, passages, words(world.library), index(passages), world.space)


async def test_everything_is_counted(world: World) -> None:
    docs = await world.collection(ANN, "docs")
    await world.shelve(a_file("f1"), "some text", docs)
    await world.shelve(a_file("f2"), "some other text")
    for ref in (docs, "docs"):
        report = await checks(world).check(ROOT, ref)
        assert (report.collection.id, report.files, report.passages, report.vectors) == (docs, 1, 1, 1)
        assert report.problems == []


async def test_both_indexes_are_looked_at(world: World) -> None:
    docs = await world.collection(ANN)
    report = await checks(world, Words, Index).check(ANN, docs)
    space = await HashEmbedder().space()
    assert report.problems == [
        "the words of f1 were missing",
        f"the vectors of f1 in {space.name} were missing",
    ]


async def test_passages_without_vectors_want_a_reindex(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text", docs)
    world.library.tables.vectors.clear()
    report = await checks(world).check(ANN, docs)
    assert (report.passages, report.vectors) == (1, 0)
    assert "1 passages have no vector" in report.problems[0]


async def test_without_a_model_words_are_checked(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text", docs)
    world.space.embedder = None
    report = await checks(world, Words, Index).check(ANN, docs)
    assert (report.passages, report.vectors) == (1, 0)
    assert report.problems == ["the words of f1 were missing"]


async def test_a_model_that_cannot_be_asked_is_said(world: World) -> None:
    class Absent(OneSpace):
        async def query(self) -> None:
            raise GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "the model is not here")

    docs = await world.collection(ANN)
    passages = MemoryPassages(world.library)
    made = IndexChecks(world.collections, passages, MemoryWords(world.library), Index(passages), Absent(None))
    assert (await made.check(ANN, docs)).problems == ["cannot check the vectors: the model is not here"]


async def test_a_check_needs_the_right_to_change(world: World) -> None:
    docs = await world.collection(ANN, "docs", Grant("user", "bob", "read"))
    with pytest.raises(GatewayError) as caught:
        await checks(world).check(BOB, docs)
    assert caught.value.kind is ErrorKind.FORBIDDEN
    with pytest.raises(GatewayError) as caught:
        await checks(world).check(BOB, await world.collection(ANN, "private"))
    assert caught.value.kind is ErrorKind.NOT_FOUND
