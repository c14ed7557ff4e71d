import asyncio

import pytest

from gatewayd.accounts.password_rules import PasswordRules
from gatewayd.accounts.records import Role
from gatewayd.accounts.runtime_settings import ConfiguredValue
from gatewayd.accounts.sign_in import SignInClient
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts


async def test_one_step_makes_a_usable_gateway(accounts: Accounts) -> None:
    made = await accounts.setup.run("Chief@example.org", "Chief", None)
    assert (made.user.email, made.user.role) == ("chief@example.org", Role.ADMIN)
    assert made.group.name == "api-users"
    assert await accounts.groups.count_members([made.group]) == {made.group.id: 1}
    assert made.password_value
    actor = await accounts.authenticator.authenticate(made.key_value, "GET", "/api/models")
    assert (actor.user_id, actor.key_id, actor.is_admin) == (made.user.id, made.key.id, True)
    assert (
        await accounts.sign_in.sign_in("chief@example.org", made.password_value, SignInClient(""))
        == made.user
    )
    assert accounts.runtime.flag("ENABLE_API_KEYS") is True
    assert accounts.runtime.flag("ENABLE_SIGNUP") is False


async def test_a_chosen_password_is_not_repeated(accounts: Accounts) -> None:
    made = await accounts.setup.run("chief@example.org", "Chief", "secret", group="ops")
    assert made.password_value is None
    assert made.group.name == "ops"
    assert accounts.memory.tables.passwords[made.user.id] == "hash:secret"


async def test_an_empty_password_is_not_replaced(accounts: Accounts) -> None:
    with pytest.raises(GatewayError) as caught:
        await accounts.setup.run("chief@example.org", "Chief", "")
    assert caught.value.param == "password"


async def test_it_happens_once(accounts: Accounts) -> None:
    outcomes = await asyncio.gather(
        *(accounts.setup.run(f"u{number}@x", "U", "secret") for number in range(4)), return_exceptions=True
    )
    errors = [outcome for outcome in outcomes if isinstance(outcome, GatewayError)]
    assert [(error.kind, error.code) for error in errors] == [(ErrorKind.CONFLICT, "already_set_up")] * 3
    assert await accounts.users.count() == 1


async def test_a_failure_leaves_nothing(accounts: Accounts) -> None:
    with pytest.raises(GatewayError):
        await accounts.setup.run("chief@example.org", "Chief", None, group="\0")
    assert await accounts.users.count() == 0
    assert await accounts.values_store.load() == {}
    assert accounts.runtime.flag("ENABLE_API_KEYS") is False


async def test_a_rehearsal_leaves_nothing(accounts: Accounts) -> None:
    async with accounts.commits.rehearsal():
        await accounts.setup.run("chief@example.org", "Chief", None)
    assert await accounts.users.count() == 0
    assert accounts.runtime.flag("ENABLE_API_KEYS") is False


async def test_keys_that_the_configuration_holds_off_stay_off() -> None:
    configured = {"ENABLE_API_KEYS": ConfiguredValue(False, "environment", explicit=True)}
    accounts = Accounts(configured=configured, persistent=False)
    with pytest.raises(GatewayError, match="environment sets it"):
        await accounts.setup.run("chief@example.org", "Chief", None)
    assert await accounts.users.count() == 0


async def test_the_configured_administrator_is_made_once(accounts: Accounts) -> None:
    made = await asyncio.gather(
        *(accounts.setup.ensure(f"u{number}@x", "U", "secret") for number in range(4))
    )
    (first,) = [user for user in made if user is not None]
    assert first.role is Role.ADMIN
    assert await accounts.users.count() == 1
    assert accounts.runtime.flag("ENABLE_SIGNUP") is False
    assert accounts.runtime.flag("ENABLE_API_KEYS") is False
    assert await accounts.setup.ensure("again@x", "U", "secret") is None


async def test_a_weak_password_makes_no_administrator(accounts: Accounts) -> None:
    accounts.passwords.rules = PasswordRules()
    for make in (accounts.setup.run, accounts.setup.ensure):
        with pytest.raises(GatewayError) as caught:
            await make("chief@example.org", "Chief", "chief123")
        assert caught.value.code == "weak_password"
    assert await accounts.users.count() == 0
