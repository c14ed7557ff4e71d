"""The races that matter, over a real database file."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.accounts.records import NewUser, Role, User, UserChange
from gatewayd.errors import GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import sqlite
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.users import TortoiseUsers
from gatewayd.transactions import CallbackTransactor
from tests.fakes.accounts.services import Accounts


@pytest.fixture
async def database(migrated_copy: Path) -> AsyncIterator[Database]:
    async with Database.open(sqlite(migrated_copy)) as opened:
        yield opened


@pytest.fixture
def accounts(database: Database) -> Accounts:
    made = Accounts()
    made.commits = CallbackTransactor(database)
    made.users_store, made.groups_store = TortoiseUsers(), TortoiseGroups()  # type: ignore[assignment]
    made.keys_store, made.values_store = TortoiseKeys(), TortoiseValues()  # type: ignore[assignment]
    return made


async def test_sixteen_first_sign_ups_make_one_administrator(accounts: Accounts) -> None:
    people = [NewUser(f"u{number}@x", "U", password="secret") for number in range(16)]
    outcomes = await asyncio.gather(
        *(accounts.sign_up.sign_up(new, "192.0.2.1") for new in people), return_exceptions=True
    )
    made = [outcome.role for outcome in outcomes if isinstance(outcome, User)]
    refused = [outcome.code for outcome in outcomes if isinstance(outcome, GatewayError)]
    assert made.count(Role.ADMIN) == 1
    assert len(made) + len(refused) == 16
    assert set(refused) <= {"signup_off"}
    assert await accounts.users_store.count_active_admins() == 1
    assert (await accounts.values_store.load())["ENABLE_SIGNUP"] is False


async def test_administrators_cannot_demote_each_other_at_once(accounts: Accounts) -> None:
    admins = [await accounts.add_user(f"a{number}", Role.ADMIN) for number in range(5)]
    outcomes = await asyncio.gather(
        *(accounts.users.change(admin.id, UserChange(role=Role.USER), None) for admin in admins),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, GatewayError) for outcome in outcomes) == 1
    assert await accounts.users_store.count_active_admins() == 1


async def test_settings_of_one_account_changed_at_once_are_all_kept(accounts: Accounts) -> None:
    user = await accounts.add_user()
    await asyncio.gather(
        *(accounts.users.change(user.id, UserChange(settings={str(n): n}), None) for n in range(10))
    )
    assert (await accounts.users.get(user.id)).settings == {str(n): n for n in range(10)}


async def test_setup_and_its_key(accounts: Accounts) -> None:
    async with accounts.commits.rehearsal():
        await accounts.setup.run("chief@example.org", "Chief", None)
    assert await accounts.users.count() == 0
    made = await accounts.setup.run("chief@example.org", "Chief", None)
    actor = await accounts.authenticator.authenticate(made.key_value, "GET", "/api/models")
    assert (actor.is_admin, actor.key_id) == (True, made.key.id)
    accounts.time += 60
    await accounts.authenticator.authenticate(made.key_value, "GET", "/api/models")
    await accounts.authenticator.flush()
    assert (await accounts.keys.get(made.key.id)).last_used_at == accounts.time
    assert (await accounts.users.get(made.user.id)).last_active_at == accounts.time
    await accounts.users.change(made.user.id, UserChange(name="Boss"), None)
    renamed = await accounts.authenticator.authenticate(made.key_value, "GET", "/api/models")
    assert renamed.user.name == "Boss"
