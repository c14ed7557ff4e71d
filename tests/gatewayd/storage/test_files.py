from dataclasses import replace

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import File, FileStatus, file_id_of
from gatewayd.storage.collections import TortoiseCollections
from gatewayd.storage.engine.database import Database
from gatewayd.storage.files import PAGE_SIZE, TortoiseFiles
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.tables.documents import (
    CollectionRow,
    FileTextRow,
    LinkRow,
    PassageRow,
    SpaceRow,
    VectorBatchRow,
)
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user
from tests.fakes.documents.records import collection, file, job, link
from tests.fakes.storage.word_tables import indexed_texts

FULL = File(
    id="f1",
    user_id="u1",
    name="Größe Ⅷ.PDF",
    size=2**40,
    digest="d" * 64,
    checksum="version 1",
    content_type="application/pdf",
    status=FileStatus.FAILED,
    error="it is encrypted",
    text_hash="t" * 64,
    characters=5,
    chunks=1,
    pages=3,
    blank_pages=2,
    blob="f1.attempt",
    data={"author": ["x", None], "n": 1.5},
    updated_at=2,
    created_at=1,
)


@pytest.fixture
def files(database: Database) -> TortoiseFiles:
    return TortoiseFiles()


async def names(files: TortoiseFiles, pattern: str) -> list[str]:
    found, total = await files.list(pattern=pattern)
    assert total == len(found)
    return sorted(each.name for each in found)


async def test_a_file_comes_back_as_it_was(files: TortoiseFiles) -> None:
    await files.add(FULL)
    assert await files.find("f1") == FULL
    assert await files.find_many(["x", "f1", "f1", "\x00"]) == {"f1": FULL}
    assert await files.list() == ([FULL], 1)


async def test_what_is_absent_is_none_or_false(files: TortoiseFiles) -> None:
    for file_id in ("x", "\x00", "x" * 65):
        assert await files.find(file_id) is None
        assert await files.find_many([file_id]) == {}
        assert not await files.remove(file_id)
        assert not await files.change(file(file_id))
        assert await files.collections_of(file_id) == []
    assert await files.list(user_id="\x00") == ([], 0)
    assert await files.find_many([]) == {}


async def test_an_id_is_taken_once(files: TortoiseFiles) -> None:
    await files.add(FULL)
    with pytest.raises(GatewayError) as caught:
        await files.add(replace(FULL, name="other"))
    assert caught.value.kind is ErrorKind.CONFLICT
    assert await files.find("f1") == FULL


async def test_a_change_writes_every_field_of_one_file(files: TortoiseFiles) -> None:
    await files.add(file("f1"))
    await files.add(file("f2"))
    assert await files.change(FULL)
    assert await files.find("f1") == FULL
    assert await files.find("f2") == file("f2")
    assert await names(files, "GRÖSSE*") == [FULL.name]


@pytest.mark.parametrize(
    ("field", "value"), [("name", "x" * 256), ("name", "a\x00"), ("data", {"a": "\x00"}), ("error", "\ud800")]
)
async def test_what_cannot_be_stored_is_refused_by_name(
    files: TortoiseFiles, field: str, value: object
) -> None:
    await files.add(FULL)
    with pytest.raises(GatewayError) as caught:
        await files.change(replace(FULL, **{field: value}))  # type: ignore[arg-type]
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, field)
    assert await files.find("f1") == FULL


async def test_pages_are_the_newest_first_with_the_count_of_all(files: TortoiseFiles) -> None:
    for number in range(5):
        status = FileStatus.COMPLETED if number % 2 else FileStatus.PENDING
        await files.add(file(f"f{number}", user_id=f"u{number % 2}", status=status, created_at=number // 2))
    page, total = await files.list(offset=1, limit=2)
    assert ([each.id for each in page], total) == (["f3", "f2"], 5)
    page, total = await files.list(user_id="u1")
    assert ([each.id for each in page], total) == (["f3", "f1"], 2)
    page, total = await files.list(status=FileStatus.PENDING, limit=1)
    assert ([each.id for each in page], total) == (["f4"], 3)
    assert await files.list(user_id="u1", status=FileStatus.PENDING) == ([], 0)
    assert await files.list(offset=9) == ([], 5)
    assert await files.list(limit=0) == ([], 5)


async def test_files_of_removed_users_are_listed(files: TortoiseFiles) -> None:
    users = TortoiseUsers()
    for user_id in ("u1", "u2"):
        await users.add(user(user_id), None)
    for number in range(4):
        await files.add(file(f"f{number}", user_id=f"u{number % 2 + 1}", created_at=number))
    assert await files.list(orphaned=True) == ([], 0)
    await users.remove("u2")
    page, total = await files.list(orphaned=True, limit=1)
    assert ([each.id for each in page], total) == (["f3"], 2)
    assert [each.id for each in (await files.list(orphaned=True, pattern="f1*"))[0]] == ["f1"]
    assert await files.list(orphaned=True, user_id="u1") == ([], 0)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("report.txt", ["Report.TXT"]),
        ("report", []),
        ("*.txt", ["Report.TXT", "a%b.txt", "axb.txt"]),
        ("a%b.*", ["a%b.txt"]),
        ("a?b.txt", ["a%b.txt", "axb.txt"]),
        ("a_b.txt", []),
        ("", ["ÄRGER\\.md", "Report.TXT", "a%b.txt", "axb.txt"]),
        ("***", ["ÄRGER\\.md", "Report.TXT", "a%b.txt", "axb.txt"]),
        ("ärger\\.MD", ["ÄRGER\\.md"]),
        ("?RGER*", ["ÄRGER\\.md"]),
        ("*\x00", []),
        ("*" * 70_000 + "b.txt", ["a%b.txt", "axb.txt"]),
    ],
)
async def test_patterns_match_whole_names_in_any_case(
    files: TortoiseFiles, pattern: str, expected: list[str]
) -> None:
    for number, name in enumerate(["Report.TXT", "a%b.txt", "axb.txt", "ÄRGER\\.md"]):
        await files.add(file(f"f{number}", name=name))
    assert await names(files, pattern) == sorted(expected)


async def test_all_ids_are_yielded_once(files: TortoiseFiles, database: Database) -> None:
    expected = [f"f{number:04}" for number in range(PAGE_SIZE + 1)]
    async with database.transaction():
        for file_id in reversed(expected):
            await files.add(file(file_id))
    assert [file_id async for file_id in files.ids()] == expected
    assert [key async for key in files.blob_keys()] == expected


async def test_the_key_of_bytes_is_the_id_where_none_was_stored(files: TortoiseFiles) -> None:
    for each in (file("old"), file("chosen", blob="chosen.attempt")):
        await files.add(each)
        assert await files.find(each.id) == each
    assert [key async for key in files.blob_keys()] == ["chosen.attempt", "old"]
    assert [file("old").blob_key, file_id_of("chosen.attempt"), file_id_of("old")] == ["old", "chosen", "old"]


async def test_a_removed_file_takes_all_that_was_its_own(files: TortoiseFiles, database: Database) -> None:
    collections = TortoiseCollections()
    space = SpaceRow(name="s", dimension=1, is_active=True)
    await space.save(force_create=True)
    for collection_id in ("c1", "c2"):
        await collections.add(collection(collection_id))
    for file_id in ("f1", "f2"):
        await files.add(file(file_id))
        await TortoiseJobs().put(job(file_id))
        await FileTextRow(file_id=file_id, staged=False, text="apple").save(force_create=True)
        passage = {"file_id": file_id, "number": 0, "start": 0}
        await PassageRow(**passage, staged=False, text=f"apple {file_id}").save(force_create=True)
        await PassageRow(**passage, staged=True, text="pear").save(force_create=True)
        await VectorBatchRow(file_id=file_id, space_id=space.id, staged=False, ids=b"1", vectors=b"2").save(
            force_create=True
        )
        for collection_id in ("c2", "c1"):
            await collections.link(link(collection_id, file_id))
    assert await files.collections_of("f1") == ["c2", "c1"]
    assert await files.remove("f1")
    assert not await files.remove("f1")
    assert await files.collections_of("f1") == []
    for table, left in ((FileTextRow, 1), (PassageRow, 2), (VectorBatchRow, 1), (LinkRow, 2)):
        assert await table.filter(file_id="f1").count() == 0
        assert await table.filter(file_id="f2").count() == left
    assert [each.file_id for each in await TortoiseJobs().list()] == ["f2"]
    if database.location.is_sqlite:
        for row in await CollectionRow.all():
            assert await indexed_texts(database, row.number) == ["apple f2"]
