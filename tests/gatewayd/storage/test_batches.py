"""Tests for gatewayd.storage.batches."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from gatewayd.batches.passed_state import PassedState
from gatewayd.batches.records import Batch, BatchDialect, BatchFile, BatchStatus
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.nodes.duties import LEASE_TAKEN
from gatewayd.nodes.records import Node
from gatewayd.storage import batches as store_module
from gatewayd.storage.batches import (
    TortoiseBatchAnswers,
    TortoiseBatches,
    TortoiseBatchFiles,
    TortoisePassedStates,
)
from gatewayd.storage.limits.usage import TortoiseUsage
from gatewayd.storage.nodes.leases import TortoiseLeases
from gatewayd.storage.nodes.nodes import TortoiseNodes
from gatewayd.storage.tables.accounts import UserRow
from gatewayd.storage.tables.batches import PassedBatchRow
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


async def test_the_state_of_a_passed_batch(stored: Chatting) -> None:
    states, batches = TortoisePassedStates(), TortoiseBatches()
    await batches.add(FULL)
    assert await states.find("batch_2") is None
    await states.add("batch_2", PassedState("up", sent=3))
    await states.add("batch_2", PassedState("other"))
    assert await states.find("batch_2") == PassedState("up", sent=3)
    changed = PassedState("up", "file-1", 3, 7, "batch-up", ("x", "y"), True, 9)
    for state in (PassedState("up"), changed):
        await states.save("batch_2", state)
        assert await states.find("batch_2") == state
    for change in (states.save("gone", changed), states.add("gone", changed), states.add("x" * 300, changed)):
        with pytest.raises(GatewayError) as caught:
            await change
        assert caught.value.kind is ErrorKind.NOT_FOUND
    await states.remove("batch_2")
    assert await states.find("batch_2") is None
    # A state goes with its batch.
    await states.save("batch_2", changed)
    await batches.remove("batch_2")
    assert await PassedBatchRow.all().count() == 0


@pytest.mark.parametrize("location", ["postgres"], indirect=True)
async def test_a_node_that_was_taken_over_changes_nothing(stored: Chatting) -> None:
    leases = TortoiseLeases()
    for name in ("n1", "n2"):
        await TortoiseNodes().add(Node(name, name), 30)
    former = await leases.take("batches", "n1", -1)
    assert former is not None
    fence = partial(leases.fenced, former)
    batches, states = TortoiseBatches(fence), TortoisePassedStates(fence)
    answers = TortoiseBatchAnswers(fence)
    await TortoiseBatches().add(FULL)
    await answers.add("batch_2", b"1 1 {}\n")
    await states.save("batch_2", PassedState("up"))
    assert await batches.change("batch_2", set(BatchStatus), completed=2)
    await leases.take("batches", "n2", 30)
    key = UsageKey("2026-01-01", "u1", "", "m", "up", "chat")
    for change in (
        batches.change("batch_2", set(BatchStatus), completed=9),
        batches.store_usage("batch_2", {key: UsageSums()}, 9, 9),
        states.save("batch_2", PassedState("other")),
        states.remove("batch_2"),
        answers.add("batch_2", b"2 1 {}\n"),
        answers.remove("batch_2"),
        answers.remove_ended(),
    ):
        with pytest.raises(GatewayError, match="another node has taken it over") as caught:
            await change
        assert caught.value.code == LEASE_TAKEN
    assert await batches.find("batch_2") == replace(FULL, completed=2)
    assert await states.find("batch_2") == PassedState("up")
    assert await UsageRow.all().count() == 0
    assert await read(answers) == [b"1 1 {}\n"]


async def test_many_answers_are_deleted_in_several_transactions(
    stored: Chatting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease cannot be renewed while one of them holds it."""
    begun: list[str] = []

    @asynccontextmanager
    async def fence() -> AsyncIterator[None]:
        begun.append("fence")
        yield

    monkeypatch.setattr(store_module, "REMOVED_ROWS", 2)
    answers = TortoiseBatchAnswers(fence)
    await TortoiseBatches().add(FULL)
    await TortoiseBatches().add(replace(FULL, id="batch_1"))
    for batch_id in ["batch_2"] * 5 + ["batch_1"]:
        await answers.add(batch_id, b"1 1 {}\n")
    begun.clear()
    await answers.remove("batch_2")
    assert (begun, await answers.batch_ids()) == (["fence"] * 3, {"batch_1"})


async def read(answers: TortoiseBatchAnswers, batch_id: str = "batch_2") -> list[bytes]:
    return [piece async for piece in answers.read(batch_id)]


async def test_answers_of_a_batch(stored: Chatting, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, batches = TortoiseBatchAnswers(), TortoiseBatches()
    await batches.add(FULL)
    assert await read(answers) == []
    assert set(await answers.batch_ids()) == set()
    for piece in (b"1 1 \xff\n", b"2 1 {}\n", b"3 0 {}\n"):
        await answers.add("batch_2", piece)
    assert set(await answers.batch_ids()) == {"batch_2"}
    assert await read(answers) == [b"1 1 \xff\n2 1 {}\n3 0 {}\n"]
    monkeypatch.setattr(store_module, "READ_BYTES", 12)
    assert await read(answers) == [b"1 1 \xff\n", b"2 1 {}\n", b"3 0 {}\n"]
    monkeypatch.setattr(store_module, "PAGE_SIZE", 2)
    monkeypatch.setattr(store_module, "READ_BYTES", 100)
    assert await read(answers) == [b"1 1 \xff\n2 1 {}\n", b"3 0 {}\n"]
    with pytest.raises(GatewayError) as caught:
        await answers.add("gone", b"")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    await answers.remove_ended()
    assert len(await read(answers)) == 2
    await batches.change("batch_2", {BatchStatus.IN_PROGRESS}, status=BatchStatus.COMPLETED)
    await answers.remove_ended()
    assert await read(answers) == []
    await answers.add("batch_2", b"1 1 {}\n")
    await answers.remove("batch_2")
    assert await read(answers) == []
    await answers.add("batch_2", b"1 1 {}\n")
    await batches.remove("batch_2")
    assert await read(answers) == []


async def test_answers_in_a_file_are_taken_over_once(stored: Chatting) -> None:
    answers = TortoiseBatchAnswers()
    await TortoiseBatches().add(FULL)
    await TortoiseBatches().add(replace(FULL, id="batch_1", status=BatchStatus.COMPLETED))
    for name in ("batch_1", "gone", "x" * 300):
        assert not await answers.take_over(name, iter([b"1 1 {}\n"]))
    done = await asyncio.gather(
        *(answers.take_over("batch_2", iter([b"1 1 {}\n", b"2 1 {}\n"])) for _ in "ab")
    )
    assert sorted(done) == [False, True]
    assert await read(answers) == [b"1 1 {}\n2 1 {}\n"]

    def broken() -> Iterator[bytes]:
        yield b"1 1 {}\n"
        raise GatewayError(ErrorKind.INTERNAL, "cannot read the disk")

    await answers.remove("batch_2")
    with pytest.raises(GatewayError, match="the disk"):
        await answers.take_over("batch_2", broken())
    assert await read(answers) == []
