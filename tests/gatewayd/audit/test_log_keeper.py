"""Tests for gatewayd.audit.log_keeper: checkpoints, retention, verification."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayd import ids
from gatewayd.audit.log_keeper import (
    DAY_US,
    AuditLogKeeper,
    AuditRetention,
    CheckpointFile,
    find_checkpoints,
)
from gatewayd.audit.records import GATEWAY_ACTOR, AuditEntry
from gatewayd.audit.trail import AuditTrail
from tests.fakes.storage.memory_audit import MemoryAuditLog

TODAY = 100 * DAY_US


class LogSite:
    """A chain of five rows, one a day, and what keeps it."""

    def __init__(self, folder: Path) -> None:
        self.store, self.now = MemoryAuditLog(), TODAY
        self.file = CheckpointFile(folder / "audit.checkpoints")
        self.trail = AuditTrail(self.store, clock=lambda: self.now)
        self.keeper = self.restarted()

    def restarted(self) -> AuditLogKeeper:
        """Return a keeper without what the one before had in memory."""
        trail = AuditTrail(self.store, clock=lambda: self.now)
        return AuditLogKeeper(self.store, trail, self.file, AuditRetention(0), lambda: self.now)

    async def fill(self, count: int = 5) -> None:
        for place in range(count):
            self.now = TODAY + place * DAY_US
            self.trail.record(AuditEntry(f"a{place}", GATEWAY_ACTOR))
        await self.trail.drain(1)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[LogSite]:
    made = LogSite(tmp_path)
    made.keeper = AuditLogKeeper(made.store, made.trail, made.file, AuditRetention(0), lambda: made.now)
    task = asyncio.ensure_future(made.trail.run())
    yield made
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_cut_end_is_found_by_each_checkpoint(site: LogSite, caplog: pytest.LogCaptureFixture) -> None:
    await site.fill()
    with caplog.at_level(logging.INFO, "gatewayd.audit.log_keeper"):
        await site.keeper.mark()
        await site.keeper.mark()
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [f"audit checkpoint {site.store.kept[-1].place}"]
    assert (await site.keeper.verify({})).problems == ()
    site.store.kept = site.store.kept[:3]
    message = "the end of the chain is missing: a checkpoint names row 5, the rows end with 3"
    for keeper in (site.keeper, site.restarted()):
        assert [(each.sequence, each.message) for each in (await keeper.verify({})).problems] == [
            (4, message)
        ]
    site.file._path.unlink()
    assert (await site.restarted().verify({})).problems == ()
    assert (await site.restarted().verify(find_checkpoints(lines))).problems[0].message == message


async def test_a_start_after_a_cut_end_records_it(site: LogSite) -> None:
    await site.fill()
    await site.keeper.check_end()
    await site.keeper.mark()
    site.store.kept = site.store.kept[:3]
    await site.keeper.check_end()
    await site.trail.drain(1)
    assert [row.action for row in site.store.kept] == ["a0", "a1", "a2", "audit log shortened"]
    assert site.store.kept[-1].detail == "a checkpoint names row 5, and the rows end with 3"


async def test_a_clock_that_is_set_forward_removes_nothing(
    site: LogSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.now = ids.now_us()
    site.trail.record(AuditEntry("today", GATEWAY_ACTOR))
    await site.trail.drain(1)
    keeper = AuditLogKeeper(site.store, site.trail, site.file, AuditRetention(2))
    later = time.time() + 1000 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    monkeypatch.setattr(time, "time_ns", lambda: int(later * 10**9))
    await keeper.prune()
    assert [row.action for row in site.store.kept] == ["today"]


async def test_the_retention_says_what_it_removed(site: LogSite) -> None:
    await site.fill()
    await site.keeper.mark()
    await site.keeper.prune()
    assert len(site.store.kept) == 5
    assert await site.keeper.count_old() == 0
    site.keeper.retention.days = 2
    assert await site.keeper.count_old() == 2
    assert await site.keeper.prune() == 2
    assert await site.keeper.count_old() == 0
    assert [row.action for row in site.store.kept] == ["a2", "a3", "a4", "audit rows deleted"]
    assert (await site.keeper.verify({})).problems == ()
    site.store.kept, site.store.place = site.store.kept[1:], site.store.kept[0].place
    problems = (await site.keeper.verify({})).problems
    assert problems[0].message == "the rows up to 3 were not removed by the retention: no row says so"


async def test_old_checkpoints_are_dropped(site: LogSite) -> None:
    await site.fill(2)
    first, second = site.store.kept
    await site.file.add(first.place)
    await site.file.add(second.place)
    assert await site.file.read() == {1: first.hash, 2: second.hash}
    await site.file.trim(2)
    assert await site.file.read() == {2: second.hash}
    assert site.file._path.stat().st_mode & 0o777 == 0o600


def test_checkpoints_are_found_in_logs_of_every_format() -> None:
    text = f"audit checkpoint 12:{'a' * 64}"
    lines = [
        "nothing",
        f"<6>gatewayd.audit: {text}",
        f'{{"message": "{text}"}}',
        f"audit checkpoint 13:{'g' * 64}",
    ]
    assert find_checkpoints(lines) == {12: "a" * 64}


async def test_the_checkpoint_in_memory_shows_a_changed_end(site: LogSite) -> None:
    await site.fill(2)
    site.store.kept[-1] = replace(site.store.kept[-1], hash="0" * 64)
    found = [each.message for each in (await site.keeper.verify({})).problems]
    assert found == [
        "row 2 was changed: its hash does not fit its values",
        "row 2 is not the one that a checkpoint names",
    ]
