"""Tests for gatewayd.knowledge.directories."""

from collections.abc import Awaitable, Callable

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.knowledge.directories import DirectoryChange
from tests.fakes.documents.collections import World, a_file, person

ANN, BOB = person("ann"), person("bob")


async def refused(work: Awaitable[object]) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await work
    return caught.value


async def test_create_and_list(world: World) -> None:
    docs = await world.collection(ANN)
    top = await world.directories.create(ANN, docs, " guide ")
    below = await world.directories.create(ANN, docs, "u\u0308ber", top.id)
    assert (top.name, top.parent_id, below.name, below.parent_id) == ("guide", None, "\u00fcber", top.id)
    assert [each.id for each in await world.directories.list(ANN, docs)] == [top.id, below.id]
    assert (await refused(world.directories.create(ANN, docs, "guide"))).kind is ErrorKind.CONFLICT
    assert (await refused(world.directories.create(ANN, docs, "x", "nowhere"))).kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", "a\x00", "x" * 256])
async def test_bad_names(world: World, name: str) -> None:
    docs = await world.collection(ANN)
    error = await refused(world.directories.create(ANN, docs, name))
    assert (error.kind, error.param) == (ErrorKind.INVALID_REQUEST, "name")


async def test_rename_and_move(world: World) -> None:
    docs = await world.collection(ANN)
    top = await world.directories.create(ANN, docs, "top")
    low = await world.directories.create(ANN, docs, "low", top.id)
    renamed = await world.directories.change(ANN, docs, low.id, DirectoryChange(name="deep"))
    assert (renamed.name, renamed.parent_id) == ("deep", top.id)
    moved = await world.directories.change(ANN, docs, low.id, DirectoryChange(moves=True))
    assert moved.parent_id is None
    change = DirectoryChange(parent_id=low.id, moves=True)
    assert (await world.directories.change(ANN, docs, top.id, change)).parent_id == low.id
    change = DirectoryChange(parent_id=top.id, moves=True)
    assert (await refused(world.directories.change(ANN, docs, low.id, change))).param == "parent_id"


async def test_a_moved_file_loses_the_place_of_a_sync_client(world: World) -> None:
    docs = await world.collection(ANN)
    top = await world.directories.create(ANN, docs, "top")
    await world.shelve(a_file("f1"), "one", docs, path="top/f1.txt", directory_id=top.id)
    await world.shelve(a_file("f2"), "two", docs, path="f2.txt", origin="/srv", directory_id=top.id)
    await world.directories.change(ANN, docs, top.id, DirectoryChange(name="new"))
    links = {link.file_id: link for link in world.library.tables.links.values()}
    assert (links["f1"].path, links["f1"].directory_id) == ("", top.id)
    assert links["f2"].path == "f2.txt"
    await world.directories.move_file(ANN, docs, "f2", None)
    assert world.library.tables.links[docs, "f2"].directory_id is None
    assert world.library.tables.links[docs, "f2"].path == "f2.txt"


@pytest.mark.parametrize("move_files", [True, False])
async def test_remove(world: World, move_files: bool) -> None:
    docs = await world.collection(ANN)
    top = await world.directories.create(ANN, docs, "top")
    low = await world.directories.create(ANN, docs, "low", top.id)
    await world.shelve(a_file("f1"), "one", docs, directory_id=low.id)
    await world.directories.remove(ANN, docs, low.id, move_files=move_files)
    assert [each.id for each in await world.directories.list(ANN, docs)] == [top.id]
    links = list(world.library.tables.links.values())
    assert [link.directory_id for link in links] == ([top.id] if move_files else [])
    assert ("f1" in world.library.tables.files) is move_files


async def test_remove_many_ignores_what_is_gone(world: World) -> None:
    docs, other = await world.collection(ANN), await world.collection(ANN, "other")
    mine = await world.directories.create(ANN, docs, "mine")
    kept = await world.directories.create(ANN, other, "kept")
    await world.directories.remove_many(ANN, docs, [mine.id, kept.id, "nowhere"])
    assert await world.directories.list(ANN, docs) == []
    assert await world.directories.list(ANN, other) == [kept]


CHANGES: dict[str, Callable[[World, str], Awaitable[object]]] = {
    "create": lambda world, key: world.directories.create(BOB, key, "x"),
    "change": lambda world, key: world.directories.change(BOB, key, "d", DirectoryChange(name="x")),
    "remove": lambda world, key: world.directories.remove(BOB, key, "d"),
    "remove_many": lambda world, key: world.directories.remove_many(BOB, key, ["d"]),
    "move_file": lambda world, key: world.directories.move_file(BOB, key, "f1", None),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_foreign_collections_are_closed(world: World, name: str) -> None:
    closed = await world.collection(ANN)
    readable = await world.collection(ANN, "docs", Grant("user", "bob", "read"))
    assert (await refused(CHANGES[name](world, closed))).kind is ErrorKind.NOT_FOUND
    assert (await refused(world.directories.list(BOB, closed))).kind is ErrorKind.NOT_FOUND
    assert (await refused(CHANGES[name](world, readable))).kind is ErrorKind.FORBIDDEN
    assert await world.directories.list(BOB, readable) == []


async def test_directories_of_another_collection_are_not_found(world: World) -> None:
    docs, other = await world.collection(ANN), await world.collection(ANN, "other")
    foreign = await world.directories.create(ANN, other, "x")
    await world.shelve(a_file("f1"), "one", docs)
    change = DirectoryChange(name="y")
    for work in (
        world.directories.change(ANN, docs, foreign.id, change),
        world.directories.remove(ANN, docs, foreign.id),
        world.directories.move_file(ANN, docs, "f1", foreign.id),
        world.directories.create(ANN, docs, "x", foreign.id),
        world.directories.move_file(ANN, docs, "f2", None),
    ):
        assert (await refused(work)).kind is ErrorKind.NOT_FOUND


async def test_a_path_has_a_longest_length(world: World) -> None:
    docs = await world.collection(ANN)
    above = None
    for _ in range(16):
        above = (await world.directories.create(ANN, docs, "x" * 255, above)).id
    error = await refused(world.directories.create(ANN, docs, "y", above))
    assert (error.kind, error.param) == (ErrorKind.INVALID_REQUEST, "name")
    top = await world.directories.create(ANN, docs, "top")
    await world.directories.create(ANN, docs, "low", top.id)
    moving = DirectoryChange(parent_id=above, moves=True)
    error = await refused(world.directories.change(ANN, docs, top.id, moving))
    assert (error.kind, error.param) == (ErrorKind.INVALID_REQUEST, "name")
