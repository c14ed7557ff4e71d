"""A bucket at real servers: whole uploads or none, and refusals that say what is wrong."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd import extras
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.objects import bucket as module
from gatewayd.upstream.objects.bucket import PART_BYTES, Bucket, BucketAddress
from tests.fakes.daemons.daemon import free_port
from tests.fakes.storage.object_servers import ObjectServer

PIECE = 3 << 20


async def pieces(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield bytes([number]) * PIECE


async def test_parts_become_one_object(server: ObjectServer) -> None:
    bucket = Bucket(server.address("parts"))
    await bucket.put_parts("big", pieces(7))
    found = await bucket.head("big")
    assert (found.key, found.size, abs(found.modified_at - time.time()) < 120) == ("big", 7 * PIECE, True)
    whole = b"".join([piece async for piece in bucket.read("big", 0, found.size)])
    assert whole == b"".join([piece async for piece in pieces(7)])
    assert [piece async for piece in bucket.read("big", PIECE - 1, PIECE + 1)] == [b"\x00\x01"]
    assert [len(piece) async for piece in bucket.read("big", 0, PART_BYTES + 5)] == [PART_BYTES, 5]
    with pytest.raises(GatewayError):
        assert [piece async for piece in bucket.read("big", found.size, found.size + 5)] == []
    await bucket.delete("big")
    with pytest.raises(GatewayError) as gone:
        await bucket.head("big")
    assert gone.value.kind is ErrorKind.NOT_FOUND
    await bucket.delete("big")


async def test_a_failing_or_cancelled_sender_leaves_nothing(server: ObjectServer) -> None:
    bucket = Bucket(server.address("aborted"))
    begun = asyncio.Event()

    async def broken() -> AsyncIterator[bytes]:
        async for piece in pieces(4):
            yield piece
        raise ConnectionResetError("the client left")

    async def stalled() -> AsyncIterator[bytes]:
        async for piece in pieces(4):
            yield piece
        begun.set()
        await asyncio.Event().wait()

    with pytest.raises(ConnectionResetError):
        await bucket.put_parts("broken", broken())
    async with asyncio.TaskGroup() as group:
        putting = group.create_task(bucket.put_parts("stalled", stalled()))
        await begun.wait()
        putting.cancel()
    assert putting.cancelled()
    assert [each.key async for each in bucket.list("broken")] == []
    for key in ("broken", "stalled"):
        with pytest.raises(GatewayError):
            await bucket.head(key)
        if server.kind == "moto":
            assert f"aborted/{key}" not in server.uploads()


async def test_a_store_that_fails_in_the_middle_is_told_and_ends_the_upload(server: ObjectServer) -> None:
    bucket = Bucket(server.address("lost", bucket="no-such-bucket"))
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"x" * PIECE
            await asyncio.sleep(0.01)

    with pytest.raises(GatewayError):
        await asyncio.wait_for(bucket.put_parts("big", endless()), 30)
    assert sent < 1000


async def test_the_start_checks_that_a_bucket_can_be_written(
    server: ObjectServer, request: pytest.FixtureRequest
) -> None:
    await Bucket(server.address("checked")).check()
    assert [each.key async for each in Bucket(server.address("checked")).list("probe")] == []
    with pytest.raises(GatewayError) as absent:
        await Bucket(server.address("x", bucket="no-such-bucket")).check()
    assert absent.value.kind is ErrorKind.NOT_CONFIGURED
    assert absent.value.param == "file_store"
    assert absent.value.message == "cannot use file_store s3://no-such-bucket/x: there is no such bucket"


async def test_wrong_keys_and_dead_addresses_are_refused(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRIES", 0)
    dead = BucketAddress("s3://b/x", f"http://127.0.0.1:{free_port()}", "r", "key", "secret")
    with pytest.raises(
        GatewayError, match="cannot use file_store s3://b/x: cannot reach the object store: "
    ) as told:
        await Bucket(dead).check()
    assert told.value.kind is ErrorKind.NOT_CONFIGURED
    monkeypatch.setattr(module, "PROBE_SECONDS", 0.0)
    with pytest.raises(GatewayError, match="it did not answer within 0 seconds"):
        await Bucket(server.address("x")).check()


async def test_a_server_that_knows_keys_refuses_others(server: ObjectServer) -> None:
    bucket = Bucket(server.address("keys", secret_key="wrong"))
    if server.kind == "moto":
        # It takes every key.
        await bucket.check()
        return
    with pytest.raises(GatewayError, match="the object store refuses the keys"):
        await bucket.check()


async def test_a_taken_key_is_a_conflict_where_the_server_can_tell(server: ObjectServer) -> None:
    bucket = Bucket(server.address("taken"))
    await bucket.put("a", b"1")
    if server.kind != "moto":
        # It ignores the condition, so every key is used once.
        await bucket.put("a", b"2")
        return
    with pytest.raises(GatewayError) as taken:
        await bucket.put("a", b"2")
    assert taken.value.kind is ErrorKind.CONFLICT
    assert [piece async for piece in bucket.read("a", 0, 1)] == [b"1"]


def test_the_options_of_each_kind_of_store() -> None:
    s3 = BucketAddress("s3://b/p", "http://h", "r", "a", "s")
    assert s3.options() == {
        "endpoint": "http://h",
        "region": "r",
        "access_key_id": "a",
        "secret_access_key": "s",
        "checksum_algorithm": "SHA256",
    }
    assert BucketAddress("gs://b", secret_key="{}").options() == {"service_account_key": "{}"}
    azure = BucketAddress("az://c", "http://h", access_key="a", secret_key="s")
    assert azure.options() == {"endpoint": "http://h", "account_name": "a", "account_key": "s"}


def test_the_library_is_an_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(extras.MODULES, extras.PackageExtra.OBJECT_STORE, ("no_such_module",))  # type: ignore[call-overload]
    with pytest.raises(GatewayError) as refused:
        Bucket(BucketAddress("s3://b/p"))
    assert refused.value.kind is ErrorKind.NOT_CONFIGURED
    assert "pip install 'gatewayd[object-store]' installs it" in refused.value.message
    monkeypatch.undo()
    with pytest.raises(GatewayError, match="cannot use file_store gs://b: "):
        Bucket(BucketAddress("gs://b", secret_key="no JSON"))
