"""Tests for gatewayd.http.public.files.routes."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from gatewayd.http.openapi import describe_routes
from gatewayd.http.public.files.owners import OwnerFinder
from tests.fakes.accounts.services import Accounts, check_access
from tests.fakes.documents.site import FILES, DocumentsSite, serving_documents
from tests.fakes.http.public_app import bearer
from tests.fakes.http.samples_documents import BYTES, DOCUMENT_SAMPLES, UPLOAD

TEXT = b"The heron stands in the water."
READ = [{"principal_type": "user", "principal_id": "*", "permission": "read"}]
WRITE = [{"principal_type": "user", "principal_id": "*", "permission": "write"}]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    async with serving_documents(tmp_path) as made:
        yield made


async def shared(site: DocumentsSite, grants: Any) -> str:
    """Return a file of the user's that others see through a collection."""
    file_id = (await site.processed(TEXT))["id"]
    collection = await site.collection(site.admin)
    path = f"/api/v1/knowledge/{collection['id']}"
    await site.ok("POST", f"{path}/access/update", site.admin, {"access_grants": grants})
    await site.ok("POST", f"{path}/file/add", site.admin, {"file_id": file_id})
    return str(file_id)


async def test_access(site: DocumentsSite) -> None:
    rows = [
        replace(row, path=row.path.replace("{name}", "a").replace("{directory_id}", "d"))
        for row in site.services.rows()
    ]
    assert await check_access(site.site, rows) == 42


async def test_lists(site: DocumentsSite) -> None:
    names = [(await site.processed(f"{name}".encode(), name=name))["filename"] for name in ("a.txt", "b.md")]
    mine = await site.ok("GET", f"{FILES}/")
    assert sorted(file["filename"] for file in mine["items"]) == names
    assert mine["total"] == 2
    assert all("content" not in file["data"] for file in mine["items"])
    assert await site.ok("GET", FILES, site.other) == {"items": [], "total": 0}
    assert (await site.ok("GET", FILES, site.admin))["total"] == 2
    assert (await site.ok("GET", f"{FILES}?page=2"))["items"] == []
    assert [await site.ok("GET", f"{FILES}/count", who) for who in (site.user, site.other)] == [2, 0]
    assert (await site.call("GET", f"{FILES}?page=0", site.user))[0] == 422


async def test_search(site: DocumentsSite) -> None:
    for name in ("a.txt", "b.md", "ab.md"):
        await site.upload(name.encode(), name=name)
    found = await site.ok("GET", f"{FILES}/search?filename=*.md")
    assert sorted(file["filename"] for file in found) == ["ab.md", "b.md"]
    assert len(await site.ok("GET", f"{FILES}/search?filename=*.md&skip=1&limit=1")) == 1
    assert (await site.call("GET", f"{FILES}/search?filename=*.pdf", site.user))[0] == 404
    assert (await site.call("GET", f"{FILES}/search?filename=*.md", site.other))[0] == 404
    assert (await site.call("GET", f"{FILES}/search", site.user))[0] == 422


async def test_one_file(site: DocumentsSite) -> None:
    file = await site.processed(TEXT)
    shown = await site.ok("GET", f"{FILES}/{file['id']}")
    assert shown["data"] == {"status": "completed", "content": TEXT.decode()}
    assert shown["meta"] == file["meta"]
    assert await site.ok("GET", f"{FILES}/{file['id']}/data/content") == {"content": TEXT.decode()}
    assert await site.ok("GET", f"{FILES}/{file['id']}/process/status") == {"status": "completed"}


async def test_a_failed_file(site: DocumentsSite) -> None:
    file = await site.processed(b"")
    status = await site.ok("GET", f"{FILES}/{file['id']}/process/status")
    assert (status["status"], "empty" in status["error"]) == ("failed", True)
    assert await site.ok("GET", f"{FILES}/{file['id']}/data/content") == {"content": ""}


ROWS = [
    ("GET", "", None),
    ("GET", "/process/status", None),
    ("GET", "/process/status?stream=true", None),
    ("POST", "/process", None),
    ("GET", "/data/content", None),
    ("POST", "/data/content/update", {"content": "new"}),
    ("GET", "/content", None),
    ("POST", "/rename", {"filename": "new.txt"}),
    ("DELETE", "", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ROWS)
async def test_files_of_others_do_not_exist(site: DocumentsSite, method: str, path: str, body: Any) -> None:
    file = await site.processed(TEXT)
    for who, name in ((site.other, file["id"]), (site.user, "nothing"), (site.admin, "nothing")):
        status, answer = await site.call(method, f"{FILES}/{name}{path}", who, body)
        assert (status, name in answer["detail"]) == (404, True)


@pytest.mark.parametrize(("method", "path", "body"), ROWS)
async def test_readers_may_not_write(site: DocumentsSite, method: str, path: str, body: Any) -> None:
    file_id = await shared(site, READ)
    if path in {"/content", "/process/status?stream=true"}:
        headers = bearer(await site.services.accounts.session(site.other))
        async with site.site.client.get(f"{FILES}/{file_id}{path}", headers=headers) as reply:
            status = reply.status
    else:
        status, _ = await site.call(method, f"{FILES}/{file_id}{path}", site.other, body)
    assert status == (200 if method == "GET" else 403)


async def test_another_text(site: DocumentsSite) -> None:
    file = await site.processed(TEXT)
    path = f"{FILES}/{file['id']}/data/content"
    assert await site.ok("POST", f"{path}/update", body={"content": "About owls."}) == {
        "content": "About owls."
    }
    assert await site.ok("GET", path) == {"content": "About owls."}
    found = await site.ok(
        "POST",
        "/api/v1/retrieval/query/doc",
        body={"collection_name": f"file-{file['id']}", "query": "owls"},
    )
    assert found["documents"] == [["About owls."]]
    assert (await site.call("POST", f"{path}/update", site.user, {"content": " "}))[0] == 400
    assert (await site.call("POST", f"{path}/update", site.user, {"content": "a\0"}))[0] == 400
    assert (await site.call("POST", f"{path}/update", site.user, {}))[0] == 422


async def test_names(site: DocumentsSite) -> None:
    file = await site.processed(TEXT)
    path = f"{FILES}/{file['id']}/rename"
    assert (await site.ok("POST", path, body={"filename": "b.txt"}))["meta"]["name"] == "b.txt"
    assert (await site.call("POST", path, site.user, {"filename": " "}))[0] == 400
    assert (await site.call("POST", path, site.user, {}))[0] == 422


async def test_another_attempt(site: DocumentsSite) -> None:
    file = await site.upload(TEXT, query="?process=false")
    again = await site.ok("POST", f"{FILES}/{file['id']}/process")
    assert again["data"] == {"status": "pending"}
    done = await site.services.files.finished(file["id"], 10)
    assert done.status.value == "completed"


async def test_content(site: DocumentsSite) -> None:
    file = await site.processed(TEXT, name="ä.txt")
    headers = bearer(await site.services.accounts.session(site.user))
    client = site.site.client
    for path in ("content", "content/html", "content/any name.txt", "content/"):
        async with client.get(f"{FILES}/{file['id']}/{path}", headers=headers) as reply:
            assert (reply.status, await reply.read()) == (200, TEXT)
            assert reply.headers["Content-Type"] == "text/plain"
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            assert "Content-Disposition" not in reply.headers
    part = {**headers, "Range": "bytes=4-8"}
    async with client.get(f"{FILES}/{file['id']}/content?attachment=true", headers=part) as reply:
        assert (reply.status, await reply.read()) == (206, b"heron")
        assert "filename*=UTF-8''%C3%A4.txt" in reply.headers["Content-Disposition"]
    for path in site.services.folder.rglob(file["id"]):
        path.unlink()
    assert (await site.call("GET", f"{FILES}/{file['id']}/content", site.user))[0] == 404


async def test_deletion(site: DocumentsSite) -> None:
    file = await site.processed(TEXT)
    gone = {"message": "File deleted successfully"}
    assert await site.call("DELETE", f"{FILES}/{file['id']}", site.user) == (200, gone)
    assert (await site.call("DELETE", f"{FILES}/{file['id']}", site.user))[0] == 404
    assert site.stored() == []


async def test_deletion_of_all(site: DocumentsSite) -> None:
    for who in (site.user, site.other, site.admin):
        await site.upload(TEXT, who)
    assert (await site.call("DELETE", f"{FILES}/all", site.admin))[0] == 200
    assert await site.ok("GET", f"{FILES}/count", site.admin) == 0
    assert site.stored() == []


async def test_the_rows_are_described(site: DocumentsSite) -> None:
    document = describe_routes(site.services.rows(), title="t", version="1")
    validate(document)
    described = {(method.upper(), path) for path, rows in document["paths"].items() for method in rows}
    assert described == {UPLOAD} | DOCUMENT_SAMPLES.keys() | BYTES.keys()


async def test_owners() -> None:
    accounts = Accounts()
    ann = await accounts.add_user("ann")
    shown = await OwnerFinder(accounts.users).shown([ann.id, "gone", ann.id])
    assert shown == {
        ann.id: {"id": ann.id, "name": "ann", "role": "user", "email": "ann@example.org"},
        "gone": None,
    }
