"""Tests for gatewayd.events.tickets."""

import pytest

from gatewayd.events import tickets as module
from gatewayd.events.tickets import LIFE_SECONDS, Tickets
from tests.fakes.storage.events import Clock


def test_a_ticket_is_good_once() -> None:
    tickets = Tickets()
    first, second = tickets.issue("key"), tickets.issue("other")
    assert first != second
    assert tickets.redeem(first) == "key"
    assert tickets.redeem(first) is None
    assert tickets.redeem(second) == "other"


@pytest.mark.parametrize("ticket", ["", "x", "\ud800"])
def test_a_ticket_of_nobody_opens_nothing(ticket: str) -> None:
    tickets = Tickets()
    tickets.issue("key")
    assert tickets.redeem(ticket) is None


def test_a_ticket_ends() -> None:
    clock = Clock()
    tickets = Tickets(clock=clock)
    first, second = tickets.issue("key"), tickets.issue("key")
    clock.now += LIFE_SECONDS - 1
    assert tickets.redeem(first) == "key"
    clock.now += 1
    assert tickets.redeem(second) is None


def test_tickets_are_bounded_and_old_ones_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TICKETS", 2)
    clock = Clock()
    tickets = Tickets(clock=clock)
    first, second, third = [tickets.issue(name) for name in ("a", "b", "c")]
    assert [tickets.redeem(one) for one in (first, second, third)] == [None, "b", "c"]
    old = tickets.issue("d")
    clock.now += LIFE_SECONDS
    tickets.issue("e")
    clock.now -= LIFE_SECONDS
    assert tickets.redeem(old) is None
