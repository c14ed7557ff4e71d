"""Tests for gatewayd.knowledge.passage_selection."""

from itertools import pairwise

from gatewayd.ingest.chunker import ChunkRules, split_text
from gatewayd.ingest.records import ExtractionResult, ScopeKind, SearchScope, TextPart
from gatewayd.knowledge.passage_selection import PassageSelector, normalise_whitespace
from gatewayd.knowledge.records import CollectionLink
from tests.fakes.documents.collections import World, a_file, person
from tests.fakes.documents.memory_stores import MemoryFiles, MemoryPassages

ANN = person("ann")


def picker(world: World) -> PassageSelector:
    library = world.library
    return PassageSelector(MemoryPassages(library), MemoryFiles(library), world.store)


async def test_passages_in_order_each_text_once(world: World) -> None:
    docs = await world.collection(ANN)
    for key, text in (("f1", "the same  words"), ("f2", "the\nsame words "), ("f3", "others")):
        await world.shelve(a_file(key), text, docs)
    scope = SearchScope(ScopeKind.COLLECTION, docs)
    found = await picker(world).pick([scope], [3, 2, 1], 5)
    assert [(each.stored.id, each.file.id) for each in found] == [(3, "f3"), (2, "f2")]
    assert [each.stored.id for each in await picker(world).pick([scope], [3, 2, 1], 1)] == [3]


async def test_what_is_no_longer_in_the_scopes_is_left_out(world: World) -> None:
    docs, other = await world.collection(ANN), await world.collection(ANN, "other")
    await world.shelve(a_file("f1"), "one", docs)
    await world.shelve(a_file("f2"), "two", other)
    await world.shelve(a_file("f3"), "three")
    everything = [1, 2, 3, 99]
    collection, file = SearchScope(ScopeKind.COLLECTION, docs), SearchScope(ScopeKind.FILE, "f3")
    assert [each.stored.id for each in await picker(world).pick([collection], everything, 9)] == [1]
    assert [each.stored.id for each in await picker(world).pick([file, collection], everything, 9)] == [1, 3]
    await world.store.unlink(docs, ["f1"])
    assert await picker(world).pick([collection], everything, 9) == []


async def test_reads_on_until_there_are_enough(world: World) -> None:
    docs = await world.collection(ANN)
    same = "again and again. "
    text = same * 40 + "at last something else."
    ends = [*range(0, len(same) * 41, len(same)), len(text)]
    parts = [TextPart(start, end) for start, end in pairwise(ends)]
    extraction = ExtractionResult(text, split_text(text, parts, ChunkRules(200, 0)))
    await world.shelve(a_file("f1"), extraction, docs)
    scope = SearchScope(ScopeKind.COLLECTION, docs)
    keys = sorted(key for key, row in world.library.tables.passages.items() if not row.staged)
    found = await picker(world).pick([scope], keys, 2)
    assert [normalise_whitespace(each.stored.text) for each in found] == [
        "again and again.",
        "at last something else.",
    ]


async def test_the_path_is_that_in_a_collection_that_was_searched(world: World) -> None:
    docs, other = await world.collection(ANN), await world.collection(ANN, "other")
    await world.shelve(a_file("f1"), "one", other)
    await world.store.link(CollectionLink(docs, "f1", ANN.user_id, path="guide/one.md"))
    collection, file = SearchScope(ScopeKind.COLLECTION, docs), SearchScope(ScopeKind.FILE, "f1")
    assert [each.path for each in await picker(world).pick([collection], [1], 9)] == ["guide/one.md"]
    assert [each.path for each in await picker(world).pick([file], [1], 9)] == [""]
    assert [
        each.path for each in await picker(world).pick([SearchScope(ScopeKind.COLLECTION, other)], [1], 9)
    ] == [""]
