"""Tests for gatewayd.knowledge.members."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from gatewayd.accounts.records import Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import File, FileStatus, ScopeKind, SearchScope
from gatewayd.knowledge.members import MAX_WAIT_SECONDS, FileAddition, MemberResult
from gatewayd.knowledge.records import CollectionLink
from tests.fakes.documents.collections import World, a_file, person
from tests.fakes.documents.memory_stores import MemoryFiles

ANN, BOB = person("ann"), person("bob")
ROOT = person("root", role=Role.ADMIN)


async def refused(work: Awaitable[object]) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await work
    return caught.value


async def held(world: World, collection_id: str) -> list[str]:
    found, _ = await world.store.list_files(collection_id)
    return [file.id for _, file in found]


async def put(world: World, file_id: str, status: FileStatus, error: str | None = None) -> None:
    await MemoryFiles(world.library).add(a_file(file_id, status=status, error=error))


async def test_adding_twice_is_adding_once(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text")
    added = await world.members.add(ANN, docs, "f1")
    assert added.id == docs
    await world.members.add(ANN, docs, "f1")
    assert await world.store.count_files(docs) == 1
    assert await held(world, docs) == ["f1"]
    assert world.index.learned == [(SearchScope(ScopeKind.COLLECTION, docs), "f1")]


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (FileStatus.PENDING, None, "not finished"),
        (FileStatus.STORED, None, "without processing"),
        (FileStatus.FAILED, "the file is empty", "the file is empty"),
    ],
)
async def test_files_without_content_are_refused(
    world: World, status: FileStatus, error: str | None, words: str
) -> None:
    docs = await world.collection(ANN)
    await put(world, "f1", status, error)
    problem = await refused(world.members.add(ANN, docs, "f1"))
    assert problem.kind is ErrorKind.EMPTY_CONTENT
    assert "empty" in problem.message
    assert words in problem.message
    assert await held(world, docs) == []


async def test_adding_can_wait_for_a_pending_file(world: World) -> None:
    docs = await world.collection(ANN)
    await put(world, "f1", FileStatus.PENDING)
    work = asyncio.ensure_future(world.members.add(ANN, docs, "f1", wait=60))
    while not world.watch.is_watched("f1"):
        await asyncio.sleep(0)
    await world.shelve(a_file("f1"), "some text")
    world.watch.notify("f1")
    await work
    assert await held(world, docs) == ["f1"]


async def test_waiting_ends(world: World) -> None:
    docs = await world.collection(ANN)
    await put(world, "f1", FileStatus.PENDING)
    assert (await refused(world.members.add(ANN, docs, "f1", wait=0.01))).kind is ErrorKind.EMPTY_CONTENT


async def test_a_text_is_refused_twice_and_the_file_left_alone(world: World) -> None:
    docs, other = await world.collection(ANN), await world.collection(ANN, "other")
    for key in ("f1", "f2"):
        await world.shelve(a_file(key, text_hash="same"), "some text")
    await world.members.add(ANN, docs, "f1")
    problem = await refused(world.members.add(ANN, docs, "f2"))
    assert (problem.kind, problem.code) == (ErrorKind.INVALID_REQUEST, "duplicate_content")
    assert problem.message.startswith("Duplicate content")
    assert (await world.holdings.files.get(ANN, "f2")).status is FileStatus.COMPLETED
    await world.members.add(ANN, other, "f2")


async def test_files_with_a_path_are_never_duplicates(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1", text_hash="same"), "some text", docs, origin="/srv", path="a.txt")
    await world.shelve(a_file("f2", text_hash="same"), "some text")
    await world.members.add(ANN, docs, "f2")
    assert await held(world, docs) == ["f1", "f2"]


async def test_a_synced_file_keeps_its_place_when_it_is_added_again(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text", docs, origin="/srv", path="a.txt")
    await world.members.add(ANN, docs, "f1")
    directory = await world.directories.create(ANN, docs, "guide")
    await world.members.add(ANN, docs, "f1", directory_id=directory.id)
    [link] = (await world.store.find_links(docs, ["f1"])).values()
    assert (link.origin, link.path, link.directory_id) == ("/srv", "a.txt", directory.id)


async def test_directories_of_other_collections_are_refused(world: World) -> None:
    docs, other = await world.collection(ANN), await world.collection(ANN, "other")
    directory = await world.directories.create(ANN, other, "guide")
    await world.shelve(a_file("f1"), "some text")
    problem = await refused(world.members.add(ANN, docs, "f1", directory_id=directory.id))
    assert problem.kind is ErrorKind.NOT_FOUND


# Every way in, tried by somebody who may not.
CHANGES: dict[str, Callable[[World, str], Awaitable[object]]] = {
    "add": lambda world, key: world.members.add(BOB, key, "f1"),
    "add_many": lambda world, key: world.members.add_many(BOB, key, [FileAddition("f1")]),
    "update_file": lambda world, key: world.members.update_file(BOB, key, "f1"),
    "remove_file": lambda world, key: world.members.remove_file(BOB, key, "f1"),
    "remove_many": lambda world, key: world.members.remove_many(BOB, key, ["f1"]),
    "reset": lambda world, key: world.members.reset(BOB, key),
    "list": lambda world, key: world.members.list(BOB, key),
    "completed": lambda world, key: world.members.completed(BOB, key, 9),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_foreign_collections_are_closed(world: World, name: str) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text", docs)
    assert (await refused(CHANGES[name](world, docs))).kind is ErrorKind.NOT_FOUND
    await world.collections.set_grants(ROOT, docs, [Grant("user", "bob", "read")])
    if name in {"list", "completed"}:
        await CHANGES[name](world, docs)
    else:
        assert (await refused(CHANGES[name](world, docs))).kind is ErrorKind.FORBIDDEN
    assert await held(world, docs) == ["f1"]


async def test_who_may_only_read_a_file_cannot_share_it(world: World) -> None:
    shown = await world.collection(ANN, "shown", Grant("user", "bob", "read"))
    writable = await world.collection(ANN, "writable", Grant("user", "bob", "write"))
    mine = await world.collection(BOB, "mine")
    file = await world.shelve(a_file("f1"), "some text", shown)
    for collection_id in (mine, writable):
        problem = await refused(world.members.add(BOB, collection_id, "f1"))
        assert (problem.kind, problem.param) == (ErrorKind.FORBIDDEN, "file_id")
        _, [result] = await world.members.add_many(BOB, collection_id, [FileAddition("f1")])
        assert result.error is not None
        assert result.error.kind is ErrorKind.FORBIDDEN
        [preview] = await world.members.preview_add(BOB, collection_id, ["f1"])
        assert preview.error is not None
        assert await held(world, collection_id) == []
    # Nor can the right to change it be had that way.
    assert not await world.holdings.access.may(BOB, file, "write")
    await world.members.add(ANN, writable, "f1")
    assert await world.holdings.access.may(BOB, file, "write")
    # It is in: that somebody may only read it is no reason to refuse now.
    await world.members.add(BOB, writable, "f1")


async def test_foreign_files_do_not_exist(world: World) -> None:
    mine = await world.collection(BOB)
    await world.shelve(a_file("f1"), "a secret of ann")
    problem = await refused(world.members.add(BOB, mine, "f1", wait=1))
    nowhere = await refused(world.members.add(BOB, mine, "f9"))
    assert (problem.kind, problem.message.replace("f1", "f9")) == (ErrorKind.NOT_FOUND, nowhere.message)
    _, results = await world.members.add_many(BOB, mine, [FileAddition("f1"), FileAddition("f9")])
    assert [result.error and result.error.kind for result in results] == [
        ErrorKind.NOT_FOUND,
        ErrorKind.NOT_FOUND,
    ]
    assert (await refused(world.members.update_file(BOB, mine, "f1"))).kind is ErrorKind.NOT_FOUND
    assert (await refused(world.members.remove_file(BOB, mine, "f1"))).kind is ErrorKind.NOT_FOUND
    assert await held(world, mine) == []


async def test_a_batch_has_a_result_for_each_file(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text", docs)
    await world.shelve(a_file("f2"), "another text")
    await put(world, "f3", FileStatus.FAILED, "no text was found")
    additions = [FileAddition(key) for key in ("f1", "f2", "f3", "f4")]
    collection, results = await world.members.add_many(ANN, docs, additions)
    assert await world.store.count_files(collection.id) == 2
    assert [(each.file_id, each.is_changed) for each in results] == [
        ("f1", False),
        ("f2", True),
        ("f3", False),
        ("f4", False),
    ]
    kinds = [each.error and each.error.kind for each in results]
    assert kinds == [None, None, ErrorKind.EMPTY_CONTENT, ErrorKind.NOT_FOUND]


async def test_a_batch_stops_when_the_database_is_at_fault(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text")

    async def locked(link: CollectionLink) -> bool:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot write: locked")

    monkeypatch.setattr(world.store, "link", locked)
    assert (
        await refused(world.members.add_many(ANN, docs, [FileAddition("f1")]))
    ).kind is ErrorKind.UNAVAILABLE


async def test_removing_a_file_deletes_it_when_nothing_else_holds_it(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text", docs)
    await world.members.remove_file(ANN, docs, "f1")
    assert not await world.store.has_files(docs)
    assert world.library.tables.files == {}
    assert (SearchScope(ScopeKind.COLLECTION, docs), "f1") in world.index.learned


async def test_a_file_stays_when_it_is_wanted_elsewhere(world: World) -> None:
    docs, other = await world.collection(ANN), await world.collection(ANN, "other")
    await world.shelve(a_file("f1"), "some text", docs, other)
    await world.members.remove_file(ANN, docs, "f1")
    assert await held(world, other) == ["f1"]
    await world.members.remove_file(ANN, other, "f1", delete_file=False)
    assert "f1" in world.library.tables.files


async def test_who_may_not_write_a_file_only_takes_it_out(world: World) -> None:
    docs = await world.collection(BOB)
    await world.shelve(a_file("f1", "ann"), "some text", docs)
    await world.members.remove_file(BOB, docs, "f1")
    assert "f1" in world.library.tables.files
    assert await held(world, docs) == []


async def test_who_may_write_the_owner_s_collection_may_delete_its_files(world: World) -> None:
    docs = await world.collection(ANN, "docs", Grant("user", "bob", "write"))
    await world.shelve(a_file("f1", "ann"), "some text", docs)
    [result] = await world.members.remove_many(BOB, docs, ["f1", "f1"])
    assert (result.is_changed, result.is_deleted) == (True, True)
    assert world.library.tables.files == {}


async def test_removing_what_is_not_in(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text")
    assert (await refused(world.members.remove_file(ANN, docs, "f1"))).kind is ErrorKind.NOT_FOUND
    assert "f1" in world.library.tables.files


async def test_update_takes_over_the_present_text(world: World) -> None:
    docs = await world.collection(ANN)
    file = await world.shelve(a_file("f1"), "some text", docs)
    await world.members.update_file(ANN, docs, "f1")
    assert world.index.learned == [(SearchScope(ScopeKind.COLLECTION, docs), "f1")]
    failed = replace(file, status=FileStatus.FAILED, error="broken")
    await MemoryFiles(world.library).change(failed)
    assert (await refused(world.members.update_file(ANN, docs, "f1"))).kind is ErrorKind.EMPTY_CONTENT


@pytest.mark.parametrize("directories", [True, False])
async def test_reset_leaves_the_files(world: World, directories: bool) -> None:
    docs = await world.collection(ANN)
    made = await world.directories.create(ANN, docs, "guide")
    for key in ("f1", "f2"):
        await world.shelve(a_file(key), f"text of {key}", docs, directory_id=made.id)
    await world.members.reset(ANN, docs, directories=directories)
    assert await world.store.count_files(docs) == 0
    assert set(world.library.tables.files) == {"f1", "f2"}
    assert bool(await world.directories.list(ANN, docs)) is not directories
    assert world.index.forgotten == [SearchScope(ScopeKind.COLLECTION, docs)]


async def test_completed_files_alone_are_listed_as_such(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text", docs)
    await put(world, "f2", FileStatus.PENDING)
    await world.store.link(CollectionLink(docs, "f2", "ann"))
    assert [file.id for file in await world.members.completed(ANN, docs, 9) or ()] == ["f1"]
    assert (await world.members.list(ANN, docs, query="F2"))[1] == 1


async def test_a_preview_of_adding_says_what_would_become_of_each(world: World) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text", docs)
    await world.shelve(a_file("f2"), "another text")
    await world.shelve(a_file("f3", text_hash="text of f1"), "some text")
    await put(world, "f4", FileStatus.PENDING)
    file_ids = ["f1", "f2", "f3", "f4", "f5"]
    previewed = await world.members.preview_add(ANN, docs, file_ids)
    assert await held(world, docs) == ["f1"]
    assert world.index.learned == []
    _, results = await world.members.add_many(ANN, docs, [FileAddition(each) for each in file_ids])

    def told(each: MemberResult) -> tuple[str, bool, str | None]:
        return each.file_id, each.is_changed, each.error and each.error.message

    assert list(map(told, previewed)) == list(map(told, results))
    assert [each.is_changed for each in results] == [False, True, False, False, False]
    assert (await refused(world.members.preview_add(BOB, docs, ["f1"]))).kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("delete_files", [True, False])
async def test_a_preview_of_removing_says_what_would_become_of_each(world: World, delete_files: bool) -> None:
    docs, other = await world.collection(ANN), await world.collection(ANN, "other")
    await world.shelve(a_file("f1"), "some text", docs)
    await world.shelve(a_file("f2"), "another text", docs, other)
    await world.shelve(a_file("f3", "bob"), "a third text", docs)
    file_ids = ["f1", "f2", "f3", "none", "f1"]
    previewed = await world.members.preview_remove(ANN, docs, file_ids, delete_files=delete_files)
    assert await held(world, docs) == ["f1", "f2", "f3"]
    assert len(world.library.tables.files) == 3
    results = await world.members.remove_many(ANN, docs, file_ids, delete_files=delete_files)
    for each in (previewed, results):
        assert [(one.file_id, one.is_changed, one.is_deleted) for one in each] == [
            ("f1", True, delete_files),
            ("f2", True, False),
            ("f3", True, False),
            ("none", False, False),
        ]
        assert each[-1].error is not None
    assert (await refused(world.members.preview_remove(BOB, docs, ["f1"]))).kind is ErrorKind.NOT_FOUND


async def test_many_are_waited_for_together(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = await world.collection(ANN)
    for key in ("f1", "f2", "f3"):
        await put(world, key, FileStatus.PENDING)
    waits: list[float] = []

    async def finished(file_id: str, seconds: float) -> File:
        waits.append(seconds)
        await asyncio.sleep(0.01)
        return a_file(file_id)

    monkeypatch.setattr(world.holdings.files, "finished", finished)
    await world.members.add_many(ANN, docs, [FileAddition(key) for key in ("f1", "f2", "f3")], wait=9e9)
    assert MAX_WAIT_SECONDS >= waits[0] > waits[1] > waits[2]


async def test_what_is_not_in_is_looked_up_together(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = await world.collection(ANN)
    await world.shelve(a_file("f1"), "some text", docs)
    asked: list[int] = []
    find = world.store.find_links

    async def noted(collection_id: str, file_ids: Sequence[str]) -> Mapping[str, CollectionLink]:
        asked.append(len(file_ids))
        return await find(collection_id, file_ids)

    monkeypatch.setattr(world.store, "find_links", noted)
    results = await world.members.remove_many(ANN, docs, [*(f"x{n}" for n in range(700)), "f1"])
    assert [result.file_id for result in results if result.is_changed] == ["f1"]
    assert len(asked) < 5
    assert await held(world, docs) == []


async def test_large_collections_are_not_read_whole(world: World) -> None:
    docs = await world.collection(ANN)
    for key in ("f1", "f2"):
        await world.shelve(a_file(key), "some text", docs)
    assert await world.members.completed(ANN, docs, 1) is None
    assert [file.id for file in await world.members.completed(ANN, docs, 2) or ()] == ["f1", "f2"]
