"""What can be done with files, and by whom."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gatewayd.accounts.records import Actor, Role
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.embedder import BATCH_SIZE
from gatewayd.ingest.files import FileService
from gatewayd.ingest.records import File, FileStatus, ScopeKind, SearchScope
from gatewayd.ingest.upload import UploadRules
from tests.fakes.documents.ingest_services import Ingest, actor, ingesting
from tests.fakes.documents.memory_stores import HashEmbedder

OWNER, ADMIN, READER, WRITER, STRANGER = (
    actor(),
    actor("admin", Role.ADMIN),
    actor("reader"),
    actor("writer"),
    actor("stranger"),
)

Call = Callable[[FileService, Actor, str], Awaitable[object]]
READING: list[Call] = [FileService.get, FileService.text, FileService.content]
WRITING: list[Call] = [
    lambda files, who, file_id: files.rename(who, file_id, "b.txt"),
    lambda files, who, file_id: files.set_text(who, file_id, "more"),
    lambda files, who, file_id: files.set_data(who, file_id, {"k": 1}),
    FileService.retry,
    FileService.remove,
]


async def outcome(call: Awaitable[object]) -> str:
    try:
        await call
    except GatewayError as error:
        return str(error.kind)
    return "done"


@pytest.mark.parametrize("call", READING + WRITING)
async def test_access(ingest: Ingest, call: Call) -> None:
    is_reading = call in READING
    for who, reads, writes in (
        (STRANGER, "not_found", "not_found"),
        (READER, "done", "forbidden"),
        (WRITER, "done", "done"),
        (ADMIN, "done", "done"),
        (OWNER, "done", "done"),
    ):
        file = await ingest.completed("a.txt", "text")
        ingest.grants.granted = {
            ("reader", file.id, "read"),
            ("writer", file.id, "read"),
            ("writer", file.id, "write"),
        }
        assert await outcome(call(ingest.files, who, file.id)) == (reads if is_reading else writes)
    assert await outcome(call(ingest.files, OWNER, "nothing")) == "not_found"


async def test_lists_hold_what_is_yours(ingest: Ingest) -> None:
    await ingest.completed("a.txt", "text")
    await ingest.completed("b.pdf", "text", user_id="other")
    await ingest.completed("c.txt", "")

    async def names(who: Actor, **named: object) -> list[str]:
        found, total = await ingest.files.list(who, **named)  # type: ignore[arg-type]
        assert len(found) == total
        return sorted(file.name for file in found)

    assert await names(OWNER) == ["a.txt", "c.txt"]
    assert await names(ADMIN) == ["a.txt", "b.pdf", "c.txt"]
    assert await names(ADMIN, pattern="*.TXT") == ["a.txt", "c.txt"]
    assert await names(OWNER, status=FileStatus.FAILED) == ["c.txt"]
    assert await names(ADMIN, owner_id="other") == ["b.pdf"]
    assert await names(OWNER, owner_id="other") == ["a.txt", "c.txt"]


async def test_all_are_removed_a_few_at_a_time(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayd.ingest.files.REMOVAL_BATCH_SIZE", 2)
    for number in range(5):
        await ingest.completed(f"{number}.txt", f"text {number}")
    other = await ingest.completed("other.txt", "text", user_id="other")
    await ingest.files.remove_all(OWNER)
    found, total = await ingest.files.list(ADMIN)
    assert ([file.id for file in found], total) == ([other.id], 1)
    await ingest.files.remove_all(ADMIN)
    assert await ingest.files.list(ADMIN) == ([], 0)


async def test_administrators_are_bound_when_the_setting_says_so(ingest: Ingest) -> None:
    ingest.grants.bypass_admins = False
    file = await ingest.completed("a.txt", "text")
    for call in READING + WRITING:
        assert await outcome(call(ingest.files, ADMIN, file.id)) == "not_found"
    ingest.grants.granted = {("admin", file.id, "read")}
    assert await outcome(ingest.files.get(ADMIN, file.id)) == "done"
    assert await outcome(ingest.files.remove(ADMIN, file.id)) == "forbidden"
    assert await ingest.files.list(ADMIN) == ([], 0)
    assert await ingest.files.list(ADMIN, owner_id=OWNER.user_id) == ([], 0)


async def test_a_renamed_file_keeps_everything_else(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "text")
    renamed = await ingest.files.rename(OWNER, file.id, "x/b.txt")
    assert (renamed.name, renamed.text_hash) == ("b.txt", file.text_hash)
    assert await ingest.files.get(OWNER, file.id) == renamed
    with pytest.raises(GatewayError) as refused:
        await ingest.files.rename(OWNER, file.id, "")
    assert refused.value.param == "filename"


async def test_only_administrators_give_files_away(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "text")
    assert await outcome(ingest.files.give(OWNER, file.id, "zoe")) == "forbidden"
    given = await ingest.files.give(ADMIN, file.id, "zoe")
    assert (given.user_id, given.text_hash, given.status) == ("zoe", file.text_hash, file.status)
    assert await outcome(ingest.files.get(OWNER, file.id)) == "not_found"
    assert await outcome(ingest.files.give(ADMIN, "none", "zoe")) == "not_found"
    ingest.grants.bypass_admins = False
    assert await outcome(ingest.files.give(ADMIN, file.id, "ann")) == "not_found"


async def test_the_metadata_of_a_file_is_replaced(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "text")
    changed = await ingest.files.set_data(OWNER, file.id, {"k": [1]})
    assert (changed.data, changed.text_hash) == ({"k": [1]}, file.text_hash)
    assert await ingest.files.get(OWNER, file.id) == changed
    with pytest.raises(GatewayError) as refused:
        await ingest.files.set_data(OWNER, file.id, {"k": object()})
    assert refused.value.param == "metadata"


async def test_a_removed_file_is_gone_everywhere(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "text")
    await ingest.link("c", file.id)
    path = ingest.blobs.path(file.id)
    assert path.exists()
    await ingest.files.remove(OWNER, file.id)
    assert not path.exists()
    tables = ingest.library.tables
    assert (tables.files, tables.passages, tables.vectors, tables.links) == ({}, {}, {}, {})
    assert ingest.index.forgotten == [SearchScope(ScopeKind.FILE, file.id)]
    assert ingest.index.learned[-1] == (SearchScope(ScopeKind.COLLECTION, "c"), file.id)
    assert await outcome(ingest.files.remove(OWNER, file.id)) == "not_found"


async def test_a_failed_file_can_be_tried_again(ingest: Ingest) -> None:
    ingest.extractor.failures = [GatewayError(ErrorKind.INVALID_REQUEST, "no")]
    failed = await ingest.completed("a.txt", "text")
    assert failed.status is FileStatus.FAILED
    again = await ingest.files.retry(OWNER, failed.id)
    assert (again.status, again.error) == (FileStatus.PENDING, None)
    assert (await ingest.files.finished(failed.id, 10)).status is FileStatus.COMPLETED


async def test_a_stored_file_can_be_processed_later(ingest: Ingest) -> None:
    stored = await ingest.upload("a.txt", "text", process=False)
    assert await ingest.files.finished(stored.id, 10) == stored
    assert await ingest.files.text(OWNER, stored.id) == ""
    await ingest.files.retry(OWNER, stored.id)
    assert (await ingest.files.finished(stored.id, 10)).status is FileStatus.COMPLETED
    assert await ingest.files.text(OWNER, stored.id) == "text"


async def test_types_that_are_not_allowed_are_not_processed_later_either(tmp_path: Path) -> None:
    async with ingesting(tmp_path, rules=UploadRules(0, 0, frozenset({"txt"}))) as ingest:
        stored = await ingest.upload("a.exe", "text", process=False)
        assert await outcome(ingest.files.retry(OWNER, stored.id)) == "invalid_request"
        assert await ingest.files.get(OWNER, stored.id) == stored


async def test_a_completed_file_is_found_while_it_is_processed_again(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "old text")
    ingest.blobs.path(file.id).write_text("new text")
    ingest.extractor.failures = [GatewayError(ErrorKind.INVALID_REQUEST, "no")]
    await until_idle(ingest, await ingest.files.retry(OWNER, file.id))
    assert await ingest.files.get(OWNER, file.id) == file
    assert ingest.texts(file.id) == ["old text"]
    again = await ingest.files.retry(OWNER, file.id)
    assert again.status is FileStatus.COMPLETED
    assert await outcome(ingest.files.retry(OWNER, file.id)) == "conflict"
    assert await outcome(ingest.files.set_text(OWNER, file.id, "x")) == "conflict"
    await until_idle(ingest, file)
    assert ingest.texts(file.id) == ["new text"]
    assert (await ingest.files.get(OWNER, file.id)).text_hash != file.text_hash


async def until_idle(ingest: Ingest, file: File) -> None:
    async with asyncio.timeout(10):
        while await ingest.jobs.find(file.id) is not None:
            await asyncio.sleep(0)


async def test_a_text_can_be_replaced_at_once(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "old text")
    await ingest.link("c", file.id)
    long = " ".join(f"word{number}" for number in range(3000))
    changed = await ingest.files.set_text(OWNER, file.id, long)
    assert changed.status is FileStatus.COMPLETED
    assert changed.characters == len(long)
    assert changed.chunks == len(ingest.texts(file.id)) == await ingest.vectors(file.id) > 64
    assert await ingest.files.text(OWNER, file.id) == long
    assert (SearchScope(ScopeKind.COLLECTION, "c"), file.id) in ingest.index.learned


async def test_a_replaced_text_has_plain_letters(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "old text")
    changed = await ingest.files.set_text(OWNER, file.id, "The o\ufb03ce of \ufb01nance")
    assert await ingest.files.text(OWNER, file.id) == "The office of finance"
    assert ingest.texts(file.id) == ["The office of finance"]
    assert changed.characters == len("The office of finance")


async def test_vectors_of_a_replaced_text_are_those_of_its_passages(ingest: Ingest) -> None:
    embedder = HashEmbedder()
    file = await ingest.completed("a.txt", "old")
    long = " ".join(f"word{number}" for number in range(3000))
    await ingest.files.set_text(OWNER, file.id, long)
    tables = ingest.library.tables
    rows = tables.rows(file.id, staged=False)
    assert len(rows) > BATCH_SIZE
    for passage_id, row in rows:
        assert tables.vectors["test:hash:1", passage_id] == embedder._vector(row.passage.text)


async def test_a_text_that_cannot_be_embedded_changes_nothing(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "old text")
    assert isinstance(ingest.configured, HashEmbedder)
    ingest.configured.failures = [GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "down")]
    assert await outcome(ingest.files.set_text(OWNER, file.id, "new")) == "upstream_unreachable"
    assert await ingest.files.text(OWNER, file.id) == "old text"
    assert not await ingest.passages.is_staged(file.id)
    assert await outcome(ingest.files.set_text(OWNER, file.id, "new")) == "done"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty_content"),
        (" \n", "empty_content"),
        ("a\0", "invalid_request"),
        ("\ud800", "invalid_request"),
        ("x" * ((1 << 20) + 1), "too_large"),
    ],
)
async def test_texts_that_are_refused(ingest: Ingest, text: str, kind: str) -> None:
    file = await ingest.completed("a.txt", "old")
    assert await outcome(ingest.files.set_text(OWNER, file.id, text)) == kind
    assert await ingest.files.text(OWNER, file.id) == "old"


async def test_content_needs_its_bytes(ingest: Ingest) -> None:
    file = await ingest.completed("a.txt", "text")
    found, content = await ingest.files.content(OWNER, file.id)
    assert (found.id, [piece async for piece in content.read(1, 3)]) == (file.id, [b"ex"])
    path = await ingest.files.local_copy(OWNER, file.id)
    assert (content.path, path.read_text()) == (path, "text")
    path.unlink()
    assert await outcome(ingest.files.content(OWNER, file.id)) == "not_found"


async def test_changes_are_told_up_to_the_end(ingest: Ingest) -> None:
    file = await ingest.upload("a.txt", "text")
    seen = [each.status if each else None async for each in ingest.files.changes(OWNER, file.id)]
    assert seen == [FileStatus.PENDING, FileStatus.COMPLETED]
    seen = [each.status if each else None async for each in ingest.files.changes(OWNER, file.id)]
    assert seen == [FileStatus.COMPLETED]
    with pytest.raises(GatewayError):
        await anext(aiter(ingest.files.changes(STRANGER, file.id)))


async def test_a_file_that_goes_ends_its_changes(ingest: Ingest) -> None:
    file = await ingest.upload("a.txt", "text", process=False)
    changes = aiter(ingest.files.changes(OWNER, file.id))
    assert await anext(changes) == file
    await ingest.files.remove(OWNER, file.id)
    assert [each async for each in changes] == [None]


async def test_waiting_has_an_end(ingest: Ingest) -> None:
    await ingest.queue.close()
    file = await ingest.upload("a.txt", "text")
    assert await ingest.files.finished(file.id, 0.01) == file
    assert ingest.watch._waiting == {}
    assert await outcome(ingest.files.finished("nothing", 1)) == "not_found"
