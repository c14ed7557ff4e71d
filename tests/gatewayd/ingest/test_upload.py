"""Storage of new files, and their names."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.ingest.records import File, FileStatus
from gatewayd.ingest.upload import NewFile, UploadRules, UploadService, clean_name, file_extension
from tests.fakes.documents.ingest_services import NOON, Ingest, ingesting, stream

TEXT_DIGEST = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
"""The SHA-256 of `text`."""


def upload(name: str = "a.txt", **named: Any) -> NewFile:
    fields: dict[str, Any] = {"content_type": "text/plain", "user_id": "owner", "data": {}} | named
    return NewFile(name=name, **fields)


def blobs_of(ingest: Ingest) -> list[Path]:
    return [path for path in ingest.folder.rglob("*") if path.is_file()]


async def test_a_file_is_kept_with_its_job(ingest: Ingest) -> None:
    await ingest.queue.close()
    file = await ingest.intake.keep(upload("dir/a.txt", data={"k": 1}), stream(b"te", b"xt"))
    assert file == File(
        id=file.id,
        user_id="owner",
        name="a.txt",
        size=4,
        digest=TEXT_DIGEST,
        checksum=TEXT_DIGEST,
        content_type="text/plain",
        status=FileStatus.PENDING,
        data={"k": 1},
        updated_at=NOON,
        created_at=NOON,
    )
    assert await ingest.files_store.find(file.id) == file
    assert [job.file_id for job in await ingest.jobs.list()] == [file.id]
    assert ingest.blobs.path(file.id).read_bytes() == b"text"


async def test_a_file_can_be_stored_only(ingest: Ingest) -> None:
    file = await ingest.intake.keep(upload(process=False, checksum="mine"), stream(b"text"))
    assert (file.status, file.checksum, file.digest) == (FileStatus.STORED, "mine", TEXT_DIGEST)
    assert await ingest.jobs.list() == []


async def test_what_else_is_done_is_done_in_the_transaction(ingest: Ingest) -> None:
    async def link(file: File) -> None:
        assert file.id in ingest.library.tables.files
        await ingest.link("c", file.id)

    async def refuse(file: File) -> None:
        await link(file)
        raise invalid("cannot link it")

    kept = await ingest.intake.keep(upload(), stream(b"text"), link)
    with pytest.raises(GatewayError, match="cannot link it"):
        await ingest.intake.keep(upload(), stream(b"text"), refuse)
    assert set(ingest.library.tables.links) == {("c", kept.id)}
    assert set(ingest.library.tables.files) == {kept.id}
    assert blobs_of(ingest) == [ingest.blobs.path(kept.id)]


async def test_a_client_that_leaves_leaves_nothing(ingest: Ingest) -> None:
    begun = asyncio.Event()

    async def stalled() -> AsyncIterator[bytes]:
        yield b"te"
        begun.set()
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        receiving = group.create_task(ingest.intake.keep(upload(), stalled()))
        await begun.wait()
        receiving.cancel()
    assert receiving.cancelled()
    assert (ingest.library.tables.files, blobs_of(ingest)) == ({}, [])


async def test_a_client_that_leaves_after_the_commit_has_a_file(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ingest.queue.close()
    plain = ingest.intake._add

    async def committed(*args: Any) -> None:
        await plain(*args)
        raise asyncio.CancelledError

    monkeypatch.setattr(ingest.intake, "_add", committed)
    with pytest.raises(asyncio.CancelledError):
        await ingest.intake.keep(upload(), stream(b"text"))
    [file_id] = ingest.library.tables.files
    assert blobs_of(ingest) == [ingest.blobs.path(file_id)]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"name": "a.exe"}, "file"),
        ({"name": "README"}, "file"),
        ({"name": ""}, "file"),
        ({"checksum": ""}, "file_hash"),
        ({"checksum": "x" * 256}, "file_hash"),
    ],
)
async def test_what_is_refused_is_not_read(tmp_path: Path, fields: dict[str, Any], param: str) -> None:
    async def unread() -> AsyncIterator[bytes]:
        pytest.fail("the stream was read")
        yield b""

    rules = UploadRules(10, 0, frozenset({"txt"}))
    async with ingesting(tmp_path, rules=rules) as ingest:
        with pytest.raises(GatewayError) as refused:
            await ingest.intake.keep(upload(**fields), unread())
        assert (refused.value.kind, refused.value.param) == (ErrorKind.INVALID_REQUEST, param)
        assert (await ingest.intake.keep(upload("a.exe", process=False), stream(b"MZ"))).name == "a.exe"
        assert (await ingest.intake.keep(upload("A.TXT"), stream(b"text"))).name == "A.TXT"
        with pytest.raises(GatewayError) as large:
            await ingest.intake.keep(upload(), stream(b"text" * 3))
        assert large.value.kind is ErrorKind.TOO_LARGE


async def test_files_are_counted_by_user(tmp_path: Path) -> None:
    async with ingesting(tmp_path, rules=UploadRules(0, 2, frozenset())) as ingest:

        async def send(**named: Any) -> str:
            try:
                await ingest.intake.keep(upload(**named), stream(b"text"))
            except GatewayError as error:
                return f"{error.kind} {error.code}"
            return "kept"

        together = await asyncio.gather(*[send() for _ in range(5)])
        assert sorted(together) == ["kept"] * 2 + ["too_large too_many_files"] * 3
        assert await send() == "too_large too_many_files"
        assert await send(is_unlimited=True) == "kept"
        assert await send(user_id="other") == "kept"
        assert len(blobs_of(ingest)) == 4


async def test_a_content_type_that_is_too_long_is_left_out(ingest: Ingest) -> None:
    file = await ingest.intake.keep(upload(content_type="x" * 300), stream(b"text"))
    assert file.content_type is None


async def test_an_id_that_was_chosen_is_kept_and_used_once(ingest: Ingest) -> None:
    file = await ingest.intake.keep(upload(id="my-id_1"), stream(b"text"))
    assert file.id == "my-id_1"
    with pytest.raises(GatewayError) as taken:
        await ingest.intake.keep(upload(id="my-id_1"), stream(b"other"))
    assert (taken.value.kind, taken.value.param) == (ErrorKind.CONFLICT, "id")
    assert ingest.blobs.path(file.blob_key).read_bytes() == b"text"
    for bad in ("", "a/b", "..", "x" * 65, "\u00e9"):
        with pytest.raises(GatewayError) as refused:
            await ingest.intake.keep(upload(id=bad), stream(b"text"))
        assert (refused.value.kind, refused.value.param) == (ErrorKind.INVALID_REQUEST, "id")


async def test_two_at_once_do_not_share_an_id(ingest: Ingest) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        begun.set()
        await go_on.wait()
        yield b"text"

    first = asyncio.create_task(ingest.intake.keep(upload(id="mine"), slow()))
    await begun.wait()
    with pytest.raises(GatewayError) as taken:
        await ingest.intake.keep(upload(id="mine"), stream(b"other"))
    assert taken.value.kind is ErrorKind.CONFLICT
    go_on.set()
    assert ingest.blobs.path((await first).blob_key).read_bytes() == b"text"


async def test_two_nodes_that_store_one_chosen_id_keep_the_bytes_of_the_row(ingest: Ingest) -> None:
    nodes = [UploadService(ingest.stores, ingest.rules, ingest.queue.wake, ingest.clock) for _ in range(2)]
    meeting = asyncio.Barrier(2)

    async def send(node: UploadService, text: bytes) -> File | GatewayError:
        async def body() -> AsyncIterator[bytes]:
            yield text[:2]
            await meeting.wait()
            yield text[2:]

        try:
            return await node.keep(upload(id="mine"), body())
        except GatewayError as error:
            return error

    async with asyncio.timeout(10):
        ends = await asyncio.gather(send(nodes[0], b"of the first"), send(nodes[1], b"of the other"))
    [kept] = [end for end in ends if isinstance(end, File)]
    [lost] = [end for end in ends if isinstance(end, GatewayError)]
    assert lost.kind is ErrorKind.CONFLICT
    stored = await ingest.files_store.find("mine")
    assert stored is not None
    assert stored.digest == kept.digest
    [path] = blobs_of(ingest)
    assert path == ingest.blobs.path(stored.blob_key)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == stored.digest
    assert stored.blob_key != stored.id


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("a.txt", "a.txt"),
        ("../../etc/passwd", "passwd"),
        ("C:\\docs\\guide.pdf", "guide.pdf"),
        (" e\u0301t\u00e9 .md ", "\u00e9t\u00e9 .md"),
        ("x" * 255, "x" * 255),
    ],
)
def test_the_last_component_counts(name: str, cleaned: str) -> None:
    assert clean_name(name) == cleaned


@pytest.mark.parametrize(
    "name", ["", "dir/", "..", ".", " ", "a\0b", "a\nb", "\ud800", "x" * 256, "x" * 4000]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(GatewayError) as refused:
        clean_name(name)
    assert (refused.value.kind, refused.value.param) == (ErrorKind.INVALID_REQUEST, "file")


@pytest.mark.parametrize(
    ("name", "found"), [("a.PDF", "pdf"), ("a.tar.gz", "gz"), ("README", ""), ("a.", "")]
)
def test_extensions(name: str, found: str) -> None:
    assert file_extension(name) == found
