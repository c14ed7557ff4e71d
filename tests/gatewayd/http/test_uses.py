"""Tests for gatewayd.http.uses."""

from dataclasses import fields

from gatewayd.http.uses import COUNTED, FILES, Bounds, Use


def test_every_use_is_counted_under_bounds_that_exist() -> None:
    assert set(COUNTED) == set(FILES) == set(Use)
    names = {each.name for each in fields(Bounds)}
    assert {name for counted in COUNTED.values() for name in counted} == names
    assert [Bounds(1, 2, 3, 4).of(each.name) for each in fields(Bounds)] == [1, 2, 3, 4]
    assert not any(COUNTED[Use.PROBE])
