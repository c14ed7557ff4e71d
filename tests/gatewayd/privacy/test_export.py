"""Tests for gatewayd.privacy.export: the archive, its order and its manifest."""

import hashlib
import io
import json
import tarfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import User
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.blobs import LocalBlobs
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.accounts.records import user
from tests.fakes.storage.small_export import CONTENT, SmallRecords, small_export

ADA: User = user("ada")
NAMES = [
    "records/API-keys-00001.jsonl",
    "records/API-keys-00002.jsonl",
    "chats/c1.json",
    "files/f1/résumé.txt",
    "files/f1.text.txt",
    "batch-files/b1",
    "manifest.json",
]


async def exported(folder: Path, records: SmallRecords | None = None) -> bytes:
    users: Any = Memory()
    export = small_export(users, folder, records or SmallRecords())
    return b"".join([piece async for piece in export.archive(ADA)])


async def test_an_archive_has_everything_and_a_manifest_at_its_end(tmp_path: Path) -> None:
    data = await exported(tmp_path)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == NAMES
        contents = {name: archive.extractfile(name).read() for name in NAMES}  # type: ignore[union-attr]
        assert {(each.mtime, each.mode, each.uname) for each in archive} == {(0, 0o600, "")}
    rows = [json.loads(line) for line in contents[NAMES[0]].splitlines()]
    assert rows == [{"id": "k1", "name": "Ä"}, {"id": "k2"}]
    assert contents["files/f1/résumé.txt"] == contents["batch-files/b1"] == CONTENT
    manifest = json.loads(contents["manifest.json"])
    assert (manifest["format"], manifest["user"]) == (
        "gatewayd-person-1",
        {"id": "ada", "email": ADA.email},
    )
    told = {each["path"]: (each["size"], each["sha256"]) for each in manifest["members"]}
    # The file whose bytes are gone has no name that could leave the folder, and no size.
    assert told.pop("files/f2/_") == told.pop("batch-files/b2") == (None, None)
    assert told == {
        name: (len(contents[name]), hashlib.sha256(contents[name]).hexdigest()) for name in NAMES[:-1]
    }


async def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    assert await exported(tmp_path) == await exported(tmp_path)


async def test_an_archive_that_breaks_off_has_no_manifest(tmp_path: Path) -> None:
    records = SmallRecords()
    records.failure = GatewayError(ErrorKind.UNAVAILABLE, "cannot read")
    with pytest.raises(GatewayError):
        await exported(tmp_path, records)


class LostStore(LocalBlobs):
    """A store that is reached no more once it has told which bytes are there, as a bucket may be."""

    @asynccontextmanager
    async def local(self, key: str, digest: str = "") -> AsyncGenerator[Path, None]:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the object store")
        yield self.path(key)


async def test_an_archive_ends_without_manifest_when_the_store_of_files_is_lost(tmp_path: Path) -> None:
    users: Any = Memory()
    export = small_export(users, tmp_path, SmallRecords(), LostStore(tmp_path))
    sent = []
    with pytest.raises(GatewayError, match="cannot reach the object store"):
        async for piece in export.archive(ADA):
            sent.append(piece)
    assert b"chats/c1.json" in b"".join(sent)
    assert b"manifest.json" not in b"".join(sent)


class ShrinkingStore(LocalBlobs):
    """A store whose bytes go after it has told that they are there."""

    @asynccontextmanager
    async def local(self, key: str, digest: str = "") -> AsyncGenerator[Path, None]:
        self.path(key).unlink()
        yield self.path(key)


async def test_bytes_that_go_in_the_meantime_are_noted_without_a_size(tmp_path: Path) -> None:
    users: Any = Memory()
    export = small_export(users, tmp_path, SmallRecords(), ShrinkingStore(tmp_path))
    data = b"".join([piece async for piece in export.archive(ADA)])
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))  # type: ignore[arg-type]
    told = {each["path"]: each["size"] for each in manifest["members"]}
    assert (told["files/f1/résumé.txt"], told["files/f1.text.txt"]) == (None, 4)


async def test_a_file_that_became_shorter_breaks_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayd.privacy.export._size_of", lambda _: len(CONTENT) + 1)
    with pytest.raises(EOFError, match="became shorter"):
        await exported(tmp_path)
