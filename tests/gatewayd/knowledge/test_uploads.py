"""Tests for gatewayd.knowledge.uploads."""

from collections.abc import AsyncIterator, Awaitable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Actor, Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import File, FileStatus
from gatewayd.ingest.upload import NewFile
from gatewayd.knowledge.uploads import UploadDestination
from tests.fakes.documents.collections import World, once, person

ANN, BOB = person("ann"), person("bob")
ROOT = person("root", role=Role.ADMIN, permissions={})


async def refused(work: Awaitable[object]) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await work
    return caught.value


async def send(
    world: World, actor: Actor, data: Mapping[str, Any] | None = None, place: UploadDestination | None = None
) -> File:
    upload = NewFile("a.txt", "text/plain", actor.user_id, data or {})
    return await world.uploads.accept(actor, upload, once(b"text"), place)


def kept(world: World, folder: Path) -> list[str]:
    """Return the ids of the files, and fail when there are bytes of others."""
    bytes_ = sorted(path.name for path in folder.rglob("*") if path.is_file())
    assert bytes_ == sorted(world.library.tables.files)
    return bytes_


async def test_a_file_on_its_own(world: World) -> None:
    file = await send(world, ANN, {"language": "de"})
    assert (file.status, file.data) == (FileStatus.PENDING, {"language": "de"})
    assert world.library.tables.links == {}


async def test_uploading_needs_the_permission(world: World, tmp_path: Path) -> None:
    error = await refused(send(world, person("eve", permissions={})))
    assert (error.kind, kept(world, tmp_path)) == (ErrorKind.FORBIDDEN, [])
    await send(world, ROOT)
    world.uploads.check(ROOT)


async def test_straight_into_a_collection(world: World) -> None:
    docs = await world.collection(ANN)
    made = await world.directories.create(ANN, docs, "guide")
    file = await send(world, ANN, {"knowledge_id": docs, "directory_id": made.id})
    [link] = (await world.store.find_links(docs, [file.id])).values()
    assert (link.collection_id, link.origin, link.path, link.directory_id) == (docs, "", "", made.id)
    assert file.checksum == file.digest


async def test_a_sync_client_gives_a_place(world: World) -> None:
    docs = await world.collection(ANN)
    top = await world.directories.create(ANN, docs, "guide")
    low = await world.directories.create(ANN, docs, "deep", top.id)
    for directory, path in ((low.id, "guide/deep/a.txt"), (None, "a.txt")):
        data = {"knowledge_id": docs, "file_hash": "v1", "directory_id": directory}
        file = await send(world, ANN, data)
        [link] = (await world.store.find_links(docs, [file.id])).values()
        assert (file.checksum, link.path, link.origin) == ("v1", path, "")


async def test_a_place_of_an_origin(world: World) -> None:
    docs = await world.collection(ANN)
    file = await send(world, ANN, place=UploadDestination(docs, "/srv/docs", "x/a.txt"))
    [link] = (await world.store.find_links(docs, [file.id])).values()
    assert (link.origin, link.path) == ("/srv/docs", "x/a.txt")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"knowledge_id": 3}, "knowledge_id"),
        ({"knowledge_id": "x\x00"}, "knowledge_id"),
        ({"file_hash": ["x"]}, "file_hash"),
        ({"file_hash": "x" * 256}, "file_hash"),
    ],
)
async def test_bad_metadata_is_refused_by_name(
    world: World, tmp_path: Path, data: dict[str, Any], name: str
) -> None:
    error = await refused(send(world, ANN, data))
    assert error.kind is ErrorKind.INVALID_REQUEST
    assert name in error.message
    assert kept(world, tmp_path) == []


@pytest.mark.parametrize(
    ("origin", "path", "name"),
    [
        ("/srv", "", "path"),
        ("", "a.txt", "path"),
        ("/srv", "../a.txt", "path"),
        ("/srv", "a\x00", "path"),
        ("/s\nv", "a", "origin"),
        ("/" * 5000, "a", "origin"),
    ],
)
async def test_bad_places_are_refused_by_name(
    world: World, tmp_path: Path, origin: str, path: str, name: str
) -> None:
    docs = await world.collection(ANN)
    error = await refused(send(world, ANN, place=UploadDestination(docs, origin, path)))
    assert (error.kind, error.param) == (ErrorKind.INVALID_REQUEST, name)
    assert kept(world, tmp_path) == []


async def test_foreign_collections_are_closed(world: World, tmp_path: Path) -> None:
    closed = await world.collection(ANN)
    readable = await world.collection(ANN, "docs", Grant("user", "bob", "read"))
    open_ = await world.collection(ANN, "ours", Grant("user", "bob", "write"))
    for key, kind in (
        (closed, ErrorKind.NOT_FOUND),
        (readable, ErrorKind.FORBIDDEN),
        ("nowhere", ErrorKind.NOT_FOUND),
    ):
        assert (await refused(send(world, BOB, {"knowledge_id": key}))).kind is kind
        assert (await refused(send(world, BOB, place=UploadDestination(key, "/srv", "a")))).kind is kind
    foreign = await world.directories.create(ANN, closed, "x")
    data = {"knowledge_id": open_, "directory_id": foreign.id}
    assert (await refused(send(world, BOB, data))).kind is ErrorKind.NOT_FOUND
    assert kept(world, tmp_path) == []
    await send(world, BOB, {"knowledge_id": open_})


async def test_a_right_that_ends_while_the_bytes_come_counts_no_more(world: World, tmp_path: Path) -> None:
    docs = await world.collection(ANN, "docs", Grant("user", "bob", "write"))

    async def body() -> AsyncIterator[bytes]:
        yield b"some"
        await world.collections.set_grants(ROOT, docs, [])
        yield b"text"

    upload = NewFile("a.txt", None, "bob", {"knowledge_id": docs})
    assert (await refused(world.uploads.accept(BOB, upload, body()))).kind is ErrorKind.NOT_FOUND
    assert kept(world, tmp_path) == []


async def test_metadata_may_come_behind_the_file(world: World) -> None:
    docs = await world.collection(ANN)
    data: dict[str, Any] = {}

    async def body() -> AsyncIterator[bytes]:
        yield b"text"
        data["knowledge_id"] = docs

    file = await world.uploads.accept(ANN, NewFile("a.txt", None, "ann", data), body())
    assert list(await world.store.find_links(docs, [file.id])) == [file.id]
