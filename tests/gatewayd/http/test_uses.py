"""Tests for gatewayd.http.uses."""

from dataclasses import fields

from gatewayd.http.uses import BOUNDS, Bounds, Use


def test_every_use_is_counted_under_bounds_that_exist() -> None:
    assert tuple(each.name for each in fields(Bounds)) == BOUNDS
    assert {name for use in Use for name in use.counted} == set(BOUNDS)
    assert Bounds(1, 2, 3, 4).listed() == (1, 2, 3, 4)
    assert all([BOUNDS[place] for place in use.places] == list(use.counted) for use in Use)
    assert Use.PROBE.counted == ()
    assert len({use.label for use in Use}) == len(Use)
