"""Tests for gatewayd.audit.trail and gatewayd.audit.refusals."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from gatewayd.audit import trail as module
from gatewayd.audit.records import AuditActor, AuditActorKind, AuditEntry, AuditResult
from gatewayd.audit.refusals import MAX_REFUSALS_OF_ALL, MAX_REFUSALS_OF_ONE, RefusalBound
from gatewayd.audit.trail import AuditTrail
from gatewayd.errors import GatewayError
from gatewayd.observe.redact import redact_value
from tests.fakes.storage.memory_audit import MemoryAuditLog

ADA = AuditActor(AuditActorKind.ACCOUNT, "ada@example.org", "u1")
NOBODY = AuditActor(AuditActorKind.ANONYMOUS)


def refusal(address: str) -> AuditEntry:
    return AuditEntry("sign-in refused", NOBODY, address, result=AuditResult.REFUSED)


@asynccontextmanager
async def running(store: MemoryAuditLog) -> AsyncIterator[AuditTrail]:
    trail = AuditTrail(store, redact_value)
    task = asyncio.ensure_future(trail.run())
    try:
        yield trail
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_entries_are_stored_in_order_in_batches_and_waited_for() -> None:
    store = MemoryAuditLog()
    heard: list[int] = []
    async with running(store) as trail:
        trail.subscribe(lambda rows: heard.extend(row.sequence for row in rows))
        tickets = [trail.record(AuditEntry(f"a{place}", ADA)) for place in range(450)]
        assert not store.kept, "recording waits for nothing"
        assert tickets[-1] is not None
        await trail.wait(tickets[-1])
    assert [row.action for row in store.kept] == [f"a{place}" for place in range(450)]
    assert store.batches == [200, 200, 50]
    assert heard == list(range(1, 451))
    assert trail.head == store.kept[-1].place


async def test_an_outage_keeps_entries_bounded_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MAX_PENDING_ENTRIES", 5), ("WAIT_SECONDS", 0.02), ("MAX_PAUSE_SECONDS", 0.01)):
        monkeypatch.setattr(module, name, value)
    store = MemoryAuditLog()
    store.is_away = True
    async with running(store) as trail:
        tickets = [trail.record(AuditEntry(f"a{place}", ADA)) for place in range(8)]
        for ticket in (tickets[0], tickets[-1]):
            assert ticket is not None
            with pytest.raises(GatewayError, match="cannot confirm the change"):
                await trail.wait(ticket)
        with pytest.raises(GatewayError, match="cannot store 5 entries"):
            await trail.drain(0.01)
        store.is_away = False
        await trail.drain(1)
        await asyncio.sleep(0)
        await trail.drain(1)
    assert [row.action for row in store.kept] == ["a0", "a1", "a2", "a3", "a4", "entries lost"]
    assert store.kept[-1].after == {"entries": 3}


async def test_no_secret_is_stored() -> None:
    store = MemoryAuditLog()
    async with running(store) as trail:
        values = {"password": "hush", "role": "admin", "list": [{"token": "hush"}], "note": "Bearer hush"}
        trail.record(
            AuditEntry("x", ADA, target="/x?key=hush", detail="sk-hushhushhush", before=values, after=values)
        )
        await trail.drain(1)
    assert "hush" not in repr(store.kept)
    assert store.kept[0].after["role"] == "admin"


async def test_a_flood_of_refusals_is_summarised() -> None:
    store = MemoryAuditLog()
    now = [0.0]
    trail = AuditTrail(store, monotonic=lambda: now[0])
    for place in range(5000):
        trail.record(refusal(f"192.0.2.{place % 3}"))
    trail.record(AuditEntry("user set", ADA))
    task = asyncio.ensure_future(trail.run())
    await trail.drain(1)
    task.cancel()
    refused = 3 * MAX_REFUSALS_OF_ONE
    assert [row.action for row in store.kept[refused:]] == ["user set", "refusals summarised"]
    assert store.kept[-1].after["refusals"] == 5000 - refused
    assert store.kept[-1].after["origins"] == 3


def test_refusals_from_many_addresses_are_bounded_too() -> None:
    now = [0.0]
    bound = RefusalBound(lambda: now[0])
    assert sum(bound.admits(str(place)) for place in range(10_000)) == MAX_REFUSALS_OF_ALL
    assert bound.summary() is None
    now[0] = 60.0
    entry = bound.summary()
    assert entry is not None
    assert entry.after["refusals"] == 10_000 - MAX_REFUSALS_OF_ALL
    assert entry.after["origins"] == 1001
    assert len(entry.after["most"]) == 10
    assert bound.summary() is None
    assert bound.admits("1")
