"""The public client that keeps a collection in step with a directory, and its calls one by one."""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.documents.conftest import FILES, KNOWLEDGE, SECONDS, Collections, Script
from tests.clients.scene import Scene
from tests.conftest import missing


@dataclass(frozen=True)
class Oikb:
    """The client, with one collection and a home of its own."""

    scene: Scene
    home: Path
    collection: str

    def run(self, command: str, *arguments: str) -> str:
        """Run a command, which must succeed, and return what it printed."""
        client = [sys.executable, "-c", "from oikb.cli import cli; cli()", command, *arguments]
        where = ["--url", self.scene.url, "--token", self.scene.key, "--kb-id", self.collection]
        done = subprocess.run(
            [*client, *where],
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "OIKB_CONFIG_DIR": str(self.home / "c")},
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done
        return done.stdout + done.stderr

    def sync(self, tree: Path, *arguments: str) -> str:
        """Bring the collection in step with a directory."""
        return self.run("sync", str(tree), *arguments)


@pytest.fixture
def oikb(scene: Scene, home: Path, new_collection: Collections) -> Oikb:
    if importlib.util.find_spec("oikb") is None:
        missing("oikb", "it is not installed")
    return Oikb(scene, home, new_collection())


def files_of(script: Script, collection: str) -> Mapping[str, str]:
    """Return the ids of a collection's files by name, once all are processed."""
    listed = script.get(f"{KNOWLEDGE}/{collection}/files", query="")["items"]
    for file in listed:
        assert script.processed(file["id"]) == {"status": "completed"}
    return {file["filename"]: file["id"] for file in listed}


def found(script: Script, collection: str, question: str) -> Sequence[str]:
    """Return the names of the files that answer a question."""
    body = {"collection_names": [collection], "query": question, "k": 3}
    answer = script.post("/api/v1/retrieval/query/collection", body)
    return [metadata["name"] for metadata in answer["metadatas"][0]]


def all_files(script: Script) -> int:
    """Return how many files there are."""
    count = script.get(f"{FILES}count")
    assert isinstance(count, int)
    return count


def test_a_directory_is_kept_in_step(script: Script, oikb: Oikb, tree: Path) -> None:
    assert "2 added" in oikb.sync(tree)
    # The next run may come before the files are processed.
    assert "added" not in oikb.sync(tree)
    held = files_of(script, oikb.collection)
    assert held.keys() == {"heron.md", "tar.txt"}
    count = all_files(script)
    assert "added" not in oikb.sync(tree)
    assert all_files(script) == count
    assert found(script, oikb.collection, "Where does the heron stand?")[0] == "heron.md"

    (tree / "birds" / "heron.md").write_text("# Herons\n\nThe grey heron nests in tall trees.")
    (tree / "tar.txt").unlink()
    (tree / "new.txt").write_text("cpio reads names from its input.")
    told = oikb.sync(tree)
    assert all(words in told for words in ("1 added", "1 modified", "1 deleted")), told
    changed = files_of(script, oikb.collection)
    assert changed.keys() == {"heron.md", "new.txt"}
    assert changed["heron.md"] != held["heron.md"]
    assert all_files(script) == count
    assert "tar.txt" not in found(script, oikb.collection, "tar keeps dates")
    assert "unchanged" in oikb.sync(tree) or "nothing to do" in oikb.sync(tree)


def test_the_other_commands(script: Script, oikb: Oikb, tree: Path) -> None:
    assert "+ birds/heron.md" in oikb.sync(tree, "--dry-run")
    oikb.sync(tree, "--concurrency", "2")
    files_of(script, oikb.collection)
    assert "heron.md" in oikb.run("ls")
    assert "2" in oikb.run("status")
    oikb.run("reset", "--yes")
    assert files_of(script, oikb.collection) == {}
    assert "2 added" in oikb.sync(tree)


@pytest.mark.parametrize("text", ["same text in two places", ""])
def test_twice_the_same_content(script: Script, oikb: Oikb, tree: Path, text: str) -> None:
    for name in ("copy.txt", "birds/copy.txt"):
        (tree / name).write_text(text)
    oikb.sync(tree)
    held = script.get(f"{KNOWLEDGE}/{oikb.collection}/files")["items"]
    for file in held:
        script.processed(file["id"])
    count = all_files(script)
    # Neither is uploaded again for ever.
    oikb.sync(tree)
    assert all_files(script) == count
    assert len(held) == (4 if text else 2)


# Its calls, one by one -----------------------------------------------------------------------------------


def manifest(tree: Path) -> Sequence[Mapping[str, Any]]:
    """Return what lies below a directory, as the client tells it."""
    rows = []
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        folder = path.relative_to(tree).parent.as_posix()
        content = path.read_bytes()
        rows.append(
            {
                "filename": path.name,
                "path": "" if folder == "." else folder,
                "checksum": hashlib.sha256(content).hexdigest(),
                "size": len(content),
            }
        )
    return rows


def send(script: Script, path: Path, **metadata: str) -> Any:
    """Upload a file with what the client says about it."""
    reply = script.session.post(
        script.url + FILES,
        files={"file": (path.name, path.read_bytes(), "text/plain")},
        data={"metadata": json.dumps(metadata)},
        timeout=SECONDS,
    )
    return script.whole(reply)


def test_the_calls_in_their_order(script: Script, new_collection: Collections, tree: Path) -> None:
    collection = new_collection()
    at = f"{KNOWLEDGE}/{collection}"
    assert script.get(at)["files"] in (None, [])
    diff = script.post(f"{at}/sync/diff", {"manifest": manifest(tree)})
    assert sorted(row["filename"] for row in diff["added"]) == ["heron.md", "tar.txt"]
    assert (diff["modified"], diff["deleted"], diff["rmdir"]) == ([], [], [])
    assert (diff["mkdir"], diff["unmodified_count"]) == (["birds"], 0)
    directory = script.post(f"{at}/dirs/create", {"name": "birds", "parent_id": None})["id"]

    ids = []
    for row in manifest(tree):
        place = {"directory_id": directory} if row["path"] else {}
        path = tree / row["path"] / row["filename"]
        sent = send(script, path, knowledge_id=collection, file_hash=row["checksum"], **place)
        assert script.processed(sent["id"])["status"] == "completed"
        # The server linked it already, or does so now.
        script.post(f"{at}/file/add", {"file_id": sent["id"], **place})
        ids.append(sent["id"])
    again = script.post(f"{at}/sync/diff", {"manifest": manifest(tree)})
    assert (again["added"], again["modified"], again["deleted"], again["mkdir"]) == ([], [], [], [])
    assert again["unmodified_count"] == 2
    assert again["directory_map"] == {"birds": directory}

    (tree / "tar.txt").write_text("tar keeps the owners of files, too.")
    (tree / "birds" / "heron.md").unlink()
    changed = script.post(f"{at}/sync/diff", {"manifest": manifest(tree)})
    assert [row["stale_file_id"] for row in changed["modified"]] == [ids[1]]
    assert [row["file_id"] for row in changed["deleted"]] == [ids[0]]
    stale = {"file_ids": [ids[0], ids[1]], "dir_ids": changed["rmdir"]}
    assert script.post(f"{at}/sync/cleanup", stale) == {"status": True}
    # Said twice, as after a lost reply.
    assert script.post(f"{at}/sync/cleanup", stale) == {"status": True}
    for file_id in ids:
        url = f"{script.url}{FILES}{file_id}/process/status"
        assert script.session.get(url, timeout=SECONDS).status_code == 404
    script.post(f"{at}/reset", include_directories="true")
    assert script.get(f"{at}/files")["items"] == []


def test_a_duplicate_keeps_its_checksum(script: Script, new_collection: Collections, tree: Path) -> None:
    collection = new_collection()
    path = tree / "tar.txt"
    first = send(script, path, knowledge_id=collection, file_hash="a" * 64)
    script.processed(first["id"])
    second = script.upload(path, process_in_background="false")
    # Files of a tree are never duplicates of others.
    script.post(f"{KNOWLEDGE}/{collection}/file/add", {"file_id": second["id"]})
    for record in (first, second):
        now = script.get(f"{FILES}{record['id']}")
        assert now["data"]["status"] == "completed"
        assert now["meta"]["file_hash"] == record["meta"]["file_hash"]
