"""Uploads that are missing or lead elsewhere, and collections of both schemas."""

import asyncio
from typing import Any

import pytest

from gatewayd.ingest.records import FileStatus
from gatewayd.knowledge.records import CollectionLink
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.jobs import TortoiseJobs
from tests.fakes.storage.open_webui import NEW, OLD, UPLOAD, Rows, household, times
from tests.gatewayd.offline.imports.conftest import Importing, numbers, reasons


def file(file_id: str, path: Any, filename: str = "a.txt", **more: Any) -> dict[str, Any]:
    return {"id": file_id, "user_id": "u-bob", "filename": filename, "path": path, **times(), **more}


def with_files(*files: dict[str, Any]) -> Rows:
    return {**household(), "file": list(files)}


def links(importing: Importing) -> dict[str, CollectionLink]:
    async def read() -> dict[str, CollectionLink]:
        async with importing.open():
            found = [each.id for each in (await TortoiseFiles().list())[0]]
            return dict(await TortoiseCollections().find_links("k-1", found))

    return asyncio.run(read())


@pytest.mark.parametrize(
    "path",
    [
        "/data/uploads/../../secret",
        "../secret",
        "..",
        "uploads/..\\..\\secret",
        "/etc/passwd",
        None,
        "",
        "a\0b",
        "x" * 5000,
    ],
)
def test_a_path_leads_nowhere_but_into_the_directory(importing: Importing, path: str | None) -> None:
    (importing.folder / "secret").write_bytes(b"secret")
    report = importing.rows(with_files(file("file-9", path)))
    assert numbers(report)["file"] == (0, 0, 1)
    assert reasons(report, "file")["file-9"].startswith("its bytes are missing")


def test_a_link_in_the_directory_is_not_followed(importing: Importing) -> None:
    (importing.folder / "secret").write_bytes(b"secret")
    (importing.folder / "uploads" / "file-9_a.txt").symlink_to(importing.folder / "secret")
    report = importing.rows(with_files(file("file-9", None)))
    assert "cannot read the upload file-9_a.txt" in reasons(report, "file")["file-9"]


def test_a_file_that_was_missing_is_imported_later_with_its_place(importing: Importing) -> None:
    upload = importing.folder / "uploads" / UPLOAD[0]
    upload.unlink()
    assert numbers(importing.rows(household()))["file"] == (0, 0, 1)
    assert links(importing) == {}
    upload.write_bytes(UPLOAD[1])
    report = importing.rows(household())
    assert (numbers(report)["file"], report["has_changed"]) == ((1, 0, 0), True)
    assert links(importing)["file-1"].directory_id == "d-1"


@pytest.mark.parametrize("schema", [OLD, NEW])
def test_a_collection_that_is_new_gets_the_files_that_are_here(importing: Importing, schema: str) -> None:
    rows = household(schema)
    importing.rows({**rows, "knowledge": []}, schema)
    assert links(importing) == {}
    assert numbers(importing.rows(rows, schema))["collection"] == (1, 0, 0)
    assert links(importing)["file-1"].user_id == "u-ada"


def test_a_place_that_was_given_up_here_does_not_come_back(importing: Importing) -> None:
    importing.rows(household())

    async def unlink() -> None:
        async with importing.open():
            await TortoiseCollections().unlink("k-1", ["file-1"])

    asyncio.run(unlink())
    rows = household()
    rows["knowledge_directory"].append(
        {"id": "d-2", "knowledge_id": "k-1", "name": "New", "user_id": "u-ada"}
    )
    report = importing.rows(rows)
    assert (links(importing), report["has_changed"]) == ({}, False)
    assert reasons(report, "directory") == {"d-2": "its collection was here before"}


def test_without_uploads_the_rest_is_imported(importing: Importing) -> None:
    importing.uploads = None
    report = importing.rows(household())
    assert (numbers(report)["file"], numbers(report)["collection"]) == ((0, 0, 1), (1, 0, 0))


def test_pictures_and_types_without_text_are_kept_only(importing: Importing) -> None:
    importing.environ["RAG_ALLOWED_FILE_EXTENSIONS"] = "txt"
    uploads = importing.folder / "uploads"
    for name in ("file-7_a.png", "file-8_a.xyz", "file-9_a.txt"):
        (uploads / name).write_bytes(b"bytes")
    report = importing.rows(
        with_files(
            file(
                "file-7", "s3://bucket/file-7_a.png", "a.png", meta={"content_type": "image/png", "data": 7}
            ),
            file("file-8", None, "a.xyz"),
            file("file-9", None, meta={"name": "x", "file_hash": "abc"}, hash="other"),
            file("bad id", None),
            file("file-6", None, user_id="gone"),
        )
    )
    assert numbers(report)["file"] == (3, 0, 2)

    async def read() -> None:
        async with importing.open():
            found = {each.id: each for each in (await TortoiseFiles().list())[0]}
            assert {each.id: each.status for each in found.values()} == {
                "file-7": FileStatus.STORED,
                "file-8": FileStatus.STORED,
                "file-9": FileStatus.PENDING,
            }
            assert (found["file-9"].checksum, found["file-9"].created_at) == ("abc", times()["created_at"])
            assert await TortoiseJobs().find("file-7") is None

    asyncio.run(read())


def test_documents_of_nobody_belong_to_the_administrator(importing: Importing) -> None:
    rows = household()
    rows["knowledge"][0]["user_id"] = rows["file"][0]["user_id"] = "gone"
    rows["knowledge"].append({"id": "k" * 65, "user_id": "u-ada", "name": "X"})
    rows["knowledge"].append({"id": "k-3", "user_id": "u-ada", "name": "", "data": "[]"})
    report = importing.rows(rows)
    assert (numbers(report)["collection"], numbers(report)["file"]) == ((1, 0, 2), (1, 0, 0))
    assert "belongs to the first administrator" in reasons(report, "collection", "changed")["k-1"]


def test_without_an_administrator_documents_of_nobody_are_left_out(importing: Importing) -> None:
    rows = household()
    rows["user"] = rows["user"][1:]
    report = importing.rows(rows)
    for kind in ("collection", "file", "function", "tool", "model"):
        assert list(reasons(report, kind).values()) == ["its user is not imported"], kind


def test_directories_in_circles_are_at_the_top(importing: Importing) -> None:
    rows = household()
    rows["knowledge_directory"] = [
        {"id": "d-1", "knowledge_id": "k-1", "name": "A", "parent_id": "d-2", "user_id": "u-ada"},
        {"id": "d-2", "knowledge_id": "k-1", "name": "B", "parent_id": "d-1", "user_id": "gone"},
        {"id": "d-3", "knowledge_id": "k-1", "name": "", "user_id": "u-ada"},
    ]
    report = importing.rows(rows)
    assert numbers(report)["directory"] == (2, 0, 1)

    async def read() -> set[str | None]:
        async with importing.open():
            return {each.parent_id for each in await TortoiseCollections().list_directories("k-1")}

    assert None in asyncio.run(read())


def test_grants_to_nobody_are_noted(importing: Importing) -> None:
    rows = household()
    rows["access_grant"] += [
        {**rows["access_grant"][0], "principal_id": "g-none"},
        {**rows["access_grant"][0], "principal_type": "anyone", "principal_id": "*"},
    ]
    report = importing.rows(rows)
    changed = [each["reason"] for each in report["changed"] if each["kind"] == "collection"]
    assert any("group g-none" in each for each in changed)
    assert any("principal_type is 'anyone'" in each for each in changed)
    old = household(OLD)
    old["knowledge"] = [{**old["knowledge"][0], "id": "k-2", "access_control": "[]", "data": "[]"}]
    changed = [each["reason"] for each in importing.rows(old, OLD)["changed"]]
    assert any("access_control" in each for each in changed)
    assert any("cannot read data" in each for each in changed)
