"""Tests for gatewayd.knowledge.full_text."""

import pytest

from gatewayd.ingest.records import FileStatus
from gatewayd.knowledge import full_text
from gatewayd.knowledge.full_text import CharacterBudget
from gatewayd.knowledge.records import CollectionLink
from tests.fakes.documents.collections import World, a_file, person
from tests.fakes.documents.memory_stores import MemoryFiles

ANN = person("ann")


def test_an_allowance_is_used_up_and_says_what_was_cut() -> None:
    allowance = CharacterBudget(10)
    assert allowance.take("123456", "file 'a'") == "123456"
    assert allowance.warnings == []
    assert allowance.take("abcdef", "file 'b'") == "abcd"
    assert allowance.take("xyz", "file 'c'") == ""
    assert allowance.left == 0
    assert "first 4 of its 6 characters" in allowance.warnings[0]
    assert "none of it" in allowance.warnings[1]


async def test_a_file(world: World) -> None:
    file = await world.shelve(a_file("f1"), "the whole text")
    [(metadata, text)] = await world.documents.full_text.file(file, CharacterBudget(100))
    assert (metadata["file_id"], metadata["source"], text) == ("f1", "f1.txt", "the whole text")
    assert await world.documents.full_text.file(file, CharacterBudget(0)) == []
    assert await world.documents.full_text.file(a_file("f2"), CharacterBudget(9)) == []


async def test_a_collection_page_by_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_text, "PAGE_SIZE", 2)
    docs = await world.collection(ANN)
    for number in range(5):
        await world.shelve(a_file(f"f{number}"), f"text {number}", docs)
    await MemoryFiles(world.library).add(a_file("f9", status=FileStatus.PENDING))
    await world.store.link(CollectionLink(docs, "f9", "ann"))
    collection = await world.collections.get(ANN, docs)
    allowance = CharacterBudget(100)
    found = await world.documents.full_text.collection(collection, allowance)
    assert [text for _, text in found] == [f"text {number}" for number in range(5)]
    assert allowance.warnings == []
    allowance = CharacterBudget(15)
    found = await world.documents.full_text.collection(collection, allowance)
    assert [text for _, text in found] == ["text 0", "text 1", "tex"]
    assert "'f2.txt'" in allowance.warnings[0]
    assert "2 of its files" in allowance.warnings[1]
