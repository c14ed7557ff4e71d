"""Tests for gatewayd.limits.rate_window."""

import random

from gatewayd.limits.rate_window import SlidingWindow


def test_an_amount_leaves_after_a_minute() -> None:
    window = SlidingWindow()
    window.add(100.0, 3)
    window.expire(159.9)
    assert (window.total, window.wait(159.5, 1), window.reset(159.5)) == (3, 0.5, 0.5)
    window.expire(160.0)
    assert (window.total, window.reset(160.0)) == (0, 0.0)


def test_memory_is_constant() -> None:
    window = SlidingWindow()
    for number in range(10_000):
        now = number / 50
        window.expire(now)
        window.add(now, 1)
    assert len(window._slots) <= 61
    assert window.total >= 3000


def test_a_correction_follows_its_amount() -> None:
    window = SlidingWindow()
    old = window.add(0.0, 100)
    new = window.add(30.0, 100)
    window.correct(40.0, old, -40)
    assert window.total == 160
    window.correct(65.0, new, -50)
    assert window.total == 50
    # The amount has left the window: what is more counts from now, what is less does nothing.
    window.correct(65.0, old, -60)
    assert window.total == 50
    window.correct(65.0, old, 7)
    assert (window.total, window.reset(65.0)) == (57, 60.0)


def test_wait_is_until_enough_has_left() -> None:
    window = SlidingWindow()
    for at in (0.0, 10.0, 20.0):
        window.add(at, 5)
    assert [window.wait(30.0, excess) for excess in (1, 5, 6, 15, 99)] == [30.0, 30.0, 40.0, 50.0, 60.0]


def test_no_minute_holds_more_than_the_limit() -> None:
    chance, window, limit, now = random.Random(7), SlidingWindow(), 20, 0.0
    admitted: list[float] = []
    for _ in range(5000):
        now += chance.expovariate(2)
        window.expire(now)
        if window.total + 1 <= limit:
            window.add(now, 1)
            admitted.append(now)
    # The call that is `limit` later comes after a minute, to the second.
    assert all(admitted[n + limit] - begin >= 59 for n, begin in enumerate(admitted[:-limit]))
    assert len(admitted) > 0.9 * limit * now / 61
