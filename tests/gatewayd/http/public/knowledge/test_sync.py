"""Tests for gatewayd.http.public.knowledge.sync."""

import json
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.documents.site import FILES, KNOWLEDGE, DocumentsSite, serving_documents

TREE = {"a.txt": b"about apes", "guide/b.md": b"about bees", "guide/deep/c.md": b"about cats"}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    async with serving_documents(tmp_path) as made:
        yield made


class Client:
    """Keeps a collection in step as the programs of 11.4 do: diff, cleanup, directories, uploads."""

    def __init__(self, site: DocumentsSite, collection_id: str) -> None:
        self.site = site
        self.collection_id = collection_id
        self.path = f"{KNOWLEDGE}/{collection_id}"

    async def diff(self, tree: dict[str, bytes]) -> Any:
        manifest = []
        for name, content in tree.items():
            folder, _, filename = name.rpartition("/")
            manifest.append(
                {
                    "filename": filename,
                    "path": folder,
                    "checksum": sha256(content).hexdigest(),
                    "size": len(content),
                }
            )
        return await self.site.ok("POST", f"{self.path}/sync/diff", body={"manifest": manifest})

    async def run(self, tree: dict[str, bytes]) -> tuple[int, int, int, int]:
        """Sync and return how many were added, modified, deleted and left alone."""
        diff = await self.diff(tree)
        stale = [each["file_id"] for each in diff["deleted"]]
        stale += [each["stale_file_id"] for each in diff["modified"]]
        if stale or diff["rmdir"]:
            cleaned = {"file_ids": stale, "dir_ids": diff["rmdir"]}
            assert await self.site.ok("POST", f"{self.path}/sync/cleanup", body=cleaned) == {"status": True}
        places = diff["directory_map"]
        for path in diff["mkdir"]:
            above, _, name = path.rpartition("/")
            body = {"name": name, **({"parent_id": places[above]} if above else {})}
            places[path] = (await self.site.ok("POST", f"{self.path}/dirs/create", body=body))["id"]
        for entry in [*diff["added"], *diff["modified"]]:
            await self.upload(entry, tree, places.get(entry["path"]))
        return len(diff["added"]), len(diff["modified"]), len(diff["deleted"]), diff["unmodified_count"]

    async def upload(self, entry: Any, tree: dict[str, bytes], directory_id: str | None) -> None:
        folder = f"{entry['path']}/" if entry["path"] else ""
        content = tree[folder + entry["filename"]]
        told = {"knowledge_id": self.collection_id, "file_hash": sha256(content).hexdigest()}
        if directory_id:
            told["directory_id"] = directory_id
        file = await self.site.upload(content, name=entry["filename"], metadata=json.dumps(told))
        await self.site.services.files.finished(file["id"], 10)
        status = await self.site.ok("GET", f"{FILES}/{file['id']}/process/status")
        assert status == {"status": "completed"}

    async def names(self) -> list[str]:
        listed = await self.site.ok("GET", f"{self.path}/files")
        return sorted(each["filename"] for each in listed["items"])


@pytest.fixture
async def client(site: DocumentsSite) -> Client:
    return Client(site, (await site.collection())["id"])


async def test_a_tree_is_kept_in_step(client: Client) -> None:
    assert await client.run(TREE) == (3, 0, 0, 0)
    assert await client.run(TREE) == (0, 0, 0, 3)
    changed = {"a.txt": b"about ants", "guide/deep/c.md": TREE["guide/deep/c.md"]}
    assert await client.run(changed) == (0, 1, 1, 1)
    assert await client.names() == ["a.txt", "c.md"]
    assert await client.run(changed) == (0, 0, 0, 2)
    assert await client.site.ok("GET", f"{FILES}/count") == 2
    assert await client.run({"a.txt": b"about ants"}) == (0, 0, 1, 1)
    assert (await client.site.ok("GET", f"{client.path}/files"))["directories"] == []


async def test_what_a_diff_says(client: Client) -> None:
    diff = await client.diff({"guide/b.md": b"x"})
    assert diff == {
        "added": [{"filename": "b.md", "path": "guide", "checksum": sha256(b"x").hexdigest()}],
        "modified": [],
        "deleted": [],
        "mkdir": ["guide"],
        "rmdir": [],
        "unmodified_count": 0,
        "directory_map": {},
    }
    await client.run(TREE)
    diff = await client.diff({"a.txt": b"new"})
    (modified,) = diff["modified"]
    assert (modified["filename"], modified["path"], bool(modified["stale_file_id"])) == ("a.txt", "", True)
    assert sorted(each["filename"] for each in diff["deleted"]) == ["b.md", "c.md"]
    assert len(diff["rmdir"]) == 2


async def test_the_same_text_at_two_places(client: Client) -> None:
    assert await client.run({"a.txt": b"same", "b.txt": b"same"}) == (2, 0, 0, 0)
    assert await client.run({"a.txt": b"same", "b.txt": b"same"}) == (0, 0, 0, 2)


async def test_directories(client: Client) -> None:
    site, path = client.site, client.path
    above = await site.ok("POST", f"{path}/dirs/create", body={"name": "guide"})
    assert above == {
        "id": above["id"],
        "knowledge_id": client.collection_id,
        "parent_id": None,
        "name": "guide",
        "user_id": site.user.id,
        "created_at": above["created_at"],
        "updated_at": above["updated_at"],
    }
    below = await site.ok("POST", f"{path}/dirs/create", body={"name": "deep", "parent_id": above["id"]})
    assert (await site.call("POST", f"{path}/dirs/create", site.user, {"name": "guide"}))[0] == 409
    assert (await site.call("POST", f"{path}/dirs/create", site.user, {"name": "a/b"}))[0] == 400
    assert (await site.call("POST", f"{path}/dirs/create", site.user, {}))[0] == 422
    place = f"{path}/dirs/{below['id']}"
    assert (await site.ok("POST", f"{place}/update", body={"name": "far"}))["parent_id"] == above["id"]
    assert (await site.ok("POST", f"{place}/update", body={"parent_id": None}))["parent_id"] is None
    assert await site.call("DELETE", f"{place}/delete", site.user) == (200, True)
    assert (await site.call("DELETE", f"{place}/delete", site.user))[0] == 404


async def test_files_by_directory(client: Client) -> None:
    await client.run(TREE)
    site, path = client.site, client.path
    whole = await site.ok("GET", f"{path}/files")
    assert (whole["total"], whole["breadcrumbs"]) == (3, [])
    (guide,) = whole["directories"]
    root = await site.ok("GET", f"{path}/files?in_root=true")
    assert [each["directory_id"] for each in root["items"]] == [None] * root["total"]
    assert root["total"] < (await site.ok("GET", f"{path}/files"))["total"]
    inside = await site.ok("GET", f"{path}/files?directory_id={guide['id']}")
    (item,) = inside["items"]
    assert (item["filename"], item["directory_id"], item["user"]["name"]) == ("b.md", guide["id"], "user")
    assert [each["name"] for each in inside["directories"]] == ["deep"]
    assert inside["breadcrumbs"] == [guide]
    deep = await site.ok("GET", f"{path}/files?directory_id={inside['directories'][0]['id']}")
    assert [each["name"] for each in deep["breadcrumbs"]] == ["guide", "deep"]
    assert (await site.ok("GET", f"{path}/files?query=C.M"))["total"] == 1
    assert (await site.call("GET", f"{path}/files?directory_id=x", site.user))[0] == 404
    assert len((await site.ok("GET", f"{path}/files?limit=2&page=2", site.admin))["items"]) == 1


async def test_moving_a_file(client: Client) -> None:
    site, path = client.site, client.path
    file = (await site.processed(b"words"))["id"]
    await site.ok("POST", f"{path}/file/add", body={"file_id": file})
    guide = (await site.ok("POST", f"{path}/dirs/create", body={"name": "guide"}))["id"]
    body = {"file_id": file, "directory_id": guide}
    assert await site.ok("POST", f"{path}/file/move", body=body) == {"status": True}
    assert (await site.ok("GET", f"{path}/files"))["items"][0]["directory_id"] == guide
    assert (await site.call("POST", f"{path}/file/move", site.user, {**body, "file_id": "x"}))[0] == 404
    # Without a word about them, files of a removed directory move up.
    await site.call("DELETE", f"{path}/dirs/{guide}/delete", site.user)
    assert (await site.ok("GET", f"{path}/files"))["items"][0]["directory_id"] is None


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/sync/diff", {"manifest": []}),
        ("POST", "/sync/cleanup", {"file_ids": []}),
        ("POST", "/dirs/create", {"name": "a"}),
        ("POST", "/dirs/d/update", {"name": "a"}),
        ("DELETE", "/dirs/d/delete", None),
        ("POST", "/file/move", {"file_id": "f", "directory_id": None}),
        ("GET", "/files", None),
    ],
)
async def test_who_may_what(site: DocumentsSite, method: str, path: str, body: Any) -> None:
    made = await site.collection(site.admin)
    assert (await site.call(method, f"{KNOWLEDGE}/{made['id']}{path}", site.user, body))[0] == 404
    grants = {"access_grants": [{"principal_type": "user", "principal_id": "*", "permission": "read"}]}
    await site.ok("POST", f"{KNOWLEDGE}/{made['id']}/access/update", site.admin, grants)
    status, _ = await site.call(method, f"{KNOWLEDGE}/{made['id']}{path}", site.user, body)
    assert status == (200 if method == "GET" else 403)


@pytest.mark.parametrize(
    "body", [{}, {"manifest": "x"}, {"manifest": [{"filename": "a"}]}, {"manifest": [5]}]
)
async def test_bad_manifests(client: Client, body: Any) -> None:
    assert (await client.site.call("POST", f"{client.path}/sync/diff", client.site.user, body))[0] == 422
