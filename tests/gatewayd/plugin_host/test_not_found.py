"""Tests for gatewayd.plugin_host.not_found."""

import pytest

from gatewayd.errors import GatewayError, invalid, not_found
from gatewayd.plugin_host.not_found import none_if_not_found


async def give(error: GatewayError | None) -> int:
    if error is not None:
        raise error
    return 7


async def test_only_what_is_missing_is_none() -> None:
    assert await none_if_not_found(give(None)) == 7
    assert await none_if_not_found(give(not_found("chat", "c"))) is None
    with pytest.raises(GatewayError):
        await none_if_not_found(give(invalid("cannot")))
