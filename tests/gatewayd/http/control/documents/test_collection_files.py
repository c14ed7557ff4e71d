"""The files of collections."""

import logging
from functools import partial
from typing import Any

import pytest

from gatewayctl.wire import routes
from gatewayctl.wire.collections import CollectionMembers, Entry, NewCollection, Sync
from gatewayd.errors import invalid
from tests.fakes.daemons.control_documents import add, boss, processed, refused
from tests.fakes.daemons.control_socket import Control


@pytest.fixture(autouse=True)
async def docs(control: Control) -> Any:
    await boss(control)
    return await control.call(control.client.call, routes.CREATE_COLLECTION, body=NewCollection(name="docs"))


async def held(control: Control, ref: str = "docs", **how: int) -> list[str]:
    found = await control.call(control.client.call, routes.LIST_COLLECTION_FILES, ref, **how)
    return [each.file.name for each in found.files]


async def put(control: Control, *file_ids: str, dry_run: bool = False) -> list[tuple[str, str]]:
    wanted = CollectionMembers(files=list(file_ids))
    done = await control.call(
        control.client.call, routes.ADD_TO_COLLECTION, "docs", body=wanted, dry_run=dry_run
    )
    assert done.dry_run is dry_run
    return [(each.id, each.outcome) for each in done.results]


async def take(
    control: Control, *file_ids: str, delete: bool = False, dry_run: bool = False
) -> list[tuple[str, str]]:
    wanted = CollectionMembers(files=list(file_ids), delete=delete)
    done = await control.call(
        control.client.call, routes.REMOVE_FROM_COLLECTION, "docs", body=wanted, dry_run=dry_run
    )
    assert done.dry_run is dry_run
    return [(each.id, each.outcome) for each in done.results]


async def test_each_file_has_its_own_outcome(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    first = await processed(control, b"one", "a.txt")
    second = await processed(control, b"two", "b.txt")
    twin = await processed(control, b"two", "c.txt")
    control.documents.extractor.failures = [invalid("cannot read the document: it is torn")]
    torn = await processed(control, b"three", "d.txt")
    await put(control, first.id, second.id)
    asked = (first.id, twin.id, torn.id, "none")
    expected = list(zip(asked, ("unchanged", "failed", "failed", "failed"), strict=True))
    for dry_run in (True, False):
        with caplog.at_level(logging.INFO, "gatewayd.audit"):
            caplog.clear()
            assert await put(control, *asked, dry_run=dry_run) == expected
            assert len(caplog.records) == (not dry_run)
    done = await control.call(
        control.client.call, routes.ADD_TO_COLLECTION, "docs", body=CollectionMembers(files=list(asked))
    )
    errors = [each.error or "" for each in done.results]
    for error, part in zip(errors, ("", "Duplicate content", "it is torn", "cannot find file"), strict=True):
        assert part in error
    assert await held(control) == ["a.txt", "b.txt"]


async def test_a_dry_run_adds_nothing(control: Control) -> None:
    file = await processed(control, b"one")
    assert await put(control, file.id, file.id, dry_run=True) == [(file.id, "added")]
    assert await held(control) == []
    assert await put(control, file.id, file.id) == [(file.id, "added")]
    assert await held(control) == ["a.txt"]


async def test_what_is_taken_out_stays_unless_it_is_deleted(control: Control) -> None:
    files = [await processed(control, name.encode(), name, collection="docs") for name in ("a", "b")]
    ids = [file.id for file in files]
    assert await take(control, *ids, dry_run=True) == [(each, "removed") for each in ids]
    assert await take(control, *ids, delete=True, dry_run=True) == [(each, "deleted") for each in ids]
    assert await held(control) == ["a", "b"]
    assert await take(control, ids[0], "none") == [(ids[0], "removed"), ("none", "failed")]
    assert (await control.call(control.client.call, routes.GET_FILE, ids[0])).collections == []
    assert await take(control, ids[1], delete=True) == [(ids[1], "deleted")]
    assert (await refused(control, control.client.call, routes.GET_FILE, ids[1])).kind == "not_found"
    assert await held(control) == []


@pytest.mark.parametrize("dry_run", [True, False])
async def test_what_another_collection_holds_is_not_deleted(control: Control, dry_run: bool) -> None:
    await control.call(control.client.call, routes.CREATE_COLLECTION, body=NewCollection(name="other"))
    file = await processed(control, b"one", collection="docs")
    await control.call(
        control.client.call, routes.ADD_TO_COLLECTION, "other", body=CollectionMembers(files=[file.id])
    )
    assert await take(control, file.id, delete=True, dry_run=dry_run) == [(file.id, "removed")]
    kept = await control.call(control.client.call, routes.GET_FILE, file.id)
    assert kept.collections == (["docs", "other"] if dry_run else ["other"])


async def test_files_come_in_pages(control: Control) -> None:
    for number in range(3):
        await processed(control, f"text {number}".encode(), f"{number}.txt", collection="docs")
    assert await held(control, offset=1, limit=1) == ["1.txt"]
    assert await held(control, offset=9) == []
    page = await control.call(control.client.call, routes.LIST_COLLECTION_FILES, "docs", limit=2)
    assert (len(page.files), page.total) == (2, 3)


async def test_a_directory_is_compared(control: Control) -> None:
    async def keep(path: str, checksum: str) -> str:
        place = {"collection": "docs", "origin": "/srv", "path": path}
        return (await processed(control, path.encode(), path, checksum=checksum, **place)).id

    for path in ("same", "newer", "gone"):
        await keep(path, "v1")
    control.documents.extractor.failures = [invalid("cannot read the document: it is torn")]
    await keep("torn", "v1")
    await control.documents.queue.close()
    await add(control, b"waits", "waits", collection="docs", origin="/srv", path="waits", checksum="v1")
    entries = [
        Entry(path=path, checksum=checksum)
        for path, checksum in (
            ("same", "v1"),
            ("newer", "v2"),
            ("torn", "v1"),
            ("fresh", "v1"),
            ("waits", "v1"),
        )
    ]
    found = await control.call(
        control.client.call, routes.COMPARE_COLLECTION, "docs", body=Sync(origin="/srv", entries=entries)
    )
    assert (found.added, found.modified, found.unmodified) == (["fresh"], ["newer"], ["same"])
    assert [(each.path, each.file.status) for each in found.pending] == [("waits", "pending")]
    [torn], [gone] = found.failed, found.deleted
    assert (torn.path, torn.origin, torn.file.error) == (
        "torn",
        "/srv",
        "cannot read the document: it is torn",
    )
    assert (gone.path, gone.file.name, gone.file.status) == ("gone", "gone", "completed")


async def test_what_cannot_be_compared_is_refused(control: Control) -> None:
    compare = partial(refused, control, control.client.call, routes.COMPARE_COLLECTION)
    assert (await compare("none", body=Sync(origin="/srv", entries=[]))).kind == "not_found"
    failure = await compare("docs", body=Sync(origin="", entries=[]))
    assert (failure.kind, failure.param) == ("invalid_request", "origin")
    entries = [Entry.model_construct(path="a", size=1)]
    failure = await compare("docs", body=Sync.model_construct(origin="/srv", entries=entries))
    assert (failure.kind, failure.param) == ("invalid_request", "entries.0.checksum")
