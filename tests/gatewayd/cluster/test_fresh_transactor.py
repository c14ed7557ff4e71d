"""Exclusive blocks begin with what other processes have committed."""

import pytest

from gatewayd.cluster.fresh_transactor import FreshTransactor
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.memory_stores import Memory


class CountedFreshness:
    def __init__(self) -> None:
        self.renewals = 0
        self.is_away = False

    def is_fresh(self) -> bool:
        return False

    async def renew(self) -> None:
        self.renewals += 1
        if self.is_away:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read the change log")


async def test_only_an_exclusive_block_asks() -> None:
    memory, freshness = Memory(), CountedFreshness()
    transactor = FreshTransactor(memory, freshness)
    async with transactor.transaction():
        pass
    async with transactor.rehearsal():
        pass
    assert freshness.renewals == 0
    async with transactor.exclusive("name"):
        assert freshness.renewals == 1


async def test_nothing_is_changed_without_an_answer() -> None:
    freshness = CountedFreshness()
    freshness.is_away = True
    with pytest.raises(GatewayError, match="change log"):
        async with FreshTransactor(Memory(), freshness).exclusive("name"):
            pytest.fail("the block ran")
    assert not freshness.is_fresh()
