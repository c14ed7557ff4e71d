"""Tests for gatewayd.pipeline.responses.pending_usage and what it examines."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.recorder import count_call
from gatewayd.metering.records import NO_USAGE, CallOutcome, MeteredCall, TokenUsage
from gatewayd.metering.usage_records import UsageKey, UsageSums
from gatewayd.pipeline.responses.archive import ArchiveBounds, ResponseArchive, StoredResponse
from gatewayd.pipeline.responses.pending_usage import BackgroundUsage, EndedAnswer, pending_body, pending_of
from gatewayd.tasks import TaskRegistry
from tests.fakes.providers.models import make_actor, make_model
from tests.fakes.storage.memory_responses import MemoryResponses
from tests.gatewayd.pipeline.filters.test_streams import Reads

ANN = make_actor("ann", groups=("crew",))
MODEL = make_model("m")
NOON = 1_790_000_000
KEY = UsageKey("2026-09-21", "ann", "k1", "m", "acme", "responses")
TOLD = TokenUsage(prompt=9, cached=4, completion=20, reasoning=5)


class Charged:
    """A `ChargingAdmission` that keeps what it is charged with."""

    def __init__(self) -> None:
        self.calls: list[MeteredCall] = []
        self.is_open = asyncio.Event()
        self.is_open.set()

    def concerns(self, call: MeteredCall) -> bool:
        return False

    async def admit(self, call: MeteredCall, estimate: TokenUsage) -> None:
        raise AssertionError("a response that has ended is not admitted")

    def headers(self, call: MeteredCall) -> Mapping[str, str]:
        return {}

    def settled(self, call: MeteredCall) -> None:
        raise AssertionError("it was settled when its reply had ended")

    async def can_hold(self, call: MeteredCall, estimate: TokenUsage) -> bool:
        return True

    async def charge(self, call: MeteredCall) -> None:
        await self.is_open.wait()
        self.calls.append(call)


def price(call: MeteredCall, usage: TokenUsage) -> int | None:
    fee = 100 if call.source == "fee" else 0
    return None if call.source == "odd" else fee + 7 * usage.total


class Bench:
    """A response in the background whose request was counted by an estimate of its prompt."""

    def __init__(
        self, counted: TokenUsage, source: str = "acme", *, is_estimated: bool | None = None
    ) -> None:
        self.store, self.charged, self.tasks = MemoryResponses(), Charged(), TaskRegistry()
        self.archive = ResponseArchive(self.store, clock=lambda: NOON)
        self.usage = BackgroundUsage(self.archive, CallMeter([], [self.charged], price), self.tasks)
        call = MeteredCall("ann", ("crew",), "k1", "m", "responses")
        call.source, call.ended_at, call.outcome = source, call.began, CallOutcome.ANSWERED
        call.usage, call.is_estimated = counted, counted.total > 0 if is_estimated is None else is_estimated
        call.cost = price(call, counted)
        self.row = UsageSums()
        count_call(self.row, call)
        # As it comes back from a database.
        body = orjson.loads(orjson.dumps(pending_body(call, "queued", NOON)))
        self.stored = StoredResponse("r1", "ann", "m", body, [], NOON, NOON + 10, source=source)

    async def settle(self, told: TokenUsage | None) -> UsageSums:
        """Settle, and return the row of usage."""
        await self.store.add(self.stored, ArchiveBounds())
        await self.usage.settle(self.stored, MODEL, ANN, told)
        for sums in self.store.usage.values():
            self.row.add(sums)
        return self.row


@pytest.mark.parametrize("counted", [TokenUsage(prompt=3), NO_USAGE, TokenUsage(prompt=30)])
async def test_the_row_has_what_the_provider_told(counted: TokenUsage) -> None:
    bench = Bench(counted)
    row = await bench.settle(TOLD)
    assert list(bench.store.usage) == [KEY]
    assert (row.requests, row.estimated, row.unpriced) == (1, 0, 0)
    assert (row.prompt, row.cached, row.completion, row.reasoning, row.cost) == (9, 4, 20, 5, 7 * 29)
    # Budgets have had the estimate, and get the rest; they take nothing back.
    [charged] = bench.charged.calls
    assert charged.usage is not None
    assert charged.usage.total == max(0, 9 - counted.prompt) + 20
    assert charged.cost == max(0, 7 * (29 - counted.prompt))
    assert (charged.key_id, charged.group_ids, charged.source) == ("k1", ("crew",), "acme")
    assert not bench.store.kept["r1"].response


async def test_a_model_without_a_price_stays_without_one() -> None:
    row = await Bench(TokenUsage(prompt=3), "odd").settle(TOLD)
    assert (row.unpriced, row.cost, row.prompt) == (1, 0, 9)


@pytest.mark.parametrize("counted", [TokenUsage(prompt=3), NO_USAGE])
async def test_the_price_of_a_request_counts_once(counted: TokenUsage) -> None:
    assert (await Bench(counted, "fee").settle(TOLD)).cost == 100 + 7 * 29


async def test_tokens_that_the_first_reply_told_are_no_estimate() -> None:
    bench = Bench(TokenUsage(prompt=9), is_estimated=False)
    row = await bench.settle(TOLD)
    assert (row.prompt, row.completion, row.cost) == (9, 20, 7 * 29)
    assert (row.requests, row.estimated, row.unpriced) == (1, 0, 0)


async def test_a_reader_who_leaves_does_not_keep_budgets_from_the_charge() -> None:
    bench = Bench(TokenUsage(prompt=3))
    bench.charged.is_open.clear()
    reader = asyncio.ensure_future(bench.settle(TOLD))
    while not bench.store.usage:
        await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    bench.charged.is_open.set()
    while bench.tasks.count:
        await asyncio.sleep(0)
    assert len(bench.charged.calls) == 1


async def test_several_readers_count_it_once() -> None:
    bench = Bench(TokenUsage(prompt=3))
    await bench.settle(TOLD)
    await asyncio.gather(*(bench.usage.settle(bench.stored, MODEL, ANN, TOLD) for _ in range(3)))
    assert bench.store.usage[KEY].completion == 20
    assert len(bench.charged.calls) == 1
    await bench.usage.settle(bench.store.kept["r1"], MODEL, ANN, TOLD)
    assert bench.store.usage[KEY].completion == 20


@pytest.mark.parametrize("told", [None, NO_USAGE])
async def test_an_end_without_usage_keeps_the_estimate(told: TokenUsage | None) -> None:
    bench = Bench(TokenUsage(prompt=3))
    row = await bench.settle(told)
    assert (row.prompt, row.estimated, bench.store.usage) == (3, 1, {})
    assert not bench.store.kept["r1"].response
    assert not bench.charged.calls


def test_only_what_runs_is_pending() -> None:
    stored = Bench(NO_USAGE).stored
    assert pending_of(stored) is not None
    assert pending_of(replace(stored, response={})) is None
    call = MeteredCall("ann", (), "", "m", "responses")
    assert pending_body(call, "queued", NOON) == {}
    call.usage = NO_USAGE
    assert pending_body(call, "completed", NOON) == {}
    assert pending_body(None, "queued", NOON) == {}


def response(status: str, response_id: str = "r1") -> dict[str, Any]:
    usage = {"input_tokens": 9, "output_tokens": 20}
    return {"id": response_id, "status": status, "usage": usage, "output": []}


def event(status: str) -> bytes:
    data = orjson.dumps({"type": f"response.{status}", "response": response(status)})
    return b"event: response.%s\ndata: %s\n\n" % (status.encode(), data)


@pytest.mark.parametrize(
    ("reads", "kind", "is_ended"),
    [
        ([orjson.dumps(response("completed"))], "application/json", True),
        ([orjson.dumps(response("cancelled"))[:9], orjson.dumps(response("cancelled"))[9:]], "", True),
        ([orjson.dumps(response("in_progress"))], "application/json", False),
        ([orjson.dumps(response("completed", "r2"))], "application/json", False),
        ([orjson.dumps({"object": "list", "data": [response("completed")]})], "application/json", False),
        ([b"{"], "application/json", False),
        ([orjson.dumps({**response("completed"), "status": ["completed"]})], "application/json", False),
        ([event("in_progress"), event("incomplete")], "text/event-stream", True),
        ([event("in_progress")], "text/event-stream", False),
    ],
)
async def test_the_end_is_told_before_it_passes(reads: list[bytes], kind: str, is_ended: bool) -> None:
    told: list[TokenUsage | None] = []
    passed: list[bytes] = []

    async def ended(usage: TokenUsage | None) -> None:
        assert passed == reads[:-1] or not passed
        told.append(usage)

    async for read in EndedAnswer(Reads(reads, kind), "r1", ended):
        passed.append(read)
    assert passed == reads
    assert told == ([TokenUsage(prompt=9, completion=20)] if is_ended else [])


async def test_a_reply_passes_although_nothing_can_be_stored(caplog: pytest.LogCaptureFixture) -> None:
    async def ended(usage: TokenUsage | None) -> None:
        raise GatewayError(ErrorKind.INTERNAL, "cannot write: the disk is full")

    reads = [orjson.dumps(response("completed"))]
    with caplog.at_level(logging.ERROR):
        assert [read async for read in EndedAnswer(Reads(reads, "application/json"), "r1", ended)] == reads
    assert "usage of a response not counted: cannot write: the disk is full" in caplog.text
