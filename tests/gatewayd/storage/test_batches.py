"""Tests for gatewayd.storage.batches."""

from dataclasses import replace
from typing import Any

import pytest

from gatewayd.batches.records import Batch, BatchDialect, BatchFile, BatchStatus
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.storage.batches import TortoiseBatches, TortoiseBatchFiles
from gatewayd.storage.limits.usage import TortoiseUsage
from gatewayd.storage.tables.accounts import UserRow
from gatewayd.storage.tables.usage import UsageRow
from tests.gatewayd.storage.conftest import Chatting

FULL = Batch(
    id="batch_2",
    user_id="u1",
    dialect=BatchDialect.OPENAI,
    endpoint="/v1/embeddings",
    input_file_id="file-1",
    status=BatchStatus.IN_PROGRESS,
    created_at=2,
    expires_at=9,
    key_id="k",
    total=3,
    completed=1,
    failed=1,
    output_file_id="file-2",
    error_file_id="file-3",
    started_at=3,
    cancelled_at=4,
    ended_at=5,
    metadata={"a": "ö"},
    errors=[{"code": "c", "line": 1}],
)
FILE = BatchFile("file-1", "u1", "a.jsonl", "batch", 2**33, 1, 9)


async def test_batches(stored: Chatting) -> None:
    store = TortoiseBatches()
    await store.add(FULL)
    assert await store.find("batch_2") == FULL
    older = replace(FULL, id="batch_1", created_at=1, status=BatchStatus.COMPLETED, key_id=None, ended_at=1)
    other = replace(FULL, id="msgbatch_3", user_id="u2", dialect=BatchDialect.ANTHROPIC, created_at=3)
    await store.add(older)
    await store.add(other)

    async def ids(user: str | None = "u1", dialect: BatchDialect | None = None, **page: str) -> list[str]:
        pages = {"after": None, "before": None, **page}
        return [each.id for each in await store.list(user, dialect, limit=10, **pages)]

    assert await ids() == ["batch_2", "batch_1"]
    assert await ids(None) == ["msgbatch_3", "batch_2", "batch_1"]
    assert await ids(None, BatchDialect.ANTHROPIC) == ["msgbatch_3"]
    assert (await ids(after="batch_2"), await ids(before="batch_1")) == (["batch_1"], ["batch_2"])
    assert [each.id for each in await store.unfinished()] == ["batch_2", "msgbatch_3"]
    assert (await store.count_unfinished("u1"), await store.count_unfinished("u9")) == (1, 0)
    assert not await store.change("batch_2", {BatchStatus.VALIDATING}, completed=2)
    assert await store.change(
        "batch_2", {BatchStatus.IN_PROGRESS}, status=BatchStatus.FAILED, errors=[], completed=2
    )
    assert await store.find("batch_2") == replace(FULL, status=BatchStatus.FAILED, errors=[], completed=2)
    assert await store.prune(2) == 1
    assert await store.find("batch_1") is None
    assert await store.remove("batch_2")
    assert not await store.remove("batch_2")


async def test_usage_is_stored_with_the_counts_or_not_at_all(
    stored: Chatting, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TortoiseBatches()
    await store.add(FULL)
    await store.add(replace(FULL, id="batch_9", status=BatchStatus.COMPLETED))
    rows = {UsageKey("2026-11-28", "u1", "", "m", "p", "chat"): UsageSums(requests=2, prompt=7)}

    async def counted() -> list[tuple[int, int]]:
        return [(row.requests, row.prompt) for row in await UsageRow.all()]

    assert await store.store_usage("batch_2", rows, 3, 0)
    assert await store.find("batch_2") == replace(FULL, completed=3, failed=0)
    assert await counted() == [(2, 7)]
    # Neither for a batch that has ended, nor for none, nor when the second part fails.
    assert not await store.store_usage("batch_9", rows, 3, 0)
    assert not await store.store_usage("gone", rows, 3, 0)
    add = TortoiseUsage.add

    async def failing(usage: TortoiseUsage, rows: Any) -> None:
        await add(usage, rows)
        raise GatewayError(ErrorKind.UNAVAILABLE, "no")

    with monkeypatch.context() as patch, pytest.raises(GatewayError, match="no"):
        patch.setattr(TortoiseUsage, "add", failing)
        await store.store_usage("batch_2", rows, 1, 1)
    assert await store.find("batch_2") == replace(FULL, completed=3, failed=0)
    assert await counted() == [(2, 7)]
    assert await store.store_usage("batch_2", {}, 2, 1)
    assert await counted() == [(2, 7)]


async def test_files(stored: Chatting) -> None:
    store, batches = TortoiseBatchFiles(), TortoiseBatches()
    await store.add(FILE)
    await store.add(replace(FILE, id="file-2", created_at=2, purpose="batch_output", size=1))
    await store.add(replace(FILE, id="file-3", user_id="u2"))
    assert await store.find("file-1") == FILE
    assert [each.id for each in await store.list("u1", None, after=None, limit=9)] == ["file-2", "file-1"]
    assert [each.id for each in await store.list("u1", "batch", after=None, limit=9)] == ["file-1"]
    assert [each.id for each in await store.list("u1", None, after="file-2", limit=9)] == ["file-1"]
    assert await store.usage("u1") == (2, 2**33 + 1)
    assert await store.usage("u9") == (0, 0)
    assert await store.named("u1", "batch_output", "a.jsonl") == ["file-2"]
    assert await store.named("u2", "batch_output", "a.jsonl") == []
    assert sorted([file_id async for file_id in store.ids()]) == ["file-1", "file-2", "file-3"]
    await batches.add(FULL)
    assert sorted(await store.expired(9, 9)) == ["file-2", "file-3"]
    assert await store.expired(8, 9) == []
    await store.remove(["file-1", "\x00"])
    assert await store.find("file-1") is None


async def test_they_go_with_their_user(stored: Chatting) -> None:
    await TortoiseBatches().add(FULL)
    await TortoiseBatchFiles().add(FILE)
    await UserRow.filter(id="u1").delete()
    assert await TortoiseBatches().find(FULL.id) is None
    assert await TortoiseBatchFiles().find(FILE.id) is None


@pytest.mark.parametrize("bad", ["\x00", "\ud800", "x" * 300])
async def test_ids_that_cannot_be(stored: Chatting, bad: str) -> None:
    assert await TortoiseBatches().find(bad) is None
    assert await TortoiseBatches().list("u1", None, after=bad, limit=1) == []
    assert await TortoiseBatchFiles().find(bad) is None
    assert await TortoiseBatchFiles().list("u1", None, after=bad, limit=1) == []
    assert await TortoiseBatchFiles().list("u1", bad, after=None, limit=1) == []
