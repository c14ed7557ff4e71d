"""Tests for gatewayd.plugins.runtime.call_depth."""

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.runtime.call_depth import MAX_DEPTH, at_depth, current_depth, next_depth


def test_levels() -> None:
    assert (current_depth.get(), next_depth()) == (0, 1)
    with at_depth(4):
        assert next_depth() == 5
        assert (next_depth(6), next_depth(2)) == (7, 5)
    with at_depth(MAX_DEPTH), pytest.raises(GatewayError) as refused:
        next_depth()
    assert refused.value.kind is ErrorKind.INVALID_REQUEST
    assert current_depth.get() == 0
