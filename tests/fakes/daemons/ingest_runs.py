"""Ingests of a tree of files into a daemon that may go away at any moment, over HTTP and with gatewayctl."""

import contextlib
import json
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.fakes.daemons import killed_daemon_clients as killing
from tests.fakes.daemons.killed_daemon_clients import CutError
from tests.fakes.documents.changing_tree import Document, Tree
from tests.fakes.http.multipart_forms import FORM, file_part, form
from tests.fakes.http.multipart_forms import field as form_field
from tests.fakes.http.raw_http import Reply

FILES, KNOWLEDGE, QUERY = "/api/v1/files", "/api/v1/knowledge", "/api/v1/retrieval/query/collection"
ALL = 1000
POLL_SECONDS = 0.1
UPLOADS = 4
AWAY = frozenset({3, 75})
"""What gatewayctl exits with when the daemon is not there, or goes away."""


@dataclass
class Caller(killing.Caller):
    """Calls a daemon as its administrator, about files and collections."""

    def create(self, name: str = "tree") -> str:
        """Make a collection and return its id."""
        made: str = self.call("POST", f"{KNOWLEDGE}/create", {"name": name, "description": ""})["id"]
        return made

    def upload(self, name: str, content: bytes, metadata: Mapping[str, Any], *, pause: float = 0.0) -> Reply:
        """Upload a file, slowly if wanted."""
        parts = [form_field("metadata", json.dumps(metadata)), file_part(content, name)]
        whole = form(*parts)
        body = slowly(whole, pause) if pause else whole
        return self.ask("POST", f"{FILES}/", body, headers={"Content-Type": FORM})

    def status(self, file_id: str) -> str:
        """Return how far a file is, empty when it is gone."""
        reply = self.ask("GET", f"{FILES}/{file_id}/process/status")
        assert reply.status in {200, 404}, reply
        return str(reply.json["status"]) if reply.status == 200 else ""

    def wait(self, file_ids: Sequence[str], seconds: float = 90.0) -> Mapping[str, str]:
        """Return how each file ended."""
        deadline = time.monotonic() + seconds
        pending = file_ids
        while pending:
            found = self.look(pending)
            pending = [file_id for file_id, status in found.items() if status == "pending"]
            assert time.monotonic() < deadline, found
            time.sleep(POLL_SECONDS if pending else 0)
        return self.look(file_ids)

    def look(self, file_ids: Sequence[str]) -> Mapping[str, str]:
        """Return how each file is now."""
        return {file_id: self.status(file_id) for file_id in file_ids}

    def search(self, collection_id: str, query: str, **options: Any) -> Mapping[str, Sequence[Any]]:
        """Return the ids, texts and metadata of passages, best first."""
        asked = {"collection_names": [collection_id], "query": query, **options}
        found = self.call("POST", QUERY, asked)
        assert not found.get("warnings"), found["warnings"]
        return {name: found[name][0] for name in ("ids", "documents", "metadatas")}


def slowly(content: bytes, pause: float) -> Iterator[bytes]:
    """Yield bytes in four pieces."""
    size = len(content) // 4 + 1
    for at in range(0, len(content), size):
        yield content[at : at + size]
        time.sleep(pause)


@dataclass
class Acknowledged:
    """What clients were told: ids of files with their paths in the order of the answers, and what they had
    removed."""

    files: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, file_id: str, path: str) -> None:
        """Note that a file was answered for."""
        with self.lock:
            self.files[file_id] = path


@dataclass
class Work:
    """What one ingest did."""

    uploaded: int = 0
    removed: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether it changed nothing."""
        return not self.uploaded and not self.removed


class Ingest(Protocol):
    """Brings a collection in step with a tree, and waits until everything is processed."""

    def run(self, tree: Tree) -> Work:
        """Do what is to do; CutError when the daemon goes away."""
        ...


class HttpIngest:
    """Does it in the calls that sync clients make; some uploads are slow, and removals come before or after
    the wait."""

    def __init__(self, caller: Caller, collection_id: str, told: Acknowledged, seed: int) -> None:
        self._caller = caller
        self._base = f"{KNOWLEDGE}/{collection_id}"
        self._id = collection_id
        self._told = told
        self._random = random.Random(seed)

    def run(self, tree: Tree) -> Work:
        entries = [_entry(path, document) for path, document in sorted(tree.files.items())]
        diff = self._caller.call("POST", f"{self._base}/sync/diff", {"manifest": entries})
        directories = self._make(diff)
        wanted = [_joined(entry["path"], entry["filename"]) for entry in diff["added"] + diff["modified"]]
        gone = [each["file_id"] for each in diff["deleted"]]
        if self._random.random() < 0.5:
            self._remove(gone, diff["rmdir"])
            gone = []
        self._random.shuffle(wanted)
        with ThreadPoolExecutor(UPLOADS) as pool:
            list(pool.map(lambda path: self._upload(path, tree.files[path], directories), wanted))
        while self._caller.call("GET", f"{self._base}/files/pending"):
            time.sleep(POLL_SECONDS)
        stale = [entry["stale_file_id"] for entry in diff["modified"]]
        self._remove([*gone, *stale], diff["rmdir"])
        return Work(len(wanted), len(diff["deleted"]))

    def _make(self, diff: Mapping[str, Any]) -> Mapping[str, str]:
        known = dict(diff["directory_map"])
        for path in diff["mkdir"]:
            parent, _, name = path.rpartition("/")
            form_of = {"name": name, "parent_id": known.get(parent)}
            known[path] = self._caller.call("POST", f"{self._base}/dirs/create", form_of)["id"]
        return known

    def _upload(self, path: str, document: Document, directories: Mapping[str, str]) -> None:
        folder, _, name = path.rpartition("/")
        metadata = {"knowledge_id": self._id, "file_hash": document.checksum}
        if folder:
            metadata["directory_id"] = directories[folder]
        pause = self._random.choice((0.0, 0.02, 0.1))
        reply = self._caller.upload(name, document.content, metadata, pause=pause)
        assert reply.status == 200, (path, reply)
        self._told.add(reply.json["id"], path)

    def _remove(self, file_ids: Sequence[str], directory_ids: Sequence[str]) -> None:
        if file_ids or directory_ids:
            self._told.removed.update(file_ids)
            form_of = {"file_ids": list(file_ids), "dir_ids": list(directory_ids)}
            self._caller.call("POST", f"{self._base}/sync/cleanup", form_of)


class CtlIngest:
    """Does it with `gatewayctl ingest` of a directory."""

    def __init__(self, caller: Caller, collection_id: str, told: Acknowledged, folder: Path) -> None:
        self._caller = caller
        self._id = collection_id
        self._told = told
        self._folder = folder

    def run(self, tree: Tree) -> Work:
        write_tree(tree, self._folder)
        ended = self._call()
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        for line in lines:
            if line.get("id") and line["outcome"] in {"added", "changed"}:
                self._told.add(line["id"], line["path"])
        summary = lines[-1] if lines and "uploaded" in lines[-1] else None
        if summary is None:
            assert ended.returncode in AWAY, (ended.returncode, ended.stderr)
            raise CutError
        bad = sum(document.is_bad for document in tree.files.values())
        assert summary["failed"] == bad, (summary, ended.stderr)
        assert ended.returncode == (3 if bad else 0), (ended.returncode, ended.stderr)
        assert not summary["pending"], summary
        return Work(summary["uploaded"], summary["removed"])

    def _call(self) -> subprocess.CompletedProcess[str]:
        assert self._caller.daemon is not None
        arguments = [str(self._folder), "--collection", self._id, "--delete", "--jobs", str(UPLOADS)]
        return self._caller.daemon.run_ctl("-o", "jsonl", "ingest", *arguments, seconds=300)


def write_tree(tree: Tree, folder: Path) -> None:
    """Make a directory hold exactly the files of a tree."""
    folder.mkdir(exist_ok=True)
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in tree.files:
            path.unlink()
    for name, document in tree.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if path.read_bytes() == document.content:
                continue
        path.write_bytes(document.content)


def _entry(path: str, document: Document) -> Mapping[str, Any]:
    folder, _, name = path.rpartition("/")
    size = len(document.content)
    return {"filename": name, "path": folder, "checksum": document.checksum, "size": size}


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
