import asyncio
from dataclasses import replace

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ids import digest
from gatewayd.ingest.records import FileStatus
from gatewayd.knowledge.records import CollectionLink
from gatewayd.storage.collection_links import place_key
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine.database import Database
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.tables.documents import CollectionRow, LinkRow, PassageRow
from tests.fakes.documents.records import collection, file, link
from tests.fakes.storage.word_tables import indexed_texts

FULL = CollectionLink(
    "c1", "f1", "u1", origin="/srv/ä", path="guide/install.md", directory_id="d1", created_at=3
)


@pytest.fixture
async def collections(database: Database) -> TortoiseCollections:
    """Return a store with the collections c1 and c2, and files f0 to f4 that have passages."""
    collections = TortoiseCollections()
    for collection_id in ("c1", "c2"):
        await collections.add(collection(collection_id))
    for number in range(5):
        hashed = {"text_hash": f"hash {number // 2}"}
        await TortoiseFiles().add(file(f"f{number}", status=FileStatus.COMPLETED, **hashed))
        for staged in (False, True):
            text = f"apple {number}{' staged' if staged else ''}"
            await PassageRow(file_id=f"f{number}", staged=staged, number=0, start=0, text=text).save(
                force_create=True
            )
    return collections


async def words_of(database: Database, collection_id: str) -> list[str]:
    """Return the texts of the passages whose words are in a collection, which are to be right (SQLite)."""
    row = await CollectionRow.get(id=collection_id)
    return await indexed_texts(database, row.number)


async def listed(collections: TortoiseCollections, **how: str) -> list[str]:
    found, total = await collections.list_files("c1", **how)  # type: ignore[arg-type]
    assert total == len(found)
    return [each.id for _, each in found]


async def test_a_link_comes_back_as_it_was(collections: TortoiseCollections) -> None:
    assert await collections.link(FULL)
    assert await collections.find_links("c1", ["f2", "f1", "\x00"]) == {"f1": FULL}
    found, _ = await collections.list_files("c1")
    assert found == [(FULL, file("f1", status=FileStatus.COMPLETED, text_hash="hash 0"))]


async def test_what_is_absent_is_empty(collections: TortoiseCollections) -> None:
    for odd in ("x", "\x00", "x" * 65):
        assert await collections.find_links(odd, ["f1"]) == {}
        assert await collections.find_links("c1", [odd]) == {}
        assert await collections.unlink(odd, ["f1"]) == []
        assert await collections.unlink("c1", [odd]) == []
        assert await collections.list_files(odd) == ([], 0)
        assert await collections.find_same_text(odd, "hash 0", but="f0") is None
        assert await collections.find_same_text("c1", odd, but="f0") is None
    assert await listed(collections, query="\x00") == []
    assert await listed(collections, origin="\x00") == []
    assert await listed(collections, directory_id="\x00") == []


async def test_a_file_is_linked_once_and_moves(collections: TortoiseCollections) -> None:
    assert await collections.link(FULL)
    moved = replace(FULL, origin="", path="b.md", directory_id=None)
    assert not await collections.link(replace(moved, user_id="u9", created_at=9))
    assert await collections.find_links("c1", ["f1"]) == {"f1": moved}
    assert [row.place for row in await LinkRow.all()] == [place_key("", "b.md")]


async def test_racing_links_make_one(collections: TortoiseCollections) -> None:
    made = await asyncio.gather(*(collections.link(FULL) for _ in range(6)))
    assert sorted(made) == [False] * 5 + [True]
    assert [row.collection_id for row in await LinkRow.filter(file_id="f1")] == ["c1"]


async def test_a_link_needs_its_ends(collections: TortoiseCollections) -> None:
    for collection_id in ("x", "\x00"):
        with pytest.raises(GatewayError) as caught:
            await collections.link(link(collection_id, "f1"))
        assert caught.value.kind is ErrorKind.NOT_FOUND
    with pytest.raises(GatewayError) as caught:
        await collections.link(link("c1", "x"))
    assert caught.value.kind is ErrorKind.CONFLICT
    with pytest.raises(GatewayError) as caught:
        await collections.link(link("c1", "f1", path="\x00"))
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "path")
    assert await LinkRow.all().count() == 0


def test_places_tell_origin_and_path_apart() -> None:
    assert place_key("/a", "") == ""
    assert place_key("/a", "b") == digest("/a\x00b")
    assert len({place_key("/a", "b/c"), place_key("/a/b", "c"), place_key("", "/ab/c")}) == 3


async def test_files_are_taken_out(collections: TortoiseCollections) -> None:
    for number in range(4):
        await collections.link(link("c1", f"f{number}"))
    await collections.link(link("c2", "f1"))
    assert await collections.unlink("c1", ["f3", "x", "f1", "f3", "f4"]) == ["f3", "f1"]
    assert await collections.unlink("c1", ["f3", "f1"]) == []
    assert await collections.unlink("c1", []) == []
    assert await listed(collections) == ["f0", "f2"]
    assert list(await collections.find_links("c2", ["f1"])) == ["f1"]


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_the_published_words_come_and_go_with_the_files(
    collections: TortoiseCollections, database: Database
) -> None:
    await TortoiseFiles().add(file("empty", status=FileStatus.PENDING))
    for file_id in ("f0", "f1", "empty", "f2"):
        await collections.link(link("c1", file_id))
    await collections.link(link("c2", "f1"))
    await collections.link(link("c1", "f1", path="again"))
    assert await words_of(database, "c1") == ["apple 0", "apple 1", "apple 2"]
    await collections.unlink("c1", ["f1", "f2", "empty", "f4"])
    assert await words_of(database, "c1") == ["apple 0"]
    assert await words_of(database, "c2") == ["apple 1"]


async def test_a_link_that_is_rolled_back_leaves_nothing(
    collections: TortoiseCollections, database: Database
) -> None:
    async with database.rehearsal():
        await collections.link(FULL)
    assert await LinkRow.all().count() == 0
    if database.location.is_sqlite:
        assert await words_of(database, "c1") == []


async def test_files_are_listed_in_the_order_of_linking(collections: TortoiseCollections) -> None:
    for file_id in ("f3", "f0", "f4", "f1"):
        await collections.link(link("c1", file_id, path=f"{file_id}.txt"))
    await collections.link(link("c2", "f2"))
    await collections.link(link("c1", "f3", path="moved"))
    page, total = await collections.list_files("c1", offset=1, limit=2)
    assert [(each.path, its.id) for each, its in page] == [("f0.txt", "f0"), ("f4.txt", "f4")]
    assert total == 4
    assert await listed(collections) == ["f3", "f0", "f4", "f1"]
    assert await collections.list_files("c1", offset=9, limit=2) == ([], 4)
    assert await collections.list_files("c1", limit=0) == ([], 4)


async def test_listed_files_can_be_limited(collections: TortoiseCollections) -> None:
    await TortoiseFiles().change(file("f2", name="ÄRGER 100%.md", status=FileStatus.FAILED, error="no text"))
    await collections.link(link("c1", "f0", origin="/a", path="p"))
    await collections.link(link("c1", "f1", directory_id="d1"))
    await collections.link(link("c1", "f2", origin="/b", path="p", directory_id="d2"))
    assert await listed(collections, origin="/a") == ["f0"]
    assert await listed(collections, origin="") == ["f1"]
    assert await listed(collections, directory_id="d1") == ["f1"]
    assert await listed(collections, directory_id="") == ["f0"]
    assert await listed(collections, query="ärger") == ["f2"]
    assert await listed(collections, query="0%") == ["f2"]
    assert await listed(collections, query="0_") == []
    assert await listed(collections, query=".TXT") == ["f0", "f1"]
    assert await listed(collections, query=".txt", origin="/b") == []


async def test_the_same_text_is_found_in_other_files_at_no_path(collections: TortoiseCollections) -> None:
    await collections.link(link("c1", "f0"))
    assert await collections.find_same_text("c1", "hash 0", but="f1") == "f0"
    assert await collections.find_same_text("c1", "hash 0", but="f0") is None
    assert await collections.find_same_text("c2", "hash 0", but="f1") is None
    assert await collections.find_same_text("c1", "hash 1", but="f1") is None
    await collections.link(link("c1", "f0", path="a.txt"))
    assert await collections.find_same_text("c1", "hash 0", but="f1") is None
    await collections.link(link("c1", "f1"))
    assert await collections.find_same_text("c1", "hash 0", but="f0") == "f1"
