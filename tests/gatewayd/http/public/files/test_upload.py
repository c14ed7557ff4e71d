"""Tests for gatewayd.http.public.files.upload."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from aiohttp import FormData

from gatewayd.ingest.upload import UploadRules
from tests.fakes.documents.site import FILES, KNOWLEDGE, LIMIT, DocumentsSite, serving_documents
from tests.fakes.http.multipart_forms import BOUNDARY, FORM, field, file_part, form, part, upload_head, wired

DIGEST = sha256(b"hello").hexdigest()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    async with serving_documents(tmp_path) as made:
        yield made


@pytest.fixture
async def idle(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    """A site in which nothing is processed."""
    async with serving_documents(tmp_path, works=False) as made:
        yield made


async def session(site: DocumentsSite) -> str:
    return await site.services.accounts.session(site.user)


async def test_the_record(idle: DocumentsSite) -> None:
    file = await idle.upload(b"hello", metadata='{"language": "en"}')
    assert file == {
        "id": file["id"],
        "user_id": idle.user.id,
        "hash": None,
        "filename": "a.txt",
        "data": {"status": "pending"},
        "meta": {
            "name": "a.txt",
            "content_type": "text/plain",
            "size": 5,
            "file_hash": DIGEST,
            "data": {"language": "en"},
        },
        "created_at": file["created_at"],
        "updated_at": file["updated_at"],
        "status": True,
    }
    assert idle.stored() == [file["id"]]


@pytest.mark.parametrize("path", [FILES, f"{FILES}/"])
async def test_both_spellings(idle: DocumentsSite, path: str) -> None:
    client, headers = idle.site.client, {"Authorization": f"Bearer {await session(idle)}"}
    # As a script does it, with a form that the library makes.
    sent = FormData(quote_fields=False)
    sent.add_field("file", b"hello", filename="ä.txt")
    async with client.post(path, data=sent, headers=headers) as reply:
        assert reply.status == 200
        assert (await reply.json())["filename"] == "ä.txt"


async def test_in_the_foreground(site: DocumentsSite) -> None:
    done = await site.processed(b"some words")
    assert (done["data"], done["status"]) == ({"status": "completed"}, True)
    assert done["hash"] == sha256(b"some words").hexdigest()
    failed = await site.processed(b"")
    assert failed["data"]["status"] == "failed"
    assert failed["data"]["error"]


async def test_only_stored(site: DocumentsSite) -> None:
    file = await site.upload(b"hello", query="?process=false&process_in_background=false")
    assert file["data"] == {}
    assert "status" not in file
    assert await site.ok("GET", f"{FILES}/{file['id']}/process/status") == {"status": "pending"}


@pytest.mark.parametrize("order", ["before", "behind"])
async def test_metadata_places_the_file(site: DocumentsSite, order: str) -> None:
    collection = await site.collection()
    told = field("metadata", f'{{"knowledge_id": "{collection["id"]}", "file_hash": "v1"}}')
    parts = [told, file_part(b"words")] if order == "before" else [file_part(b"words"), told]
    status, file = await site.post_form(form(*parts), query="?process_in_background=false")
    assert (status, file["meta"]["file_hash"]) == (200, "v1")
    assert file["meta"]["data"] == {"knowledge_id": collection["id"], "file_hash": "v1"}
    shown = await site.ok("GET", f"{KNOWLEDGE}/{collection['id']}")
    assert [each["id"] for each in shown["files"]] == [file["id"]]


@pytest.mark.parametrize("order", ["before", "behind"])
@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ("[]", 400),
        ("{", 400),
        ('"x"', 400),
        ('{"a": "\\u0000"}', 400),
        ('{"knowledge_id": 5}', 400),
        ('{"file_hash": ["x"]}', 400),
        ('{"knowledge_id": "nothing"}', 404),
    ],
)
async def test_bad_metadata(idle: DocumentsSite, order: str, metadata: str, status: int) -> None:
    told = field("metadata", metadata)
    parts = [told, file_part(b"x")] if order == "before" else [file_part(b"x"), told]
    answered, body = await idle.post_form(form(*parts))
    assert (answered, idle.stored()) == (status, []), body


@pytest.mark.parametrize("metadata", ["", " ", "null", "{}"])
async def test_no_metadata(idle: DocumentsSite, metadata: str) -> None:
    status, file = await idle.post_form(form(field("metadata", metadata), file_part(b"x")))
    assert (status, file["meta"]["data"]) == (200, {})


async def test_a_collection_of_somebody_else(idle: DocumentsSite) -> None:
    grants = [{"principal_type": "user", "principal_id": "*", "permission": "read"}]
    collection = await idle.collection(idle.admin, access_grants=grants)
    told = field("metadata", f'{{"knowledge_id": "{collection["id"]}"}}')
    for parts in ([told, file_part(b"x")], [file_part(b"x"), told]):
        assert (await idle.post_form(form(*parts)))[0] == 403
    assert idle.stored() == []


@pytest.mark.parametrize(
    ("content", "status", "named"),
    [
        (form(file_part(b"x", "")), 400, "file name"),
        (form(file_part(b"x", "a" * 300)), 400, "file name"),
        (form(part('name="other"; filename="a"', b"x")), 422, "file"),
        (form(field("metadata", "{}")), 422, "file"),
        (form(file_part(b"x"))[:-10], 400, "form"),
        (form(file_part(b"x" * (LIMIT + 1))), 413, f"{LIMIT} bytes"),
    ],
)
async def test_refused(idle: DocumentsSite, content: bytes, status: int, named: str) -> None:
    answered, body = await idle.post_form(content)
    assert (answered, named in str(body["detail"]), idle.stored()) == (status, True, []), body


async def test_names(idle: DocumentsSite) -> None:
    assert (await idle.upload(b"x", name="../../etc/passwd"))["filename"] == "passwd"


@pytest.mark.parametrize("query", ["?process=perhaps", "?process_in_background=2"])
async def test_bad_switches(idle: DocumentsSite, query: str) -> None:
    assert (await idle.post_form(form(file_part(b"x")), query=query))[0] == 422


async def test_rules(tmp_path: Path) -> None:
    async with serving_documents(tmp_path, UploadRules(LIMIT, 1, frozenset({"txt"})), works=False) as site:
        status, body = await site.post_form(form(file_part(b"x", "a.exe")))
        assert (status, body["error"]["code"]) == (400, "file_type_not_allowed")
        await site.upload(b"x", name="a.exe", query="?process=false")
        status, body = await site.post_form(form(file_part(b"x")))
        assert (status, body["error"]["code"]) == (413, "too_many_files")
        # Administrators are not counted.
        for _ in range(2):
            await site.upload(b"x", site.admin)


async def test_the_permission(idle: DocumentsSite) -> None:
    await idle.services.accounts.permissions.set_defaults({"chat": {"file_upload": False}}, by="test")
    status, body = await idle.post_form(form(file_part(b"x")))
    assert (status, "chat.file_upload" in body["detail"]) == (403, True)
    async with wired(idle.site.client) as wire:
        await wire.send(upload_head(f"{FILES}/", 100, await session(idle), "Expect: 100-continue"))
        # The client is not told to send its file first.
        assert (await wire.head()).startswith("HTTP/1.1 403 ")
    await idle.upload(b"x", idle.admin)


async def test_a_client_that_waits_to_be_told(idle: DocumentsSite) -> None:
    body = form(file_part(b"hello"))
    async with wired(idle.site.client) as wire:
        head = upload_head(
            f"{FILES}/", len(body), await session(idle), "Expect: 100-continue", "Connection: close"
        )
        await wire.send(head)
        assert await wire.head() == "HTTP/1.1 100 Continue\r\n\r\n"
        await wire.send(body)
        assert (await wire.head()).startswith("HTTP/1.1 200 ")


async def test_too_large_by_declaration(idle: DocumentsSite) -> None:
    async with wired(idle.site.client) as wire:
        await wire.send(upload_head(f"{FILES}/", 10**9, await session(idle), "Expect: 100-continue"))
        assert (await wire.head()).startswith("HTTP/1.1 413 ")


async def test_a_client_that_leaves_leaves_nothing(idle: DocumentsSite, monkeypatch: Any) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    blobs = idle.services.stores.blobs
    receive = blobs.receive

    async def watched(file_id: str, stream: AsyncIterator[bytes], limit: int) -> Any:
        begun.set()
        try:
            return await receive(file_id, stream, limit)
        finally:
            ended.set()

    monkeypatch.setattr(blobs, "receive", watched)
    body = form(file_part(b"x" * 500_000))
    async with wired(idle.site.client) as wire:
        await wire.send(upload_head(f"{FILES}/", len(body), await session(idle)) + body[:-100])
        await begun.wait()
    await ended.wait()
    assert idle.stored() == []
    assert await idle.ok("GET", f"{FILES}/count") == 0


async def test_once_the_body_is_there_the_file_is_kept(idle: DocumentsSite, monkeypatch: Any) -> None:
    received, left, kept = asyncio.Event(), asyncio.Event(), asyncio.Event()
    intake_add = idle.services.stores.files.add

    async def slow(file: Any) -> None:
        received.set()
        await left.wait()
        await intake_add(file)
        kept.set()

    monkeypatch.setattr(idle.services.stores.files, "add", slow)
    body = form(file_part(b"hello"))
    async with wired(idle.site.client) as wire:
        await wire.send(upload_head(f"{FILES}/", len(body), await session(idle)) + body)
        await received.wait()
    left.set()
    await kept.wait()
    assert await idle.ok("GET", f"{FILES}/count") == 1


async def test_repeated_key_stores_a_file_once_and_refuses_another_upload(idle: DocumentsSite) -> None:
    async def send(content: bytes, key: str, query: str = "", boundary: str = BOUNDARY) -> tuple[int, Any]:
        # Clients make a new boundary for each attempt.
        body = form(file_part(content)).replace(BOUNDARY.encode(), boundary.encode())
        headers = {"Idempotency-Key": key, "Content-Type": FORM.replace(BOUNDARY, boundary)}
        return await idle.post_form(body, query=query, headers=headers)

    status, made = await send(b"hello", "k")
    assert (status, await send(b"hello", "k", boundary="another")) == (200, (200, made))
    for refused in (await send(b"hellO", "k"), await send(b"hello", "k", "?process=false")):
        assert (refused[0], refused[1]["error"]["code"]) == (422, "idempotency_key_reused")
    assert (await send(b"hello", ""))[0] == 400
    assert idle.stored() == [made["id"]]
    assert (await send(b"hello", "k2"))[1]["id"] != made["id"]


async def test_failed_upload_may_be_repeated_with_its_key(idle: DocumentsSite) -> None:
    head = {"Idempotency-Key": "k"}
    status, _ = await idle.post_form(form(field("metadata", "[1]"), file_part(b"hello")), headers=head)
    assert status == 400
    assert (await idle.post_form(form(file_part(b"hello")), headers=head))[0] == 200
