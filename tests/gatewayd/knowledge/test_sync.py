"""Tests for gatewayd.knowledge.sync."""

from collections.abc import Awaitable
from dataclasses import replace

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import FileStatus
from gatewayd.knowledge.records import CollectionLink
from gatewayd.knowledge.sync import ManifestEntry
from tests.fakes.documents.collections import World, a_file, person
from tests.fakes.documents.memory_stores import MemoryFiles

ANN, BOB = person("ann"), person("bob")


async def refused(work: Awaitable[object]) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await work
    return caught.value


async def test_a_new_tree(world: World) -> None:
    docs = await world.collection(ANN)
    entries = [
        ManifestEntry("a.txt", "1"),
        ManifestEntry("b.txt", "2", "guide/deep"),
        ManifestEntry("c.txt", "3", "guide"),
    ]
    diff = await world.sync.diff(ANN, docs, entries)
    assert list(diff.added) == entries
    assert (list(diff.modified), list(diff.deleted), diff.unmodified) == ([], [], 0)
    assert list(diff.mkdir) == ["guide", "guide/deep"]
    assert (list(diff.rmdir), dict(diff.directories)) == ([], {})


async def test_a_known_tree(world: World) -> None:
    docs = await world.collection(ANN)
    guide = await world.directories.create(ANN, docs, "guide")
    old = await world.directories.create(ANN, docs, "old")
    await world.shelve(a_file("f1", name="a.txt", checksum="1"), "one", docs)
    await world.shelve(a_file("f2", name="b.txt", checksum="2"), "two", docs, directory_id=guide.id)
    await world.shelve(a_file("f3", name="c.txt", checksum="3"), "three", docs, directory_id=old.id)
    await world.shelve(a_file("f4", name="d.txt"), "four", docs, origin="/srv", path="d.txt")
    entries = [
        ManifestEntry("a.txt", "1"),
        ManifestEntry("b.txt", "new", "guide"),
        ManifestEntry("a.txt", "1", "guide"),
    ]
    diff = await world.sync.diff(ANN, docs, entries)
    assert list(diff.added) == [entries[2]]
    assert [(entry, file.id) for entry, file in diff.modified] == [(entries[1], "f2")]
    assert [file.id for file in diff.deleted] == ["f3"]
    assert diff.unmodified == 1
    assert (list(diff.mkdir), list(diff.rmdir)) == ([], [old.id])
    assert dict(diff.directories) == {"guide": guide.id, "old": old.id}


async def test_the_second_run_of_a_client_has_nothing_to_do(world: World) -> None:
    docs = await world.collection(ANN)
    entries = [ManifestEntry("a.txt", "1", "x/y"), ManifestEntry("b.txt", "2"), ManifestEntry("c.txt", "3")]
    diff = await world.sync.diff(ANN, docs, entries)
    made = dict(diff.directories)
    for path in diff.mkdir:
        above, _, name = path.rpartition("/")
        made[path] = (await world.directories.create(ANN, docs, name, made.get(above))).id
    for number, entry in enumerate(diff.added):
        file = a_file(f"f{number}", name=entry.filename, checksum=entry.checksum)
        await world.shelve(file, entry.filename)
        await world.members.add(ANN, docs, file.id, directory_id=made.get(entry.path))
    # Processing that is not done, or failed, is no reason to upload again.
    for key, status in (("f1", FileStatus.PENDING), ("f2", FileStatus.FAILED)):
        changed = replace(world.library.tables.files[key], status=status)
        await MemoryFiles(world.library).change(changed)
    again = await world.sync.diff(ANN, docs, entries)
    assert (list(again.added), list(again.modified), list(again.deleted)) == ([], [], [])
    assert (list(again.mkdir), list(again.rmdir), again.unmodified) == ([], [], 3)


async def test_spellings_of_other_systems_are_the_same_place(world: World) -> None:
    docs = await world.collection(ANN)
    made = await world.directories.create(ANN, docs, "\u00fcber")
    await world.shelve(a_file("f1", name="\u00e4.txt", checksum="1"), "one", docs, directory_id=made.id)
    await world.shelve(a_file("f2", name="b.txt", checksum="2"), "two", docs)
    entries = [ManifestEntry("a\u0308.txt", "1", "u\u0308ber"), ManifestEntry("a\\b.txt", "2")]
    diff = await world.sync.diff(ANN, docs, entries)
    assert diff.unmodified == 2
    assert (list(diff.mkdir), list(diff.rmdir)) == ([], [])
    assert dict(diff.directories) == {"u\u0308ber": made.id}


async def test_of_several_files_at_one_place_the_newest_counts(world: World) -> None:
    docs = await world.collection(ANN)
    for key, checksum, at in (("f2", "new", 2), ("f1", "old", 1)):
        file = a_file(key, name="a.txt", checksum=checksum, created_at=at)
        await world.shelve(file, key, docs)
    assert (await world.sync.diff(ANN, docs, [ManifestEntry("a.txt", "new")])).unmodified == 1


@pytest.mark.parametrize(
    "entry", [ManifestEntry("a", "1", "../x"), ManifestEntry("a", ""), ManifestEntry("a", "x" * 256)]
)
async def test_bad_entries_are_refused(world: World, entry: ManifestEntry) -> None:
    docs = await world.collection(ANN)
    assert (await refused(world.sync.diff(ANN, docs, [entry]))).kind is ErrorKind.INVALID_REQUEST


async def put(world: World, docs: str, key: str, status: FileStatus, at: int = 1, sum_: str = "1") -> None:
    file = a_file(key, status=status, checksum=sum_, created_at=at, error="bad" if at < 0 else None)
    await MemoryFiles(world.library).add(file)
    await world.store.link(CollectionLink(docs, key, "ann", origin="/srv", path="p.txt", created_at=at))


async def test_comparison_of_an_origin(world: World) -> None:
    docs = await world.collection(ANN)
    for key, status in (
        ("done", FileStatus.COMPLETED),
        ("changed", FileStatus.COMPLETED),
        ("waits", FileStatus.PENDING),
        ("broken", FileStatus.FAILED),
        ("gone", FileStatus.COMPLETED),
    ):
        await MemoryFiles(world.library).add(a_file(key, status=status, checksum=key))
        await world.store.link(CollectionLink(docs, key, "ann", origin="/srv", path=key))
    for key, origin in (("other", "/other"), ("loose", "")):
        await MemoryFiles(world.library).add(a_file(key, status=FileStatus.COMPLETED))
        await world.store.link(CollectionLink(docs, key, "ann", origin=origin, path=key))
    paths = ["done", "changed", "waits", "broken", "new"]
    entries = [ManifestEntry("", "else" if path == "changed" else path, path) for path in paths]
    found = await world.sync.compare(ANN, docs, "/srv", entries)
    assert (list(found.added), list(found.modified), list(found.unmodified)) == (
        ["new"],
        ["changed"],
        ["done"],
    )
    held = (found.pending, found.failed, found.deleted)
    assert [[file.id for _, file in each] for each in held] == [["waits"], ["broken"], ["gone"]]


STATES = FileStatus
# The versions at one path from old to new, what the client has, and what that is.
VERSIONS: dict[str, tuple[list[tuple[FileStatus, str]], str, str]] = {
    "a new version on its way": ([(STATES.COMPLETED, "1"), (STATES.PENDING, "2")], "2", "pending"),
    "changed back meanwhile": ([(STATES.COMPLETED, "1"), (STATES.PENDING, "2")], "1", "modified"),
    "a version that failed": ([(STATES.COMPLETED, "1"), (STATES.FAILED, "2")], "2", "failed"),
    "changed back after a failure": ([(STATES.COMPLETED, "1"), (STATES.FAILED, "2")], "1", "unmodified"),
    "changed after a failure": ([(STATES.FAILED, "1")], "2", "modified"),
    "changed again after a failure": ([(STATES.COMPLETED, "1"), (STATES.FAILED, "2")], "3", "modified"),
}


@pytest.mark.parametrize("name", VERSIONS)
async def test_versions_of_one_path(world: World, name: str) -> None:
    docs = await world.collection(ANN)
    versions, checksum, expected = VERSIONS[name]
    for at, (status, known) in enumerate(versions):
        await put(world, docs, f"f{at}", status, at, known)
    found = await world.sync.compare(ANN, docs, "/srv", [ManifestEntry("", checksum, "p.txt")])
    assert [kind for kind in ("unmodified", "modified", "pending", "failed") if getattr(found, kind)] == [
        expected
    ]
    assert not found.added
    assert not found.deleted


async def test_an_origin_has_a_name(world: World) -> None:
    docs = await world.collection(ANN)
    assert (await refused(world.sync.compare(ANN, docs, "", []))).param == "origin"


async def test_cleanup_ignores_what_is_not_there(world: World) -> None:
    docs, other = await world.collection(ANN), await world.collection(ANN, "other")
    made = await world.directories.create(ANN, docs, "x")
    await world.shelve(a_file("f1"), "one", docs, directory_id=made.id)
    await world.shelve(a_file("f2"), "two", docs, other)
    await world.shelve(a_file("f3"), "three", other)
    await world.shelve(a_file("f4", "bob"), "four", docs)
    count = await world.sync.cleanup(ANN, docs, ["f1", "f2", "f3", "f4", "f9"], [made.id, "nowhere"])
    assert count == 3
    assert set(world.library.tables.files) == {"f2", "f3", "f4"}
    assert (await world.store.list_files(docs))[1] == 0
    assert await world.directories.list(ANN, docs) == []


async def test_foreign_collections_are_closed(world: World) -> None:
    closed = await world.collection(ANN)
    readable = await world.collection(ANN, "docs", Grant("user", "bob", "read"))
    for key, kind in ((closed, ErrorKind.NOT_FOUND), (readable, ErrorKind.FORBIDDEN)):
        await world.shelve(a_file(f"f{key}"), f"a secret of {key}", key, origin="/srv", path="x")
        for work in (
            world.sync.diff(BOB, key, []),
            world.sync.compare(BOB, key, "/srv", []),
            world.sync.cleanup(BOB, key, [f"f{key}"]),
        ):
            assert (await refused(work)).kind is kind
        assert (await world.store.list_files(key))[1] == 1


@pytest.mark.parametrize(
    "entries",
    [
        # A path of n parts needs n directories, of n characters on average.
        [ManifestEntry("a.txt", "1", f"{n}/" + "/".join(["x" * 40] * 90)) for n in range(1000)],
        [ManifestEntry("a.txt", "1", "/".join("x" * 101))],
    ],
)
async def test_trees_that_would_fill_the_memory_are_refused(
    world: World, entries: list[ManifestEntry]
) -> None:
    docs = await world.collection(ANN)
    error = await refused(world.sync.diff(ANN, docs, entries))
    assert error.param in {"manifest", "path"}


async def test_one_path_is_looked_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = await world.collection(ANN)
    seen: list[str] = []
    monkeypatch.setattr("gatewayd.knowledge.sync.ancestor_paths", lambda path: seen.append(path) or [path])
    diff = await world.sync.diff(ANN, docs, [ManifestEntry(f"{n}.txt", "1", "guide") for n in range(10)])
    assert (list(diff.mkdir), seen) == (["guide"], ["guide"])
