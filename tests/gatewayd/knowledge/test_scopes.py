"""Tests for gatewayd.knowledge.scopes."""

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import FileStatus, ScopeKind, SearchScope
from tests.fakes.documents.collections import World, a_file, person
from tests.fakes.documents.memory_stores import MemoryFiles

ANN, BOB = person("ann"), person("bob")


async def test_names_of_readable_files_and_collections(world: World) -> None:
    docs = await world.collection(ANN, "docs", Grant("user", "bob", "read"))
    await world.shelve(a_file("f1"), "some text", docs)
    scopes = world.documents.scopes
    assert await scopes.named(BOB, docs) == SearchScope(ScopeKind.COLLECTION, docs)
    assert await scopes.named(BOB, "file-f1") == SearchScope(ScopeKind.FILE, "f1")


async def test_foreign_names_are_like_unknown_ones(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text", docs)
    for name in (docs, "file-f1", "nowhere", "file-", "", "file-f9", "a\x00", "user-memory-ann"):
        with pytest.raises(GatewayError) as caught:
            await world.documents.scopes.named(BOB, name)
        assert caught.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("status", "words"),
    [(FileStatus.PENDING, "not finished"), (FileStatus.STORED, "without"), (FileStatus.FAILED, "no text")],
)
async def test_unfinished_files_say_why(world: World, status: FileStatus, words: str) -> None:
    await MemoryFiles(world.library).add(a_file("f1", status=status, error="no text was found"))
    with pytest.raises(GatewayError) as caught:
        await world.documents.scopes.named(ANN, "file-f1")
    assert caught.value.kind is ErrorKind.EMPTY_CONTENT
    assert words in caught.value.message
