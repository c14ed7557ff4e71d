"""Tests for gatewayd.http.public.knowledge.routes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.documents.site import KNOWLEDGE, DocumentsSite, serving_documents

TEXT = b"The heron stands in the water."
EVERYBODY = {"principal_type": "user", "principal_id": "*"}
READ, WRITE = {**EVERYBODY, "permission": "read"}, {**EVERYBODY, "permission": "write"}
KEYS = {"id", "user_id", "name", "description", "meta", "access_grants", "created_at", "updated_at"}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    async with serving_documents(tmp_path) as made:
        yield made


async def share(site: DocumentsSite, collection: Any, *grants: Any) -> None:
    path = f"{KNOWLEDGE}/{collection['id']}/access/update"
    await site.ok("POST", path, site.admin, {"access_grants": grants})


async def add(site: DocumentsSite, collection: Any, file_id: str, **more: Any) -> Any:
    return await site.ok(
        "POST", f"{KNOWLEDGE}/{collection['id']}/file/add", body={"file_id": file_id, **more}
    )


async def test_a_new_collection(site: DocumentsSite) -> None:
    made = await site.collection(description="d", meta={"k": 1}, unknown=1)
    assert set(made) == KEYS
    assert (made["name"], made["description"], made["meta"], made["access_grants"]) == (
        "papers",
        "d",
        {"k": 1},
        [],
    )
    shown = await site.ok("GET", f"{KNOWLEDGE}/{made['id']}")
    assert shown == {**made, "files": [], "file_count": 0, "write_access": True}


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 422), ({"name": " "}, 400), ({"name": 5}, 422), ({"name": "a", "access_grants": 5}, 400)],
)
async def test_bad_collections(site: DocumentsSite, body: Any, status: int) -> None:
    assert (await site.call("POST", f"{KNOWLEDGE}/create", site.user, body))[0] == status


async def test_the_permission(site: DocumentsSite) -> None:
    await site.services.accounts.permissions.set_defaults({"workspace": {"knowledge": False}}, by="test")
    status, answer = await site.call("POST", f"{KNOWLEDGE}/create", site.user, {"name": "a"})
    assert (status, "workspace.knowledge" in answer["detail"]) == (403, True)
    await site.collection(site.admin)


@pytest.mark.parametrize(
    ("form", "grants"),
    [
        ({"access_grants": [READ]}, [("user", "*", "read")]),
        ({"access_control": None}, [("user", "*", "read")]),
        ({"access_control": {}}, []),
        ({"access_control": {"read": {"group_ids": ["g"]}}}, [("group", "g", "read")]),
        ({"access_grants": [], "access_control": None}, []),
        ({}, []),
    ],
)
async def test_access_lists(site: DocumentsSite, form: Any, grants: Any) -> None:
    made = await site.collection(site.admin, **form)
    shown = [
        (each["principal_type"], each["principal_id"], each["permission"]) for each in made["access_grants"]
    ]
    assert shown == grants
    assert all(
        (each["resource_type"], each["resource_id"]) == ("knowledge", made["id"])
        for each in made["access_grants"]
    )


async def test_grants_that_may_not_be_given_are_left_out(site: DocumentsSite) -> None:
    assert (await site.collection(access_grants=[READ]))["access_grants"] == []


async def test_lists(site: DocumentsSite) -> None:
    mine, theirs = await site.collection(), await site.collection(site.admin, name="manuals")
    listed = await site.ok("GET", f"{KNOWLEDGE}/")
    assert listed["total"] == 1
    assert listed["items"] == [
        {
            **mine,
            "user": {"id": site.user.id, "name": "user", "role": "user", "email": "user@example.org"},
            "file_count": 0,
            "write_access": True,
        }
    ]
    assert (await site.ok("GET", KNOWLEDGE, site.admin))["total"] == 2
    await share(site, theirs, READ)
    rights = {each["id"]: each["write_access"] for each in await site.ok("GET", f"{KNOWLEDGE}/list")}
    assert rights == {mine["id"]: True, theirs["id"]: False}
    found = await site.ok("GET", f"{KNOWLEDGE}/search?query=MANUAL")
    assert [each["id"] for each in found["items"]] == [theirs["id"]]
    assert (await site.ok("GET", f"{KNOWLEDGE}/?page=2"))["items"] == []
    assert (await site.call("GET", f"{KNOWLEDGE}/?page=x", site.user))[0] == 422


async def test_changes(site: DocumentsSite) -> None:
    made = await site.collection(meta={"k": 1})
    path = f"{KNOWLEDGE}/{made['id']}"
    changed = await site.ok("POST", f"{path}/update", body={"name": "books", "description": "x"})
    assert (changed["name"], changed["description"], changed["meta"]) == ("books", "x", {"k": 1})
    assert changed["files"] == []
    for body in ({}, {"access_grants": "x"}):
        assert (await site.call("POST", f"{path}/access/update", site.user, body))[0] in {400, 422}
    assert await site.call("DELETE", f"{path}/delete", site.user) == (200, True)
    assert (await site.call("DELETE", f"{path}/delete", site.user))[0] == 404


WRITES = [
    ("POST", "/update", {"name": "x"}),
    ("POST", "/access/update", {"access_grants": []}),
    ("POST", "/file/add", {"file_id": "f"}),
    ("POST", "/file/update", {"file_id": "f"}),
    ("POST", "/file/remove", {"file_id": "f"}),
    ("POST", "/files/batch/add", [{"file_id": "f"}]),
    ("POST", "/reset", None),
    ("DELETE", "/delete", None),
]
READS = [("GET", "", None), ("GET", "/files/pending", None)]


@pytest.mark.parametrize(("method", "path", "body"), WRITES + READS)
async def test_who_may_what(site: DocumentsSite, method: str, path: str, body: Any) -> None:
    made = await site.collection(site.admin)
    assert (await site.call(method, f"{KNOWLEDGE}/{made['id']}{path}", site.user, body))[0] == 404
    assert (await site.call(method, f"{KNOWLEDGE}/nothing{path}", site.admin, body))[0] == 404
    await share(site, made, READ)
    expected = 403 if (method, path, body) in WRITES else 200
    assert (await site.call(method, f"{KNOWLEDGE}/{made['id']}{path}", site.user, body))[0] == expected


async def test_a_file_comes_in(site: DocumentsSite) -> None:
    made, file = await site.collection(), await site.processed(TEXT)
    for _ in range(2):
        # Adding it again changes nothing.
        added = await add(site, made, file["id"])
        assert added["files"] == [
            {name: file[name] for name in ("id", "hash", "meta", "created_at", "updated_at")}
        ]
        assert added["write_access"] is True
    short = await site.ok("GET", f"{KNOWLEDGE}/{made['id']}?files=false")
    assert (short["files"], short["file_count"]) == (None, 1)
    assert (await site.ok("GET", f"{KNOWLEDGE}/"))["items"][0]["file_count"] == 1


async def test_files_that_cannot_come_in(site: DocumentsSite) -> None:
    made = await site.collection()
    path = f"{KNOWLEDGE}/{made['id']}/file/add"
    empty = (await site.processed(b""))["id"]
    stored = (await site.upload(TEXT, query="?process=false"))["id"]
    theirs = (await site.processed(TEXT, site.other))["id"]
    for file_id, status, words in (
        (empty, 400, "empty"),
        (stored, 400, "empty"),
        (theirs, 404, theirs),
        ("x", 404, "x"),
    ):
        answered, body = await site.call("POST", path, site.user, {"file_id": file_id})
        assert (answered, words in body["detail"]) == (status, True), body
    assert (await site.call("POST", path, site.user, {}))[0] == 422
    status, body = await site.call("POST", path, site.user, {"file_id": "x", "wait": 301})
    assert (status, body["detail"][0]["loc"]) == (422, ["body", "wait"])


async def test_the_same_text_comes_in_once(site: DocumentsSite) -> None:
    made = await site.collection()
    first, second = (await site.processed(TEXT))["id"], (await site.processed(TEXT))["id"]
    await add(site, made, first)
    path = f"{KNOWLEDGE}/{made['id']}/file/add"
    status, body = await site.call("POST", path, site.user, {"file_id": second})
    assert (status, body["error"]["code"]) == (400, "duplicate_content")
    assert "Duplicate content" in body["detail"]
    # The file itself stays as it was.
    assert (await site.ok("GET", f"/api/v1/files/{second}"))["data"]["status"] == "completed"


@pytest.mark.parametrize("place", ["body", "query"])
async def test_waiting(tmp_path: Path, place: str) -> None:
    async with serving_documents(tmp_path, works=False) as site:
        made, file = await site.collection(), await site.upload(TEXT)
        path, body = f"{KNOWLEDGE}/{made['id']}/file/add", {"file_id": file["id"]}
        status, answer = await site.call("POST", path, site.user, body)
        assert (status, "empty" in answer["detail"]) == (400, True)
        assert [each["id"] for each in await site.ok("GET", f"{KNOWLEDGE}/{made['id']}/files/pending")] == []
        site.services.queue.start()
        sent = (path, {**body, "wait": 30}) if place == "body" else (f"{path}?wait=30", body)
        assert len((await site.ok("POST", sent[0], body=sent[1]))["files"]) == 1


async def test_pending_files(tmp_path: Path) -> None:
    async with serving_documents(tmp_path, works=False) as site:
        made = await site.collection()
        file = await site.upload(TEXT, metadata=f'{{"knowledge_id": "{made["id"]}"}}')
        (pending,) = await site.ok("GET", f"{KNOWLEDGE}/{made['id']}/files/pending")
        assert (pending["id"], pending["user"]["id"]) == (file["id"], site.user.id)
        assert (await site.ok("GET", f"{KNOWLEDGE}/{made['id']}"))["files"] == []


async def test_many_files(site: DocumentsSite) -> None:
    made = await site.collection()
    known = (await site.processed(b"known"))["id"]
    await add(site, made, known)
    new, empty = (await site.processed(b"new"))["id"], (await site.processed(b""))["id"]
    path = f"{KNOWLEDGE}/{made['id']}/files/batch/add"
    asked = [{"file_id": name, "directory_id": None} for name in (known, new, empty, "nothing")]
    answer = await site.ok("POST", path, body=asked)
    assert [(each["file_id"], each["status"]) for each in answer["results"]] == [
        (known, "unchanged"),
        (new, "added"),
        (empty, "failed"),
        ("nothing", "failed"),
    ]
    assert len(answer["files"]) == 2
    assert answer["warnings"]["message"] == "2 of 4 files could not be added"
    assert [line.partition(":")[0] for line in answer["warnings"]["errors"]] == [empty, "nothing"]
    assert "warnings" not in await site.ok("POST", path, body=asked[:2])
    assert (await site.ok("POST", path, body=[]))["results"] == []


async def test_many_files_none_of_which_can(site: DocumentsSite) -> None:
    made = await site.collection()
    empty = (await site.processed(b""))["id"]
    path = f"{KNOWLEDGE}/{made['id']}/files/batch/add"
    status, answer = await site.call(
        "POST", path, site.user, [{"file_id": empty}, *({"file_id": str(number)} for number in range(9))]
    )
    assert (status, answer["detail"].endswith("and 5 more")) == (400, True)
    assert (await site.call("POST", path, site.user, {"file_id": empty}))[0] == 422


async def test_removal(site: DocumentsSite) -> None:
    made = await site.collection()
    kept, gone = (await site.processed(b"one"))["id"], (await site.processed(b"two"))["id"]
    for file_id in (kept, gone):
        await add(site, made, file_id)
    path = f"{KNOWLEDGE}/{made['id']}/file/remove"
    left = await site.ok("POST", f"{path}?delete_file=false", body={"file_id": kept})
    assert [each["id"] for each in left["files"]] == [gone]
    assert (await site.ok("POST", path, body={"file_id": gone}))["files"] == []
    assert (await site.call("GET", f"/api/v1/files/{kept}", site.user))[0] == 200
    assert (await site.call("GET", f"/api/v1/files/{gone}", site.user))[0] == 404
    assert (await site.call("POST", path, site.user, {"file_id": kept}))[0] == 404


async def test_a_changed_file(site: DocumentsSite) -> None:
    made, file = await site.collection(), await site.processed(b"old words")
    await add(site, made, file["id"])
    await site.ok("POST", f"/api/v1/files/{file['id']}/data/content/update", body={"content": "new words"})
    path = f"{KNOWLEDGE}/{made['id']}/file/update"
    assert (await site.ok("POST", path, body={"file_id": file["id"]}))["files"][0]["hash"] != file["hash"]
    assert (await site.call("POST", path, site.user, {"file_id": "x"}))[0] == 404


async def test_reset(site: DocumentsSite) -> None:
    made, file = await site.collection(), await site.processed(TEXT)
    await add(site, made, file["id"])
    path = f"{KNOWLEDGE}/{made['id']}"
    await site.ok("POST", f"{path}/dirs/create", body={"name": "a"})
    assert (await site.ok("POST", f"{path}/reset?include_directories=false"))["files"] == []
    assert len((await site.ok("GET", f"{path}/files"))["directories"]) == 1
    await site.ok("POST", f"{path}/reset")
    assert (await site.ok("GET", f"{path}/files"))["directories"] == []
    assert (await site.call("GET", f"/api/v1/files/{file['id']}", site.user))[0] == 200
