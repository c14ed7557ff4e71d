"""Tests for gatewayd.storage.limits.stored_bytes, and of quotas over the databases."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.accounts.records import Group, MembershipSource
from gatewayd.batches.files import INPUT_PURPOSE, BatchFiles, FileWishes
from gatewayd.batches.records import BatchFile
from gatewayd.errors import GatewayError
from gatewayd.ingest.blobs import LocalBlobs
from gatewayd.ingest.updates import IngestStores
from gatewayd.ingest.upload import NewFile, UploadRules, UploadService
from gatewayd.limits.book import LimitBook
from gatewayd.limits.records import LimitRule, LimitSubject
from gatewayd.limits.storage_quotas import QUOTA_CODE, StorageQuotas
from gatewayd.storage.batches import TortoiseBatchFiles
from gatewayd.storage.engine.database import Database
from gatewayd.storage.files import TortoiseFiles
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.jobs import TortoiseJobs
from gatewayd.storage.limits.rules import TortoiseLimitRules
from gatewayd.storage.limits.stored_bytes import TortoiseStoredBytes
from gatewayd.storage.users import TortoiseUsers
from gatewayd.transactions import CallbackTransactor
from tests.fakes.accounts.records import user
from tests.fakes.documents.memory_stores import Library, MemoryPassages
from tests.fakes.documents.records import file

GROUP_QUOTA = LimitRule("l1", LimitSubject.GROUP, "g1", "Staff", storage_bytes=1000)


async def fill(database: Database) -> TortoiseStoredBytes:
    users, groups = TortoiseUsers(), TortoiseGroups()
    for user_id in ("u1", "u2", "u3"):
        await users.add(user(user_id), None)
    await groups.add(Group("g1", "Staff"))
    for source in (MembershipSource.MANUAL, MembershipSource.SCIM):
        await groups.add_members("g1", ["u1", "u2"], source=source, at=1)
    return TortoiseStoredBytes()


async def test_files_of_documents_and_batches_are_summed(database: Database) -> None:
    sizes = await fill(database)
    assert (await sizes.stored_bytes(), await sizes.stored_bytes(group_id="g1")) == (0, 0)
    await TortoiseFiles().add(file("f1", user_id="u1", size=2**40))
    await TortoiseFiles().add(file("f2", user_id="u3", size=5))
    await TortoiseFiles().add(file("f3", user_id="gone", size=7))
    await TortoiseBatchFiles().add(BatchFile("b1", "u2", "x", INPUT_PURPOSE, 11, 1, 2))
    await TortoiseBatchFiles().add(BatchFile("b2", "u1", "y", INPUT_PURPOSE, 13, 1, 2))
    assert await sizes.stored_bytes(user_id="u1") == 2**40 + 13
    assert await sizes.stored_bytes(user_id="u2") == 11
    assert await sizes.stored_bytes(group_id="g1") == 2**40 + 24
    assert await sizes.stored_bytes() == 2**40 + 36


async def test_a_rule_keeps_its_quota(database: Database) -> None:
    rules = TortoiseLimitRules()
    await rules.put(GROUP_QUOTA)
    assert await rules.find("l1") == GROUP_QUOTA


class QuotaSite:
    """Two processes over one database, each with uploads and files of batches under one quota."""

    def __init__(self, database: Database, folder: Path) -> None:
        commits = CallbackTransactor(database)
        self.blobs = LocalBlobs(folder / "files")
        stores = IngestStores(commits, TortoiseFiles(), TortoiseJobs(), MemoryPassages(Library()), self.blobs)
        self.uploads: list[UploadService] = []
        self.batches: list[BatchFiles] = []
        for place in range(2):
            quotas = StorageQuotas(TortoiseStoredBytes(), self.groups_of, commits)
            quotas.book = LimitBook([GROUP_QUOTA])
            self.uploads.append(
                UploadService(stores, UploadRules(10**6, 50, frozenset()), lambda: None, quotas=quotas)
            )
            blobs = LocalBlobs(folder / f"batches{place}")
            self.batches.append(BatchFiles(TortoiseBatchFiles(), blobs, quotas=quotas))

    async def groups_of(self, user_id: str) -> list[str]:
        return (await TortoiseGroups().list_group_ids([user_id])).get(user_id, [])  # type: ignore[return-value]

    async def upload(self, place: int) -> str:
        """Upload 90 bytes in one of both processes, as one of both members."""
        user_id = ("u1", "u2")[place % 2]
        if place % 4 < 2:
            new = NewFile(f"{place}.txt", None, user_id, {}, process=False)
            return (await self.uploads[place % 2].keep(new, pieces())).id
        batches = self.batches[place % 2]
        return (await batches.upload(user_id, "b", pieces(), lambda: FileWishes(INPUT_PURPOSE))).id


async def pieces() -> AsyncIterator[bytes]:
    for _ in range(9):
        await asyncio.sleep(0)
        yield b"0123456789"


async def test_uploads_of_two_processes_never_exceed_a_quota(database: Database, tmp_path: Path) -> None:
    sizes, site = await fill(database), QuotaSite(database, tmp_path / "disk")
    results = await asyncio.gather(*map(site.upload, range(24)), return_exceptions=True)
    refused = [each for each in results if not isinstance(each, str)]
    assert {each.code for each in refused if isinstance(each, GatewayError)} == {QUOTA_CODE}
    stored = await sizes.stored_bytes(group_id="g1")
    assert stored == 90 * (len(results) - len(refused))
    assert 0 < stored <= 1000
    kept = [path for path in (tmp_path / "disk").rglob("*") if path.is_file()]
    assert len(kept) == len(results) - len(refused)
    for place in range((990 - stored) // 90):
        await site.upload(place)
    with pytest.raises(GatewayError, match="of which 990 are used"):
        await site.upload(0)
    with pytest.raises(GatewayError) as caught:
        await site.uploads[0].check_room("u1", 11)
    assert caught.value.code == QUOTA_CODE
    await site.uploads[0].check_room("u3", 10**6)
