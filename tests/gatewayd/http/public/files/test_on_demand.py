"""Tests for gatewayd.http.public.files.on_demand."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gatewayd.knowledge import process_now
from tests.fakes.documents.site import FILES, KNOWLEDGE, RETRIEVAL, DocumentsSite, serving_documents

TEXT = "The heron stands in the water."


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    async with serving_documents(tmp_path) as made:
        yield made


async def process(site: DocumentsSite, **body: Any) -> Any:
    return await site.ok("POST", f"{RETRIEVAL}/process/file", body=body)


async def files_in(site: DocumentsSite, collection_id: str) -> list[str]:
    shown = await site.ok("GET", f"{KNOWLEDGE}/{collection_id}")
    return [each["id"] for each in shown["files"]]


async def test_a_stored_file(site: DocumentsSite) -> None:
    file = await site.upload(TEXT.encode(), query="?process=false")
    assert await process(site, file_id=file["id"]) == {
        "status": True,
        "collection_name": f"file-{file['id']}",
        "filename": "a.txt",
        "content": TEXT,
    }


async def test_another_text(site: DocumentsSite) -> None:
    file = await site.processed(TEXT.encode())
    assert (await process(site, file_id=file["id"], content="new"))["content"] == "new"
    assert (await site.ok("GET", f"{FILES}/{file['id']}/data/content"))["content"] == "new"


async def test_into_a_collection(site: DocumentsSite) -> None:
    made, file = await site.collection(), await site.upload(TEXT.encode())
    answer = await process(site, file_id=file["id"], collection_name=made["id"])
    assert answer["collection_name"] == made["id"]
    assert await files_in(site, made["id"]) == [file["id"]]
    # A finished file is not read once more.
    read = len(site.services.extractor.names)
    await process(site, file_id=file["id"], collection_name=made["id"])
    assert len(site.services.extractor.names) == read


async def test_a_file_that_fails(site: DocumentsSite) -> None:
    file = await site.upload(b"", query="?process=false")
    status, answer = await site.call("POST", f"{RETRIEVAL}/process/file", site.user, {"file_id": file["id"]})
    assert (status, "the file is empty" in answer["detail"]) == (400, True)


async def test_a_file_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_now, "MAX_WAIT_SECONDS", 0.01)
    async with serving_documents(tmp_path, works=False) as site:
        file = await site.upload(TEXT.encode())
        path, body = f"{RETRIEVAL}/process/file", {"file_id": file["id"]}
        status, answer = await site.call("POST", path, site.user, body)
        assert (status, "still being processed" in answer["detail"]) == (504, True)


async def test_files_of_others(site: DocumentsSite) -> None:
    file = await site.processed(TEXT.encode(), site.other)
    for name in (file["id"], "nothing"):
        status, _ = await site.call("POST", f"{RETRIEVAL}/process/file", site.user, {"file_id": name})
        assert status == 404
    assert (await site.call("POST", f"{RETRIEVAL}/process/file", site.user, {}))[0] == 422


async def test_a_text(site: DocumentsSite) -> None:
    body = {"name": "note", "content": TEXT}
    answer = await site.ok("POST", f"{RETRIEVAL}/process/text", body=body)
    assert (answer["status"], answer["content"]) == (True, TEXT)
    asked = {"collection_name": answer["collection_name"], "query": "heron"}
    found = await site.ok("POST", f"{RETRIEVAL}/query/doc", body=asked)
    assert found["documents"] == [[TEXT]]
    assert (await site.ok("GET", f"{FILES}/{answer['file_id']}"))["filename"] == "note"


async def test_a_text_into_a_collection(site: DocumentsSite) -> None:
    made = await site.collection()
    body = {"name": "note", "content": TEXT, "collection_name": made["id"]}
    answer = await site.ok("POST", f"{RETRIEVAL}/process/text", body=body)
    assert await files_in(site, made["id"]) == [answer["file_id"]]
    status, _ = await site.call(
        "POST", f"{RETRIEVAL}/process/text", site.user, {**body, "collection_name": "x"}
    )
    assert status == 404


@pytest.mark.parametrize(("content", "status"), [("", 400), ("x" * 1_000_001, 413)])
async def test_odd_texts(site: DocumentsSite, content: str, status: int) -> None:
    body = {"name": "note", "content": content}
    assert (await site.call("POST", f"{RETRIEVAL}/process/text", site.user, body))[0] == status


async def test_a_batch(site: DocumentsSite) -> None:
    made, file = await site.collection(), await site.processed(TEXT.encode())
    body = {"files": [file, {"id": "nothing"}], "collection_name": made["id"]}
    answer = await site.ok("POST", f"{RETRIEVAL}/process/files/batch", body=body)
    assert answer["results"][0] == {"file_id": file["id"], "status": "completed"}
    assert answer["errors"] == [answer["results"][1]]
    assert answer["errors"][0]["status"] == "failed"
    assert await files_in(site, made["id"]) == [file["id"]]


async def test_taking_out(site: DocumentsSite) -> None:
    made, file = await site.collection(), await site.processed(TEXT.encode())
    await process(site, file_id=file["id"], collection_name=made["id"])
    body = {"collection_name": made["id"], "file_id": file["id"]}
    assert await site.ok("POST", f"{RETRIEVAL}/delete", site.admin, body) == {"status": True}
    assert await files_in(site, made["id"]) == []
    assert (await site.call("GET", f"{FILES}/{file['id']}", site.user))[0] == 200
    assert (await site.call("POST", f"{RETRIEVAL}/delete", site.admin, body))[0] == 404
