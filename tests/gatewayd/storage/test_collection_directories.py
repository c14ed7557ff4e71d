import asyncio
from dataclasses import replace

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine.database import Database
from gatewayd.storage.files import TortoiseFiles
from tests.fakes.documents.records import collection, directory, file, link

# a > b > c, and d beside a.
TREE = (directory("a"), directory("b", "a"), directory("c", "b", updated_at=2, created_at=1), directory("d"))


@pytest.fixture
async def collections(database: Database) -> TortoiseCollections:
    collections = TortoiseCollections()
    for collection_id in ("c1", "c2"):
        await collections.add(collection(collection_id))
    for each in TREE:
        await collections.add_directory(each)
    await collections.add_directory(directory("z", collection_id="c2", name="a"))
    return collections


async def refusal(changing: object) -> tuple[ErrorKind, str | None]:
    with pytest.raises(GatewayError) as caught:
        await changing  # type: ignore[misc]
    return caught.value.kind, caught.value.param


async def test_directories_come_back_as_they_were(collections: TortoiseCollections) -> None:
    assert await collections.list_directories("c1") == list(TREE)
    for odd in ("x", "\x00"):
        assert await collections.list_directories(odd) == []


async def test_one_parent_has_a_name_once(collections: TortoiseCollections) -> None:
    for taken in (directory("e", name="d"), directory("e", "a", name="b")):
        assert await refusal(collections.add_directory(taken)) == (ErrorKind.CONFLICT, "name")
        assert await refusal(collections.change_directory(replace(taken, id="c"))) == (
            ErrorKind.CONFLICT,
            "name",
        )
    await collections.add_directory(directory("e", "a", name="d"))
    await collections.add_directory(directory("f", name="D"))
    assert len(await collections.list_directories("c1")) == 6


async def test_of_racing_ones_one_gets_the_name(collections: TortoiseCollections) -> None:
    adding = (collections.add_directory(directory(f"n{n}", "a", name="new")) for n in range(5))
    results = await asyncio.gather(*adding, return_exceptions=True)
    assert results.count(None) == 1
    kinds = {error.kind for error in results if isinstance(error, GatewayError)}
    assert kinds == {ErrorKind.CONFLICT}


async def test_a_directory_needs_its_collection_and_parent(collections: TortoiseCollections) -> None:
    for parent_id in ("x", "\x00", "z"):
        assert await refusal(collections.add_directory(directory("e", parent_id))) == (
            ErrorKind.NOT_FOUND,
            None,
        )
        moved = directory("d", parent_id)
        assert await refusal(collections.change_directory(moved)) == (ErrorKind.NOT_FOUND, None)
    for collection_id in ("x", "\x00"):
        lost = directory("e", collection_id=collection_id)
        assert await refusal(collections.add_directory(lost)) == (ErrorKind.NOT_FOUND, None)
    for name in ("x" * 256, "\x00"):
        assert await refusal(collections.add_directory(directory("e", name=name))) == (
            ErrorKind.INVALID_REQUEST,
            "name",
        )
    assert await collections.list_directories("c1") == list(TREE)


async def test_a_directory_is_renamed_and_moved(collections: TortoiseCollections) -> None:
    assert await collections.change_directory(replace(TREE[1], name="new", parent_id="d", updated_at=5))
    assert (await collections.list_directories("c1"))[1] == directory("b", "d", name="new", updated_at=5)
    assert await collections.change_directory(replace(TREE[1], name="top", parent_id=None))
    assert (await collections.list_directories("c1"))[1] == directory("b", name="top")
    assert not await collections.change_directory(directory("x"))
    assert not await collections.change_directory(directory("\x00"))
    assert not await collections.change_directory(directory("z"))


async def test_a_directory_does_not_get_inside_itself(collections: TortoiseCollections) -> None:
    for parent_id in ("a", "b", "c"):
        moved = directory("a", parent_id)
        assert await refusal(collections.change_directory(moved)) == (ErrorKind.CONFLICT, "parent_id")
    assert await collections.list_directories("c1") == list(TREE)


async def test_directories_go_with_those_below_and_their_files_stay(collections: TortoiseCollections) -> None:
    for number, directory_id in enumerate(["c", "a", "d", None]):
        await TortoiseFiles().add(file(f"f{number}"))
        await collections.link(link("c1", f"f{number}", directory_id=directory_id))
    assert await collections.remove_directories("c1", ["b", "a", "z", "x", "\x00"]) == ["f0", "f1"]
    assert [each.id for each in await collections.list_directories("c1")] == ["d"]
    assert [each.id for each in await collections.list_directories("c2")] == ["z"]
    found, _ = await collections.list_files("c1")
    assert [each.directory_id for each, _ in found] == [None, None, "d", None]
    assert await collections.remove_directories("c1", []) == []
    assert await collections.remove_directories("\x00", ["d"]) == []
    assert await refusal(collections.remove_directories("x", ["d"])) == (ErrorKind.NOT_FOUND, None)


async def test_a_line_leads_from_the_root(collections: TortoiseCollections) -> None:
    assert await collections.find_ancestors("c1", "c") == [TREE[0], TREE[1], TREE[2]]
    assert await collections.find_ancestors("c1", "d") == [TREE[3]]
    for collection_id, directory_id in (("c1", "z"), ("c2", "a"), ("c1", "x"), ("c1", "\x00"), ("\x00", "a")):
        assert await collections.find_ancestors(collection_id, directory_id) == []


async def test_counting(collections: TortoiseCollections) -> None:
    counts = [await collections.count_directories(each) for each in ("c1", "c2", "c3", "\x00")]
    assert counts == [4, 1, 0, 0]


async def places(collections: TortoiseCollections) -> dict[str, tuple[str, str | None]]:
    found, _ = await collections.list_files("c1")
    return {each.file_id: (each.path, each.directory_id) for each, _ in found}


async def test_files_that_move_lose_the_paths_of_no_origin(collections: TortoiseCollections) -> None:
    for file_id, origin in (("f1", ""), ("f2", "/srv"), ("f3", "")):
        await TortoiseFiles().add(file(file_id))
        await collections.link(link("c1", file_id, origin=origin, path=f"a/{file_id}", directory_id="a"))
    moved = await collections.move_files("c1", ["f1", "f2", "f9", "\x00"], "b")
    assert sorted(moved) == ["f1", "f2"]
    assert await places(collections) == {"f1": ("", "b"), "f2": ("a/f2", "b"), "f3": ("a/f3", "a")}
    await collections.clear_paths("c1", ["a", "b", "\x00"])
    assert await places(collections) == {"f1": ("", "b"), "f2": ("a/f2", "b"), "f3": ("", "a")}
    assert len(await collections.move_files("c1", ["f1", "f2"], None)) == 2
    assert await places(collections) == {"f1": ("", None), "f2": ("a/f2", None), "f3": ("", "a")}
    assert await collections.move_files("c2", ["f1"], None) == []
    assert await collections.move_files("\x00", ["f1"], None) == []
    await collections.clear_paths("\x00", ["a"])
    # Another file may come to the place that was left.
    await TortoiseFiles().add(file("f4"))
    assert await collections.link(link("c1", "f4", path="a/f1"))
    refused = await refusal(collections.move_files("c1", ["f1"], "\x00"))
    assert refused == (ErrorKind.INVALID_REQUEST, "directory_id")
