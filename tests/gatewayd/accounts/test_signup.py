import asyncio
import logging

import pytest

from gatewayd.accounts.records import NewGroup, NewUser, Role, Source
from gatewayd.accounts.runtime import ConfiguredValue
from gatewayd.errors import GatewayError, Kind
from tests.fakes.accounts import Accounts


def person(name: str) -> NewUser:
    return NewUser(f"{name}@example.org", name, password="secret")


async def test_the_first_becomes_administrator_and_closes_the_door(accounts: Accounts) -> None:
    first = await accounts.sign_up.sign_up(person("first"))
    assert first.role is Role.ADMIN
    with pytest.raises(GatewayError, match="ENABLE_SIGNUP") as caught:
        await accounts.sign_up.sign_up(person("second"))
    assert caught.value.kind is Kind.FORBIDDEN


async def test_sixteen_at_once(accounts: Accounts) -> None:
    outcomes = await asyncio.gather(
        *(accounts.sign_up.sign_up(person(f"u{number}")) for number in range(16)), return_exceptions=True
    )
    roles = [outcome.role for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert roles == [Role.ADMIN]
    assert await accounts.users.count() == 1
    assert await accounts.users_store.count_active_admins() == 1
    assert accounts.runtime.flag("ENABLE_SIGNUP") is False


async def test_the_others_get_the_default_role_and_group(accounts: Accounts) -> None:
    await accounts.sign_up.sign_up(person("first"))
    group = await accounts.groups.create(NewGroup("everybody"))
    await accounts.runtime.set(
        {"ENABLE_SIGNUP": True, "DEFAULT_USER_ROLE": "user", "DEFAULT_GROUP_ID": group.id}, by="test"
    )
    second = await accounts.sign_up.sign_up(person("second"))
    assert second.role is Role.USER
    assert accounts.memory.tables.members == {(group.id, second.id, Source.DEFAULT): accounts.time}
    assert accounts.runtime.flag("ENABLE_SIGNUP") is True


async def test_a_default_group_that_is_gone_keeps_nobody_out(
    accounts: Accounts, caplog: pytest.LogCaptureFixture
) -> None:
    await accounts.add_user()
    await accounts.runtime.set({"DEFAULT_GROUP_ID": "gone"}, by="test")
    with caplog.at_level(logging.WARNING):
        user = await accounts.sign_up.sign_up(person("second"))
    assert user.role is Role.PENDING
    assert [record.__dict__["group"] for record in caplog.records] == ["gone"]


async def test_a_door_that_the_configuration_holds_open_stays_open() -> None:
    configured = {"ENABLE_SIGNUP": ConfiguredValue(True, "environment", explicit=True)}
    accounts = Accounts(configured=configured, persistent=False)
    await accounts.sign_up.sign_up(person("first"))
    assert (await accounts.sign_up.sign_up(person("second"))).role is Role.PENDING
