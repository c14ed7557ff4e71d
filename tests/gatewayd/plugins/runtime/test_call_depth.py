"""Tests for gatewayd.plugins.runtime.call_depth."""

import pytest

from gatewayd.errors import GatewayError, Kind
from gatewayd.plugins.runtime.call_depth import DEEPEST, depth, nested, next_level


def test_levels() -> None:
    assert (depth.get(), next_level()) == (0, 1)
    with nested(4):
        assert next_level() == 5
        assert (next_level(6), next_level(2)) == (7, 5)
    with nested(DEEPEST), pytest.raises(GatewayError) as refused:
        next_level()
    assert refused.value.kind is Kind.INVALID_REQUEST
    assert depth.get() == 0
