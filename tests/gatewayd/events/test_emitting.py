"""Tests for gatewayd.events.emitting."""

import asyncio
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from gatewayd.events.emitting import Turns, read_event
from gatewayd.events.records import Target
from tests.fakes.events import TARGET


class Status(BaseModel):
    type: str = "status"
    data: dict[str, Any] = {"done": True}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"type": "x", "data": {"a": 1}}, {"type": "x", "data": {"a": 1}}),
        ({"type": "x", "data": None, "more": 1}, {"type": "x", "data": None, "more": 1}),
        ({"type": "chat:tasks:cancel"}, {"type": "chat:tasks:cancel", "data": {}}),
        (MappingProxyType({"type": "x"}), {"type": "x", "data": {}}),
        (Status(), {"type": "status", "data": {"done": True}}),
        ({}, None),
        ({"data": {}}, None),
        ({"type": ""}, None),
        ({"type": 5}, None),
        ({"type": None}, None),
        (None, None),
        ("status", None),
        ([{"type": "x"}], None),
        (object(), None),
    ],
)
def test_reading(value: Any, expected: Any) -> None:
    assert read_event(value) == expected


def test_what_nests_too_deep_is_dropped() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert read_event({"type": "x", "data": circle}) is None


def test_what_was_read_is_a_copy() -> None:
    data: dict[str, Any] = {"list": []}
    event = read_event({"type": "x", "data": data})
    data["list"].append(1)
    assert event == {"type": "x", "data": {"list": []}}


async def test_turns_of_one_message_are_taken_in_order_and_of_others_at_once() -> None:
    turns, go = Turns(), asyncio.Event()
    order: list[str] = []

    async def take(name: str, target: Target, hold: bool = False) -> None:
        async with turns.of(target):
            if hold:
                await go.wait()
            order.append(name)

    other = Target("ann", "c1", "m2")
    tasks = [
        asyncio.ensure_future(work)
        for work in (take("a", TARGET, hold=True), take("b", TARGET), take("c", TARGET), take("x", other))
    ]
    await tasks[3]
    assert "".join(order) == "x"
    assert turns.count == 1
    go.set()
    await asyncio.gather(*tasks)
    assert "".join(order) == "xabc"
    assert turns.count == 0


async def test_who_is_cancelled_while_waiting_holds_nobody_up() -> None:
    turns, go = Turns(), asyncio.Event()

    async def take(hold: bool) -> str:
        async with turns.of(TARGET):
            if hold:
                await go.wait()
        return "done"

    first, second, third = [asyncio.ensure_future(take(hold)) for hold in (True, False, False)]
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    go.set()
    assert list(await asyncio.gather(first, third)) == ["done", "done"]
    assert turns.count == 0
