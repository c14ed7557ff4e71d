"""Plans and applies of documents over stores in memory."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayd.accounts.records import Actor, CredentialKind, MembershipSource, NewGroup, Role, User
from gatewayd.accounts.runtime_settings import ConfiguredValue
from gatewayd.catalog.records import Grant, ModelRecord
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.knowledge.collections import NewCollection
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.service import PluginChange
from gatewayd.state.plugins import PluginTable
from gatewayd.state.providers import ProviderTable
from gatewayd.state.records import FieldChange, ObjectChange, StateAction, StatePlan
from gatewayd.state.scope import StateScope, read_scope
from gatewayd.state.service import StateService
from tests.fakes.daemons.control_socket import Control, control_socket
from tests.fakes.daemons.control_state import make_state
from tests.fakes.storage.records import plugin

OPERATOR = Actor(
    User(id="control:root", email="", name="root", role=Role.ADMIN), CredentialKind.CONTROL, (), {}
)


class Bench:
    """The service with a record of the changes that it made."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.service: StateService = make_state(control, control.providers)
        self.made: list[str] = []

    async def record(self, change: ObjectChange) -> None:
        self.made.append(change.path)

    async def plan(self, *, prune: bool = False, **tables: Any) -> StatePlan:
        return await self.service.plan(OPERATOR, "test", tables, prune=prune)

    async def apply(self, *, prune: bool = False, digest: str | None = None, **tables: Any) -> StatePlan:
        return await self.service.apply(OPERATOR, "test", tables, self.record, prune=prune, digest=digest)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with control_socket(tmp_path) as control:
        await control.accounts.add_user("boss", role=Role.ADMIN)
        yield Bench(control)


async def test_the_digest_names_the_changes_and_not_the_document(bench: Bench) -> None:
    one = await bench.plan(groups={"g": {"description": "x"}})
    same = await bench.plan(groups={"g": {"description": " x "}})
    assert one.digest == same.digest
    other = await bench.plan(groups={"g": {"description": "y"}})
    assert other.digest != one.digest
    with pytest.raises(GatewayError) as caught:
        await bench.apply(groups={"g": {"description": "y"}}, digest=one.digest)
    assert (caught.value.kind, caught.value.code, bench.made) == (ErrorKind.CONFLICT, "plan_changed", [])


async def test_applies_are_made_one_after_the_other(bench: Bench) -> None:
    wanted = {f"g{number}": {} for number in range(20)}
    digest = (await bench.plan(groups=wanted)).digest
    done = await asyncio.gather(
        bench.apply(groups=wanted, digest=digest),
        bench.apply(groups=wanted, digest=digest),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in done) == ["GatewayError", "StatePlan"]
    assert len(bench.made) == 20


async def test_an_administrator_is_promoted_before_another_one_is_demoted(bench: Bench) -> None:
    accounts = bench.control.accounts
    boss = (await accounts.users.list())[0][0]
    zoe = await accounts.add_user("zoe")
    plan = await bench.apply(users={boss.email: {"role": "user"}, zoe.email: {"role": "admin"}})
    assert [change.name for change in plan.changes] == [zoe.email, boss.email]
    assert (await accounts.users.get(boss.id)).role is Role.USER
    await bench.apply(users={zoe.email: {"username": "zed"}})
    await bench.apply(users={zoe.email: {"username": ""}})
    assert (await accounts.users.get(zoe.id)).username is None


async def test_members_of_providers_stay(bench: Bench) -> None:
    accounts = bench.control.accounts
    ann, bob = await accounts.add_user("ann"), await accounts.add_user("bob")
    group = await accounts.groups.create(NewGroup("Staff"))
    await accounts.groups.add_members(group.id, [ann.id], MembershipSource.SCIM)
    await accounts.groups.add_members(group.id, [bob.id])
    assert (await bench.service.export(OPERATOR, "test", ["groups"]))["groups"]["Staff"]["members"] == [
        bob.email
    ]
    await bench.apply(groups={"STAFF": {"members": []}})
    assert await accounts.groups.list_member_ids(group.id) == [ann.id]
    assert (await bench.plan(groups={"staff": {"members": []}})).changes == ()


async def test_collections_of_one_name_are_named_by_their_ids(bench: Bench) -> None:
    collections = bench.control.documents.collections
    one = await collections.create(OPERATOR, NewCollection("Docs"), owner_id="gone")
    two = await collections.create(OPERATOR, NewCollection("Docs"), owner_id="gone")
    document = (await bench.service.export(OPERATOR, "test"))["collections"]
    assert set(document) == {one.id, two.id}
    assert document[one.id] == {"name": "Docs", "description": "", "readers": [], "writers": []}
    assert (await bench.plan(collections=document, prune=True)).changes == ()
    with pytest.raises(GatewayError, match=r"collections\.Docs: several collections have this name"):
        await bench.plan(collections={"Docs": {}})
    boss = (await bench.control.accounts.users.list())[0][0]
    await bench.apply(collections={two.id: {"name": "Papers", "owner": boss.email, "readers": ["*"]}})
    assert (await bench.service.export(OPERATOR, "test"))["collections"]["Papers"]["owner"] == boss.email


async def test_what_the_document_cannot_name_stays(bench: Bench) -> None:
    catalog, lost = bench.control.catalog, Grant("user", "gone", "read")
    file = {"type": "file", "id": "f1"}
    record = ModelRecord("alpha", "gone", "Alpha", meta={"knowledge": [file], "x": 1}, grants=(lost,))
    await catalog.put_record(record)
    await bench.apply(models={"alpha": {"readers": ["*"], "knowledge": [], "meta": {"y": 2}, "system": "s"}})
    kept = catalog.find_record("alpha")
    assert kept is not None
    assert kept.grants == (lost, Grant("user", "*", "read"))
    assert (kept.meta, kept.params) == ({"y": 2, "knowledge": [file]}, {"system": "s"})
    await bench.apply(models={"alpha": {"params": {"top_k": 1}}})
    changed = catalog.find_record("alpha")
    assert changed is not None
    assert changed.params == {"top_k": 1, "system": "s"}
    note = (await bench.plan(models={"m": {"base": "none"}})).notes
    assert note == ("models.m.base: no provider lists 'none' now",)


async def test_a_key_stays_with_its_host(bench: Bench) -> None:
    store = bench.control.plugins.servers
    await bench.apply(tool_servers={"s": {"url": "http://one.test", "key": "k", "headers": {"X": "y"}}})
    plan = await bench.apply(tool_servers={"s": {"description": "d", "functions": ["a", "a"]}})
    assert [each.name for each in plan.changes[0].fields] == ["description", "functions"]
    assert (store.rows["s"].key, store.rows["s"].headers) == ("k", {"X": "y"})
    with pytest.raises(GatewayError, match="must be sent in full"):
        await bench.plan(tool_servers={"s": {"url": "http://two.test"}})
    await bench.apply(tool_servers={"s": {"url": "http://two.test", "key": "", "headers": {}}})
    assert (store.rows["s"].key, store.rows["s"].url) == ("", "http://two.test")
    unchanged = await bench.plan(tool_servers={"fixed": {"url": "http://127.0.0.1:9"}})
    assert unchanged.changes == ()


async def test_a_failure_in_between_names_how_far_it_came(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = bench.control.accounts.groups
    create = groups.create

    async def fail_on_second(new: NewGroup) -> Any:
        if new.name == "g2":
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the database")
        return await create(new)

    monkeypatch.setattr(groups, "create", fail_on_second)
    wanted: dict[str, Any] = {"g1": {}, "g2": {}, "g3": {}}
    with pytest.raises(GatewayError, match=r"groups\.g2: .*; 1 of 3 changes were made before it") as caught:
        await bench.apply(groups=wanted)
    assert (caught.value.kind, bench.made) == (ErrorKind.UNAVAILABLE, ["groups.g1"])
    monkeypatch.undo()
    await bench.apply(groups=wanted)
    assert bench.made == ["groups.g1", "groups.g2", "groups.g3"]


async def test_providers_are_never_written(bench: Bench) -> None:
    table = ProviderTable(bench.control.providers)
    change = ObjectChange("providers", "acme", StateAction.UPDATE, "providers.acme")
    with pytest.raises(ValueError, match="providers are changed in the configuration file"):
        await table.write(change, StateScope(OPERATOR, "test"))
    plan = await bench.apply(providers={"acme": {"kind": "ollama"}}, prune=True)
    assert {change.action for change in plan.changes} == {StateAction.REPORT}
    assert (len(plan.changes), plan.writes) == (2, ())


async def test_what_the_configuration_fixes_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = bench.control.accounts
    monkeypatch.setattr(accounts.runtime, "_persistent", False)
    monkeypatch.setattr(accounts.permissions, "_persistent", False)
    accounts.runtime.configure({"ENABLE_SIGNUP": ConfiguredValue(True, "file /etc/x", True)})
    accounts.permissions.configure({"features": {"api_keys": False}})
    with pytest.raises(GatewayError, match=r"settings\.ENABLE_SIGNUP: cannot set") as caught:
        await bench.apply(settings={"ENABLE_SIGNUP": False})
    assert caught.value.kind is ErrorKind.CONFLICT
    with pytest.raises(GatewayError, match=r"permissions\.features\.api_keys: cannot set"):
        await bench.plan(permissions={"features": {"api_keys": True}})
    assert (await bench.plan(permissions={"features": {"api_keys": False}})).changes == ()
    assert (await bench.plan(settings={"ENABLE_SIGNUP": True})).changes == ()


async def test_a_plugin_that_refuses_its_valves_is_as_it_was(bench: Bench) -> None:
    before = plugin("p", PluginFamily.TOOL, name="Old", grants=(Grant("user", "*", "read"),))
    changes: list[PluginChange] = []

    async def change(_: Any, __: Any, ___: Any, wanted: PluginChange) -> Any:
        changes.append(wanted)
        return replace(before, name=wanted.name or before.name, grants=wanted.grants or ())

    async def refuse(*_: Any) -> None:
        raise GatewayError(ErrorKind.INVALID_REQUEST, "no such value")

    service: Any = SimpleNamespace(change=change, set_valves=refuse)
    registry: Any = SimpleNamespace(find=lambda *_: before)
    nothing: Any = None
    table = PluginTable(PluginFamily.TOOL, service, registry, nothing, nothing)
    fields = (FieldChange("name", "Old", "New"), FieldChange("valves.unit", None, 7))
    scope = await read_scope(bench.control.accounts.users, bench.control.accounts.groups, OPERATOR, "test")
    with pytest.raises(GatewayError, match="no such value"):
        await table.write(ObjectChange("tools", "p", StateAction.UPDATE, "tools.p", fields), scope)
    former = PluginChange(before.content, before.name, before.description, grants=before.grants)
    assert changes == [PluginChange(name="New"), former]
