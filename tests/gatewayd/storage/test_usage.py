"""Tests for gatewayd.storage.limits.usage and gatewayd.metering.recorder, on every engine."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gatewayd.accounts.records import ApiKey, Group, MembershipSource
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.metering import recorder as recording
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.recorder import OTHER_MODEL, UsageRecorder
from gatewayd.metering.records import CallOutcome, MeteredCall, TokenUsage
from gatewayd.metering.usage_records import (
    MAX_SUM,
    UsageDimension,
    UsageKey,
    UsageLine,
    UsageQuery,
    UsageSums,
)
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.readers import open_reader
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.limits.usage import TortoiseUsage
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user

KEY = UsageKey("2026-11-24", "u1", "k1", "m", "p", "chat")


async def report(location: DatabaseLocation, *by: str, **wanted: str) -> Sequence[UsageLine]:
    async with open_reader(location) as reader:
        query = UsageQuery(tuple(UsageDimension(each) for each in by))
        return await TortoiseUsage(reader).report(replace(query, **wanted))  # type: ignore[arg-type]


async def test_sums_are_added_and_reported(database: Database, location: DatabaseLocation) -> None:
    users, store = TortoiseUsers(), TortoiseUsage()
    await users.add(user("u1"), None)
    await TortoiseKeys().add(ApiKey("k1", "u1", "ci", "d" * 64, "sk-1"))
    groups = TortoiseGroups()
    await groups.add(Group("g1", "Staff"))
    await groups.add_members("g1", ["u1"], source=MembershipSource.MANUAL, at=1)
    await store.add({KEY: UsageSums(1, 0, 10, 4, 1, 5, 2, 100, 30, 1, 700)})
    other = KEY._replace(day="2026-11-25", user_id="gone", key_id="", model="n\0\ud800" + "x" * 300)
    await store.add({KEY: UsageSums(2, 1, 20, completion=6, unpriced=1), other: UsageSums(1, prompt=1)})
    (line, strange) = await report(location, "model")
    assert line == UsageLine(("m",), ("m",), line.sums)
    assert line.sums == UsageSums(3, 1, 30, 4, 1, 11, 2, 100, 30, 1, 700, 1)
    assert len(strange.ids[0]) == 255
    assert [each.ids for each in await report(location, "day", "user")] == [
        ("2026-11-24", "u1"),
        ("2026-11-25", "gone"),
    ]
    (own,) = await report(location, "user", "key", user_id="u1", since="2026-11-24", until="2026-11-24")
    assert own.names == ((await users.find("u1")).email, "ci")  # type: ignore[union-attr]
    assert await report(location, "day", since="2026-11-26") == []
    assert {each.names for each in await report(location, "group")} == {("Staff",), ("",)}
    assert [each.ids for each in await report(location, "model", group_id="g1")] == [("m",)]
    # The names stay when user and key are gone.
    await users.remove("u1")
    await store.add({KEY: UsageSums(1)})
    (own,) = await report(location, "user", "key", user_id="u1")
    assert own.names[1] == "ci"
    assert "@" in own.names[0]
    assert own.sums.requests == 4


async def test_a_sum_stays_in_its_bounds(database: Database, location: DatabaseLocation) -> None:
    store = TortoiseUsage()
    for _ in range(3):
        await store.add({KEY: UsageSums(MAX_SUM - 1, prompt=2**62)})
    (line,) = await report(location, "provider")
    assert (line.sums.requests, line.sums.prompt) == (MAX_SUM, MAX_SUM)


class FlakyStore:
    def __init__(self) -> None:
        self.is_out = False
        self.rows: dict[UsageKey, UsageSums] = {}

    async def add(self, rows: dict[UsageKey, UsageSums]) -> None:
        if self.is_out:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot write the usage: the database is locked")
        for key, sums in rows.items():
            self.rows.setdefault(key, UsageSums()).add(sums)

    async def rename(self, user_id: str, pseudonym: str) -> None:
        self.renamed = (user_id, pseudonym)

    async def report(self, query: UsageQuery) -> Sequence[UsageLine]:
        return []


def end_call(
    meter: CallMeter, user_id: str = "u", outcome: CallOutcome = CallOutcome.ANSWERED
) -> MeteredCall:
    call = MeteredCall(user_id, (), "", "m", "chat", source="p", attempts=1)
    meter.finish(call, outcome, TokenUsage(2, 1, 0, 3, 1))


async def test_sums_wait_while_the_database_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_PENDING_ROWS", 3)
    now, store = 1_764_028_799, FlakyStore()
    recorder = UsageRecorder(store, lambda: now)
    meter = CallMeter([recorder])
    store.is_out = True
    end_call(meter)
    await recorder.flush()
    now += 1
    end_call(meter, outcome=CallOutcome.CUT)
    for number in range(20):
        end_call(meter, f"u{number}")
    await recorder.flush()
    assert recorder.pending < 10
    store.is_out = False
    await recorder.flush()
    await recorder.flush()
    assert recorder.pending == 0
    assert sum(sums.requests for sums in store.rows.values()) == 22
    assert sum(sums.prompt for sums in store.rows.values()) == 44
    assert {key.day for key in store.rows} == {"2025-11-24", "2025-11-25"}
    assert OTHER_MODEL in {key.model for key in store.rows}
    first = store.rows[UsageKey("2025-11-25", "u", "", "m", "p", "chat")]
    assert (first.failures, first.unpriced, first.estimated) == (1, 1, 0)


async def test_an_erased_user_is_replaced_in_what_waits_and_in_calls_that_end_later() -> None:
    store = FlakyStore()
    recorder = UsageRecorder(store, lambda: 1_764_028_800)
    meter = CallMeter([recorder])
    for user_id in ("u", "other"):
        end_call(meter, user_id)
    await recorder.rename("u", "erased-1")
    end_call(meter)
    await recorder.flush()
    assert store.renamed == ("u", "erased-1")
    assert {key.user_id: sums.requests for key, sums in store.rows.items()} == {"erased-1": 2, "other": 1}


async def test_calls_belong_to_the_day_of_a_clock_that_was_set_back() -> None:
    now, store = 1_764_028_800, FlakyStore()
    recorder = UsageRecorder(store, lambda: now)
    meter = CallMeter([recorder])
    end_call(meter)
    now -= 1
    end_call(meter)
    await recorder.flush()
    assert {key.day: sums.requests for key, sums in store.rows.items()} == {"2025-11-25": 1, "2025-11-24": 1}
