"""Tests for gatewayd.audit.refusal_lines."""

from gatewayd.audit.refusal_lines import MAX_ORIGINS, RefusalLines


class Clock:
    """A clock that is set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_first_is_told_at_once_and_the_others_by_their_count() -> None:
    clock = Clock()
    lines = RefusalLines(clock)
    assert [lines.admits("x", address) for address in ("a", "a", "b", "a")] == [True, False, True, False]
    assert lines.summaries() == []
    clock.now += 60
    assert lines.summaries() == [(("x", "a"), 2)]
    assert lines.summaries() == []
    assert [lines.admits("x", "a"), lines.admits("x", "a")] == [True, False]
    # The next minute begins before anybody asked for the summary.
    clock.now += 61
    assert [lines.admits("x", "a"), lines.admits("x", "a"), lines.admits("x", "a")] == [True, False, False]
    assert lines.summaries() == [(("x", "a"), 1)]
    assert lines.summaries(at_end=True) == [(("x", "a"), 2)]
    assert lines.summaries(at_end=True) == []
    assert lines.admits("y", "a")


def test_a_flood_from_many_addresses_is_bounded() -> None:
    clock = Clock()
    lines = RefusalLines(clock)
    told = sum(lines.admits("x", f"2001:db8::{place:x}") for place in range(50_000))
    assert told == MAX_ORIGINS + 1
    clock.now += 60
    assert lines.summaries() == [(("x", "others"), 50_000 - told)]
    # The places are free again.
    assert lines.admits("x", "192.0.2.1")
    assert lines.summaries(at_end=True) == []
