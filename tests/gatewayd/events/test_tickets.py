"""Tests for gatewayd.events.tickets."""

import pytest

from gatewayd.events import tickets as module
from gatewayd.events.tickets import LIFE_SECONDS, Tickets
from tests.fakes.storage.events import Clock


async def test_a_ticket_is_good_once() -> None:
    tickets = Tickets()
    first, second = await tickets.issue("key"), await tickets.issue("other")
    assert first != second
    assert await tickets.redeem(first) == "key"
    assert await tickets.redeem(first) is None
    assert await tickets.redeem(second) == "other"


@pytest.mark.parametrize("ticket", ["", "x", "\ud800"])
async def test_a_ticket_of_nobody_opens_nothing(ticket: str) -> None:
    tickets = Tickets()
    await tickets.issue("key")
    assert await tickets.redeem(ticket) is None


async def test_a_ticket_ends() -> None:
    clock = Clock()
    tickets = Tickets(clock=clock)
    first, second = await tickets.issue("key"), await tickets.issue("key")
    clock.now += LIFE_SECONDS - 1
    assert await tickets.redeem(first) == "key"
    clock.now += 1
    assert await tickets.redeem(second) is None


async def test_tickets_are_bounded_and_old_ones_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TICKETS", 2)
    clock = Clock()
    tickets = Tickets(clock=clock)
    first, second, third = [await tickets.issue(name) for name in ("a", "b", "c")]
    assert [await tickets.redeem(one) for one in (first, second, third)] == [None, "b", "c"]
    old = await tickets.issue("d")
    clock.now += LIFE_SECONDS
    await tickets.issue("e")
    clock.now -= LIFE_SECONDS
    assert await tickets.redeem(old) is None
