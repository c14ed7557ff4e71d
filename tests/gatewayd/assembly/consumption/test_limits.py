"""Tests for gatewayd.assembly.consumption.limits."""

import asyncio
import logging
from typing import Any

import pytest

from gatewayd.assembly.consumption.limits import BudgetWarnings, QueuePositions
from gatewayd.events.records import EventTarget
from gatewayd.limits.periods import BudgetPeriod
from gatewayd.limits.records import BudgetDemand, BudgetUnit, CounterKey
from gatewayd.metering.records import MeteredCall
from gatewayd.tasks import TaskRegistry


class HeardEvents:
    """Keeps what is emitted."""

    def __init__(self) -> None:
        self.heard: list[tuple[EventTarget, Any]] = []

    async def emit(self, target: EventTarget, event: Any) -> bool:
        self.heard.append((target, event))
        return True


async def test_a_warning_is_an_event_and_a_line(caplog: pytest.LogCaptureFixture) -> None:
    events = HeardEvents()
    key = CounterKey("r1", "u1", BudgetUnit.TOKENS, BudgetPeriod.DAY, 0)
    demand = BudgetDemand(key, 10, 1000, 800, "this account", "u1")
    with caplog.at_level(logging.WARNING):
        BudgetWarnings(events, TaskRegistry()).warn(demand)  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
    sentence = "The budget of 1000tokens a day of this account has reached 800tokens."
    data = {"type": "warning", "content": sentence}
    assert events.heard == [(EventTarget("u1"), {"type": "notification", "data": data})]
    assert "1000tokens a day of this account" in caplog.text


async def test_positions_go_to_the_message_that_waits() -> None:
    events = HeardEvents()
    positions = QueuePositions(events, TaskRegistry())  # type: ignore[arg-type]
    call = MeteredCall("u1", (), "", "m", "chat", "r")
    positions.announce(call, 1)
    call.chat = {"chat_id": "c", "id": "n", "session_id": None}
    positions.announce(call, 2)
    positions.announce(call, 0)
    await asyncio.sleep(0.01)
    assert [target for target, _ in events.heard] == [EventTarget("u1", "c", "n")] * 2
    told = [event["data"] for _, event in events.heard]
    assert [(each["action"], each["done"]) for each in told] == [("queue", False), ("queue", True)]
    assert "place 2" in told[0]["description"]
