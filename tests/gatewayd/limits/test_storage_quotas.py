"""Tests for gatewayd.limits.storage_quotas: no number of uploads together exceeds a quota."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.book import LimitBook
from gatewayd.limits.records import LimitRule, LimitSubject
from gatewayd.limits.storage_quotas import QUOTA_CODE, StorageQuotas, StorageState
from tests.fakes.accounts.memory_stores import Memory
from tests.fakes.limits.memory_sizes import MemorySizes


def rule(subject: LimitSubject, storage: int | None, subject_id: str = "", **more: int) -> LimitRule:
    return LimitRule(f"{subject}{subject_id}", subject, subject_id, "Staff", storage_bytes=storage, **more)


OWN = rule(LimitSubject.USER, 100, "u1")


class QuotaHouse:
    """Quotas over sizes in memory."""

    def __init__(self, *rules: LimitRule) -> None:
        self.sizes = MemorySizes()
        self.sizes.groups = {"u1": ["g1"], "u2": ["g1"]}
        self.quotas = StorageQuotas(self.sizes, self.sizes.groups_of, Memory())
        self.use(*rules)

    def use(self, *rules: LimitRule) -> None:
        self.quotas.book = LimitBook(rules)

    async def upload(self, pieces: Sequence[int], user_id: str = "u1", pause: float = 0.0) -> int:
        """Upload pieces of these sizes; return the bytes that reached the disk."""
        written = 0
        async with self.quotas.reserved(user_id) as space:
            async for piece in space.fill(_stream(pieces, pause)):
                written += len(piece)
            async with space.settled(written):
                self.sizes.files.append((user_id, written))
        return written

    async def refused(self, pieces: Sequence[int], user_id: str = "u1") -> GatewayError:
        with pytest.raises(GatewayError) as caught:
            await self.upload(pieces, user_id)
        assert (caught.value.kind, caught.value.code) == (ErrorKind.TOO_LARGE, QUOTA_CODE)
        return caught.value


async def _stream(pieces: Sequence[int], pause: float) -> AsyncIterator[bytes]:
    for size in pieces:
        await asyncio.sleep(pause)
        yield b"x" * size


async def test_storage_without_a_quota_is_neither_counted_nor_locked() -> None:
    house = QuotaHouse(rule(LimitSubject.USER, None, "u1", parallel=1))
    assert await house.upload([10**6]) == 10**6
    assert house.sizes.reads == 0
    assert await house.quotas.state("u1") == StorageState(10**6, None)


async def test_the_piece_that_exceeds_a_quota_is_refused_before_it_is_written() -> None:
    house = QuotaHouse(OWN)
    await house.upload([60])
    refused = await house.refused([40, 1])
    assert refused.message == (
        "cannot store the file: it exceeds the storage quota of 100 bytes of this account,"
        " of which 60 are used"
    )
    await house.upload([40])
    assert await house.quotas.state("u1") == StorageState(100, 0)
    house.use(rule(LimitSubject.USER, 50, "u1"))
    assert await house.quotas.state("u1") == StorageState(100, 0)


async def test_a_declared_size_is_refused_without_a_byte() -> None:
    house = QuotaHouse(OWN)
    with pytest.raises(GatewayError) as caught:
        async with house.quotas.reserved("u1", 101):
            raise AssertionError
    assert caught.value.code == QUOTA_CODE
    async with house.quotas.reserved("u1", 100) as space:
        # What is announced is reserved once.
        assert [len(piece) async for piece in space.fill(_stream([50, 50], 0))] == [50, 50]
    await house.upload([100])


@pytest.mark.parametrize(
    ("quota", "users"),
    [
        (OWN, ["u1"]),
        (rule(LimitSubject.DEFAULT, 100), ["u1"]),
        (rule(LimitSubject.MEMBER, 100, "g1"), ["u1"]),
        (rule(LimitSubject.GROUP, 100, "g1"), ["u1", "u2"]),
        (rule(LimitSubject.TOTAL, 100), ["u1", "u2", "u3"]),
    ],
    ids=lambda value: value.subject if isinstance(value, LimitRule) else "",
)
async def test_parallel_uploads_never_exceed_a_quota_together(quota: LimitRule, users: Sequence[str]) -> None:
    house = QuotaHouse(quota)
    uploads = [
        house.upload([5, 5, 5, 5], users[place % len(users)], 0.001 * (place % 3)) for place in range(30)
    ]
    results = await asyncio.gather(*uploads, return_exceptions=True)
    assert all(isinstance(each, int | GatewayError) for each in results)
    stored = sum(size for _, size in house.sizes.files)
    assert 0 < stored <= 100
    # What was refused holds nothing: the rest of the quota is free.
    if stored < 100:
        await house.upload([100 - stored], users[0])
    await house.refused([1], users[0])


async def test_a_quota_of_each_counts_only_their_own_files() -> None:
    house = QuotaHouse(rule(LimitSubject.MEMBER, 100, "g1"), rule(LimitSubject.DEFAULT, 10))
    house.use(rule(LimitSubject.MEMBER, 100, "g1"))
    await asyncio.gather(house.upload([100]), house.upload([100], "u2"), house.upload([500], "u3"))
    await house.refused([1], "u2")


async def test_another_process_that_was_faster_is_seen_in_the_transaction_of_the_row() -> None:
    house = QuotaHouse(OWN)
    async with house.quotas.reserved("u1") as space:
        assert [len(piece) async for piece in space.fill(_stream([60], 0))] == [60]
        house.sizes.files.append(("u1", 50))
        with pytest.raises(GatewayError) as caught:
            async with space.settled(60):
                raise AssertionError
    assert caught.value.code == QUOTA_CODE


async def test_files_that_are_deleted_meanwhile_make_room() -> None:
    house = QuotaHouse(OWN)
    house.sizes.files.append(("u1", 60))
    async with house.quotas.reserved("u1", 10) as space:
        house.sizes.files.clear()
        assert [len(piece) async for piece in space.fill(_stream([50, 50], 0))] == [50, 50]
