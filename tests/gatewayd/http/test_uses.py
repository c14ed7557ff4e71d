"""Tests for gatewayd.http.uses."""

from dataclasses import fields

from gatewayd.http.uses import Bounds, Use


def test_every_use_is_counted_under_bounds_that_exist() -> None:
    names = {each.name for each in fields(Bounds)}
    assert {name for use in Use for name in use.counted} == names
    assert [Bounds(1, 2, 3, 4).of(each.name) for each in fields(Bounds)] == [1, 2, 3, 4]
    assert Use.PROBE.counted == ()
    assert len({use.label for use in Use}) == len(Use)
