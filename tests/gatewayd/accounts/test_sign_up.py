import asyncio
import logging

import pytest

from gatewayd.accounts.records import MembershipSource, NewGroup, NewUser, Role
from gatewayd.accounts.runtime_settings import ConfiguredValue
from gatewayd.accounts.sign_up import SignUpOptions
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts

HERE = "192.0.2.1"


def person(name: str) -> NewUser:
    return NewUser(f"{name}@example.org", name, password="secret")


async def test_the_first_becomes_administrator_and_closes_the_door(accounts: Accounts) -> None:
    first = await accounts.sign_up.sign_up(person("first"), HERE)
    assert first.role is Role.ADMIN
    with pytest.raises(GatewayError, match="ENABLE_SIGNUP") as caught:
        await accounts.sign_up.sign_up(person("second"), HERE)
    assert caught.value.kind is ErrorKind.FORBIDDEN


async def test_sixteen_at_once(accounts: Accounts) -> None:
    outcomes = await asyncio.gather(
        *(accounts.sign_up.sign_up(person(f"u{number}"), HERE) for number in range(16)),
        return_exceptions=True,
    )
    roles = [outcome.role for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert roles == [Role.ADMIN]
    assert await accounts.users.count() == 1
    assert await accounts.users_store.count_active_admins() == 1
    assert accounts.runtime.flag("ENABLE_SIGNUP") is False


async def test_the_others_get_the_default_role_and_group(accounts: Accounts) -> None:
    await accounts.sign_up.sign_up(person("first"), HERE)
    group = await accounts.groups.create(NewGroup("everybody"))
    await accounts.runtime.set(
        {"ENABLE_SIGNUP": True, "DEFAULT_USER_ROLE": "user", "DEFAULT_GROUP_ID": group.id}, by="test"
    )
    second = await accounts.sign_up.sign_up(person("second"), HERE)
    assert second.role is Role.USER
    assert accounts.memory.tables.members == {(group.id, second.id, MembershipSource.DEFAULT): accounts.time}
    assert accounts.runtime.flag("ENABLE_SIGNUP") is True


async def test_a_default_group_that_is_gone_keeps_nobody_out(
    accounts: Accounts, caplog: pytest.LogCaptureFixture
) -> None:
    await accounts.add_user()
    await accounts.runtime.set({"DEFAULT_GROUP_ID": "gone"}, by="test")
    with caplog.at_level(logging.WARNING):
        user = await accounts.sign_up.sign_up(person("second"), HERE)
    assert user.role is Role.PENDING
    assert [record.__dict__["group"] for record in caplog.records] == ["gone"]


async def test_a_door_that_the_configuration_holds_open_stays_open() -> None:
    configured = {"ENABLE_SIGNUP": ConfiguredValue(True, "environment", explicit=True)}
    accounts = Accounts(configured=configured, persistent=False)
    await accounts.sign_up.sign_up(person("first"), HERE)
    assert (await accounts.sign_up.sign_up(person("second"), HERE)).role is Role.PENDING


async def test_the_first_account_is_not_made_by_sign_up() -> None:
    accounts = Accounts(sign_up_options=SignUpOptions())
    outcomes = await asyncio.gather(
        *(accounts.sign_up.sign_up(person(f"u{number}"), HERE) for number in range(4)), return_exceptions=True
    )
    assert [outcome.code for outcome in outcomes if isinstance(outcome, GatewayError)] == ["not_set_up"] * 4
    assert await accounts.users.count() == 0
    assert accounts.runtime.flag("ENABLE_SIGNUP") is True
    await accounts.add_user("root", Role.ADMIN)
    assert (await accounts.sign_up.sign_up(person("ann"), HERE)).role is Role.PENDING


async def test_sign_ups_are_limited_by_address_and_overall() -> None:
    accounts = Accounts(sign_up_options=SignUpOptions(limit=5, by_address=2))
    await accounts.add_user("root", Role.ADMIN)

    async def sign_up(name: str, peer: str) -> str | None:
        try:
            await accounts.sign_up.sign_up(person(name), peer)
        except GatewayError as error:
            return f"{error.kind} {error.retry_after}"
        return None

    # What could be no account is no sign-up.
    with pytest.raises(GatewayError):
        await accounts.sign_up.sign_up(NewUser("no address", "x", password="secret"), HERE)
    assert [await sign_up(f"a{n}", HERE) for n in range(3)] == [None, None, "rate_limited 3600"]
    assert [await sign_up(f"b{n}", "2001:db8::1") for n in range(2)] == [None, None]
    assert await sign_up("b3", "2001:db8::2") == "rate_limited 3600"
    assert [await sign_up("c", "198.51.100.1"), await sign_up("d", "198.51.100.2")] == [
        None,
        "rate_limited 3600",
    ]
    accounts.time += 3600
    assert await sign_up("d", HERE) is None


async def test_the_first_account_is_looked_for_again_when_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = Accounts(sign_up_options=SignUpOptions())
    counts = iter([1, 0])

    async def count() -> int:
        return next(counts)

    monkeypatch.setattr(accounts.users_store, "count", count)
    with pytest.raises(GatewayError) as caught:
        await accounts.sign_up.sign_up(person("ann"), HERE)
    assert caught.value.code == "not_set_up"


async def test_a_sign_up_that_was_not_tried_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = Accounts(sign_up_options=SignUpOptions(limit=1, by_address=1))
    await accounts.add_user("root", Role.ADMIN)

    async def busy(_: str) -> str:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot check passwords now")

    with monkeypatch.context() as patch, pytest.raises(GatewayError, match="cannot check passwords now"):
        patch.setattr(accounts.passwords, "hash", busy)
        await accounts.sign_up.sign_up(person("ann"), HERE)
    assert (await accounts.sign_up.sign_up(person("ann"), HERE)).role is Role.PENDING


async def test_an_address_in_use_costs_a_hash_and_a_sign_up() -> None:
    accounts = Accounts(sign_up_options=SignUpOptions(by_address=2))
    await accounts.add_user("root", Role.ADMIN)
    for _ in range(2):
        with pytest.raises(GatewayError, match="sign in, or ask") as caught:
            await accounts.sign_up.sign_up(person("root"), HERE)
        assert (caught.value.kind, caught.value.param, caught.value.code) == (
            ErrorKind.CONFLICT,
            "email",
            None,
        )
    with pytest.raises(GatewayError) as caught:
        await accounts.sign_up.sign_up(person("new"), HERE)
    assert caught.value.kind is ErrorKind.RATE_LIMITED
    assert accounts.passwords.hashed == 2


async def test_the_door_is_open_where_a_sign_up_is_accepted() -> None:
    accounts = Accounts(sign_up_options=SignUpOptions())
    assert not await accounts.sign_up.is_open()
    await accounts.add_user()
    assert await accounts.sign_up.is_open()
    await accounts.runtime.set({"ENABLE_SIGNUP": False}, by="test")
    assert not await accounts.sign_up.is_open()
    assert await Accounts().sign_up.is_open()
