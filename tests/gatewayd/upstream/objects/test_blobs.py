"""What every blob store does: a folder, and buckets at real servers."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.blob_copies import BlobCopies
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.interfaces import BlobStore
from gatewayd.upstream.objects.blobs import ObjectBlobs
from gatewayd.upstream.objects.bucket import Bucket, StoredObject
from tests.conftest import missing
from tests.fakes.documents.ingest_services import stream
from tests.fakes.storage.object_servers import PROGRAMS, ObjectServer, find_server, object_server

KEY = "f1.attempt"
PIECE = b"0123456789abcdef" * (1 << 16)
LATER = 3600


@pytest.fixture(scope="module", params=["folder", "moto", "nanio"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectServer | None]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "folder":
        yield None
        return
    if find_server(request.param) is None:
        missing(
            PROGRAMS[request.param], "install moto[s3,server] and nanio, and name their directory of programs"
        )
    with object_server(request.param, folder) as made:
        yield made


@pytest.fixture
def blobs(place: ObjectServer | None, tmp_path: Path) -> BlobStore:
    if place is None:
        return LocalBlobs(tmp_path / "files", is_shared=True)
    return ObjectBlobs(Bucket(place.address(tmp_path.name)), "files", BlobCopies(tmp_path / "copies"))


async def keys(*names: str) -> AsyncIterator[str]:
    for name in names:
        yield name


async def content(blobs: BlobStore, key: str) -> bytes:
    found = await blobs.find(key)
    assert found is not None
    return b"".join([piece async for piece in found.read(0, found.size)])


@pytest.mark.parametrize("count", [0, 1, 20])
async def test_bytes_come_back_as_they_went(blobs: BlobStore, count: int) -> None:
    whole = PIECE * count
    received = await blobs.receive(KEY, stream(*[PIECE] * count), 0)
    assert (received.size, received.digest) == (len(whole), hashlib.sha256(whole).hexdigest())
    found = await blobs.find(KEY)
    assert found is not None
    assert (found.size, abs(found.modified_at - time.time()) < 120) == (len(whole), True)
    assert await content(blobs, KEY) == whole
    if count:
        assert b"".join([piece async for piece in found.read(15, 18)]) == b"f01"
        with pytest.raises(GatewayError):
            assert [piece async for piece in found.read(len(whole), len(whole) + 1)] == []
    async with blobs.local(KEY, received.digest) as path:
        assert await asyncio.to_thread(path.read_bytes) == whole
    assert (await blobs.keep_copy(KEY, received.digest)).read_bytes() == whole


@pytest.mark.parametrize("size", [3, 12])
async def test_a_limit_or_a_sender_that_breaks_leaves_nothing(blobs: BlobStore, size: int) -> None:
    async def broken() -> AsyncIterator[bytes]:
        for _ in range(size):
            yield PIECE
        raise ConnectionResetError("the client left")

    with pytest.raises(ConnectionResetError):
        await blobs.receive(KEY, broken(), 0)
    with pytest.raises(GatewayError) as refused:
        await blobs.receive(KEY, stream(*[PIECE] * size), size * len(PIECE) - 1)
    assert (refused.value.kind, refused.value.param) == (ErrorKind.TOO_LARGE, "file")
    assert await blobs.find(KEY) is None
    assert await blobs.find_orphans(keys(), int(time.time()) + LATER) == []
    assert (await blobs.receive(KEY, stream(*[PIECE] * size), size * len(PIECE))).size == size * len(PIECE)


async def test_what_is_not_there(blobs: BlobStore) -> None:
    assert await blobs.find(KEY) is None
    assert await blobs.missing([KEY, "other"]) == [KEY, "other"]
    await blobs.remove([KEY])
    await blobs.receive(KEY, stream(b"x"), 0)
    assert await blobs.missing([KEY, "other"]) == ["other"]
    await blobs.remove([KEY, "other"])
    assert await blobs.missing([KEY]) == [KEY]


async def test_orphans_are_what_no_row_names_and_old(blobs: BlobStore) -> None:
    for key in ("a1", "b2", "c3.attempt"):
        await blobs.receive(key, stream(b"four"), 0)
    now = int(time.time())
    assert await blobs.find_orphans(keys(), now - LATER) == []
    assert sorted(await blobs.find_orphans(keys("b2", "gone"), now + LATER)) == [("a1", 4), ("c3.attempt", 4)]
    assert await blobs.remove_orphan("a1", now - LATER) == []
    assert await blobs.remove_orphan("a1", now + LATER) == [4]
    assert await blobs.remove_orphan("a1", now + LATER) == []
    # Others may be storing files: nothing is swept at a start.
    assert blobs.is_shared
    assert await blobs.sweep(keys()) == 0
    assert await blobs.sweep_old(keys("b2"), now + LATER) == 1
    assert await blobs.missing(["b2", "c3.attempt"]) == ["c3.attempt"]
    assert await blobs.find_abandoned(now + LATER) == await blobs.remove_abandoned(now + LATER) == []


async def test_two_attempts_of_one_key_never_mix(blobs: BlobStore) -> None:
    ends = await asyncio.gather(
        blobs.receive("one", stream(*[b"x" * (1 << 20)] * 9), 0),
        blobs.receive("two", stream(*[b"y" * (1 << 20)] * 9), 0),
    )
    assert [set(await content(blobs, key)) for key in ("one", "two")] == [{ord("x")}, {ord("y")}]
    assert [end.size for end in ends] == [9 << 20] * 2


async def test_copies_that_are_damaged_are_refused_and_others_are_deleted(
    blobs: BlobStore, place: ObjectServer | None, tmp_path: Path
) -> None:
    received = await blobs.receive(KEY, stream(b"text"), 0)
    async with blobs.local(KEY, received.digest) as path:
        assert path.read_text() == "text"
    if place is None:
        assert path.exists()
        return
    assert not path.exists()
    with pytest.raises(GatewayError, match="they are not those that were stored"):
        async with blobs.local(KEY, "0" * 64):
            pass
    with pytest.raises(GatewayError, match="cannot find the object"):
        async with blobs.local("absent"):
            pass
    assert list((tmp_path / "copies").iterdir()) == []


async def test_an_object_that_is_shorter_than_it_was_sent_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ShortBucket:
        async def put(self, key: str, data: bytes) -> None:
            self.stored = key

        async def head(self, key: str) -> StoredObject:
            return StoredObject(key, 1, 0.0)

        async def delete(self, key: str) -> None:
            self.deleted = key

    bucket = ShortBucket()
    blobs = ObjectBlobs(bucket, "files", BlobCopies(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(GatewayError, match="the object store has 1 of 4 bytes"):
        await blobs.receive(KEY, stream(b"text"), 0)
    assert bucket.deleted == bucket.stored == f"files/{KEY}"
