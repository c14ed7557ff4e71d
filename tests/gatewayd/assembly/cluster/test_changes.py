"""Two gateways on one PostgreSQL: what one changes, the other no longer remembers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.records import (
    Actor,
    GroupChange,
    NewUser,
    Role,
    SessionOrigin,
    SignInMethod,
    User,
    UserChange,
)
from gatewayd.assembly.cluster.changes import AccessRecheck, AccountInvalidation
from gatewayd.assembly.cluster.services import ChangeServices, open_changes
from gatewayd.assembly.gateway import Gateway, assemble
from gatewayd.assembly.services import GatewayServices
from gatewayd.assembly.upkeep.state import make_state
from gatewayd.catalog.records import Grant, ModelRecord
from gatewayd.cluster.freshness import ALWAYS_FRESH
from gatewayd.cluster.invalidation import InvalidationMap
from gatewayd.cluster.reader import ChangeReader
from gatewayd.cluster.records import Change, ChangeKind
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.records import LimitSubject
from gatewayd.limits.service import LimitTarget
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.service import NewPlugin
from gatewayd.scim.tokens.rotation import TokenSource
from gatewayd.settings import load
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import sqlite
from tests.fakes.accounts.memory_stores import Memory, MemoryRevocations, MemoryUsers
from tests.fakes.accounts.records import user as user_record
from tests.fakes.storage.migrated import migrated_copy
from tests.fakes.storage.postgres import Postgres

SECRET = "the same secret of both nodes, which is long"
FILTER = """
class Filter:
    def inlet(self, body):
        return body
"""


@dataclass
class Pair:
    """Two nodes; the first makes the changes. `key` is the credential of `admin`."""

    first: GatewayServices
    second: GatewayServices
    admin: Actor
    key: str

    def reader(self) -> ChangeReader:
        assert self.second.change_log.reader is not None
        return self.second.change_log.reader

    async def person(self) -> tuple[User, str]:
        """Return an ordinary user of the first node and their session token."""
        accounts = self.first.accounts
        user = await accounts.users.create(
            NewUser(email="ann@example.org", name="Ann", role=Role.USER, password="a password of ann")
        )
        token, _ = await accounts.sessions.issue(user, 3600, SessionOrigin(SignInMethod.PASSWORD))
        return user, token

    async def is_admitted(self, credential: str) -> bool:
        try:
            await self.second.accounts.authenticator.authenticate(credential, "GET", "/api/models")
        except GatewayError as error:
            if error.kind not in {ErrorKind.UNAUTHENTICATED, ErrorKind.FORBIDDEN}:
                raise
            return False
        return True


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.01)


async def node(state: Path, postgres_url: str, stack: AsyncExitStack) -> Gateway:
    state.mkdir(mode=0o700)
    settings = load(
        None,
        {
            "DATA_DIR": str(state),
            "ENABLE_BUILTIN_MODEL": "false",
            "DATABASE_URL": postgres_url,
            "CLUSTER": "true",
            "WEBUI_SECRET_KEY": SECRET,
            "FILE_STORE": str(state.parent),
            "REDIS_URL": f"unix://{state.parent}/absent",
        },
    )
    return await assemble(settings, stack)


@pytest.fixture
async def pair(tmp_path: Path, postgres: Postgres) -> AsyncIterator[Pair]:
    url = postgres.migrated_database()
    async with AsyncExitStack() as stack:
        first = (await node(tmp_path / "a", url, stack)).services
        made = await first.accounts.setup.run("a@example.org", "A", "a password")
        second = (await node(tmp_path / "b", url, stack)).services
        actor = await first.accounts.authenticator.authenticate(made.key_value, "GET", "/api/models")
        yield Pair(first, second, actor, made.key_value)


async def test_a_revoked_key_a_session_and_accounts_end_on_the_other_node(pair: Pair) -> None:
    accounts = pair.first.accounts
    assert await pair.is_admitted(pair.key)
    user, token = await pair.person()
    assert await pair.is_admitted(token)
    assert pair.admin.key_id is not None
    await accounts.keys.revoke(pair.admin.key_id)
    await until(lambda: _not(pair.is_admitted(pair.key)))
    seen: list[AccountChange] = []
    pair.second.accounts.changes.subscribe(seen.append)
    await accounts.sessions.revoke(accounts.sessions.read(token))
    await until(lambda: _not(pair.is_admitted(token)))
    jti = accounts.sessions.read(token).jti
    assert AccountChange(user.id, asks_again=True, ended=(jti,)) in seen
    await accounts.users.change(user.id, UserChange(active=False), None)
    out = AccountChange(user.id, is_out=True)
    await until(lambda: _is(out in seen))
    await accounts.users.remove(user.id, None)
    await until(lambda: _is(AccountChange(user.id, is_out=True, is_removed=True) in seen))
    assert AccountChange(user.id, asks_again=True, is_signed_out=True) in seen


async def test_settings_permissions_and_groups_are_in_force_on_the_other_node(pair: Pair) -> None:
    first, second = pair.first.accounts, pair.second.accounts
    _, token = await pair.person()
    await first.runtime.set({"ENABLE_SIGNUP": False}, by="test")
    await until(lambda: _is(not second.runtime.flag("ENABLE_SIGNUP")))
    tree = first.permissions.defaults()
    tree["workspace"]["tools"] = True
    await first.permissions.set_defaults(tree, by="test")
    await until(lambda: _is(second.permissions.defaults()["workspace"]["tools"]))
    assert await second.permissions.read_defaults() == second.permissions.defaults()
    actor = await second.authenticator.authenticate(token, "GET", "/x")
    assert actor.may("workspace", "tools")
    [group_id] = pair.admin.group_ids
    await first.groups.change(group_id, GroupChange(permissions={}))
    await until(lambda: _not(pair.is_admitted(pair.key)))


async def test_scim_tokens_are_in_force_on_the_other_node(pair: Pair) -> None:
    """The test of the door with a node that is not fresh is in test_scim_auth."""
    first, second = pair.first.provisioning, pair.second.provisioning
    for node in (first, second):
        source = TokenSource(True, pair.first.settings.data_dir / "none")
        await node.keeper.configure(source)

    async def accepts(token: str) -> bool:
        try:
            second.tokens.check(token)
        except GatewayError:
            return False
        return True

    token = await first.keeper.create()
    await until(lambda: accepts(token))
    newer = await second.keeper.rotate()
    await first.keeper.retire()
    await until(lambda: _not(accepts(token)))
    assert await accepts(newer)
    # With a question to the database, as the door asks one, nothing is late.
    newest = await first.keeper.rotate()
    await first.keeper.retire()
    await pair.reader().renew()
    assert (await accepts(newest), await accepts(newer)) == (True, False)


async def test_models_and_limits_are_in_force_on_the_other_node(pair: Pair) -> None:
    first, second = pair.first, pair.second
    record = ModelRecord("m", pair.admin.user_id, "M", grants=(Grant("user", "*", "read"),))
    async with first.catalog.changing():
        await first.catalog.put_record(record)
    await until(lambda: _is(second.catalog.find_record("m")))
    assert second.catalog.find_record("m") == first.catalog.find_record("m")
    await first.catalog.switch("m", active=False)
    await until(lambda: _is(not getattr(second.catalog.find_record("m"), "is_active", True)))
    await first.catalog.remove_record("m")
    await until(lambda: _is(second.catalog.find_record("m") is None))
    rule, _ = await first.limits.limits.set(LimitTarget(LimitSubject.TOTAL), {"parallel": 3})
    await until(lambda: _is(not second.limits.admission.book.is_empty))
    await first.limits.limits.remove(rule.id)
    await until(lambda: _is(second.limits.admission.book.is_empty))


async def test_plugins_follow_and_changes_of_two_nodes_are_not_lost(pair: Pair) -> None:
    first, second = pair.first.extensions, pair.second.extensions
    family = PluginFamily.FUNCTION
    await first.plugins.create(pair.admin, family, NewPlugin("f", FILTER))
    # The other node need not have heard of it yet.
    await second.plugins.set_active(pair.admin, family, "f", is_active=True)
    await first.plugins.set_global(pair.admin, family, "f", is_global=True)
    await until(lambda: _is(getattr(second.registry.find(family, "f"), "is_global", False)))
    for registry in (first.registry, second.registry):
        found = registry.find(family, "f")
        assert found is not None
        assert (found.is_active, found.is_global) == (True, True)
    await second.plugins.remove(pair.admin, family, "f")
    await until(lambda: _is(first.registry.find(family, "f") is None))


async def test_a_pruned_log_empties_every_cache(pair: Pair) -> None:
    reader = pair.reader()
    assert await pair.is_admitted(pair.key)
    log = pair.first.change_log.log
    assert log is not None
    database: Database = pair.first.database
    async with database.transaction():
        await database.engine.execute_query_dict("SELECT 1")
        await pair.first.accounts.runtime.set({"ENABLE_SIGNUP": False}, by="test")
        await database.engine.execute_query_dict(
            "UPDATE cluster_version SET v = v + 5 WHERE id = 1 RETURNING v"
        )
    await until(lambda: _is(reader.clears))
    assert await pair.is_admitted(pair.key)
    await until(lambda: _is(not pair.second.accounts.runtime.flag("ENABLE_SIGNUP")))


async def _is(value: object) -> object:
    return value


async def _not(work: Awaitable[bool]) -> bool:
    return not await work


def test_what_is_folded_or_missed_lets_everybody_ask_again() -> None:
    changes, seen, caches = AccountChangeNotifier(), list[AccountChange](), InvalidationMap()
    changes.subscribe(seen.append)
    AccountInvalidation(changes).register(caches)
    caches.clear()
    assert all(change.user_id is None for change in seen)
    assert not any(change.is_out or change.ended or change.is_signed_out for change in seen)
    assert any(change.asks_again for change in seen)
    del seen[:]
    caches.apply([Change(1, "key", "u1"), Change(2, "member", "u2"), Change(3, "group", "g")])
    assert seen == [AccountChange("u1", asks_again=True), AccountChange("u2"), AccountChange(None)]


async def test_after_a_gap_the_running_requests_of_ended_accounts_end() -> None:
    memory = Memory()
    users, revocations = MemoryUsers(memory), MemoryRevocations(memory)
    for user_id in ("u1", "u2", "u3"):
        await users.add(user_record(user_id), None)
    await users.change(replace(user_record("u2"), active=False))
    await revocations.add("j3", "u3", 99)
    changes, seen = AccountChangeNotifier(), list[AccountChange]()
    changes.subscribe(seen.append)
    running = {"u1": {"j1"}, "u2": set[str](), "u3": {"j3", "j4"}, "gone": set[str]()}
    followed = ChangeServices(InvalidationMap(), running=lambda: running)
    recheck = AccessRecheck(users, revocations, changes, followed)
    await recheck.after(frozenset({(ChangeKind.USER_OUT, "u2")}))
    assert seen == []
    await recheck.after(frozenset({(ChangeKind.USER_OUT, "")}))
    assert seen == [
        AccountChange("u2", is_out=True),
        AccountChange("u3", asks_again=True, ended=("j3",)),
        AccountChange("gone", is_out=True, is_removed=True),
    ]


async def test_a_file_has_no_log_and_no_cluster(tmp_path: Path) -> None:
    async with Database.open(sqlite(migrated_copy(tmp_path))) as database:
        alone = await open_changes(load(None, {"DATA_DIR": str(tmp_path)}), database)
        assert (alone.freshness, alone.reader, alone.log) == (ALWAYS_FRESH, None, None)
        assert alone.running() == {}


async def test_one_node_applies_a_document_at_a_time_and_knows_what_others_changed(pair: Pair) -> None:
    first, second = make_state(pair.first), make_state(pair.second)
    document = {"groups": {"applied": {}}}

    async def record(_: object) -> None:
        with pytest.raises(GatewayError, match="another node does it") as caught:
            await second.apply(pair.admin, "test", document, ignore, prune=False, digest=None)
        assert caught.value.kind is ErrorKind.CONFLICT

    async def ignore(_: object) -> None:
        raise AssertionError("nothing is left to do")

    plan = await first.apply(pair.admin, "test", document, record, prune=False, digest=None)
    assert [change.name for change in plan.writes] == ["applied"]
    again = await second.apply(pair.admin, "test", document, ignore, prune=False, digest=None)
    assert list(again.writes) == []
