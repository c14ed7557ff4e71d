"""`/v1/groups`."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire.groups import GroupChange, Members, NewGroup
from gatewayd.accounts import users
from gatewayd.accounts.records import NewGroup as NewRecord
from gatewayd.accounts.records import Source
from tests.fakes.control import Control


async def test_members_are_all_or_none(control: Control) -> None:
    client = control.client
    ann = await control.accounts.add_user("ann")
    group = await control.call(client.create_group, NewGroup(name="g"))
    assert (group.outcome, group.member_count) == ("created", 0)
    with pytest.raises(CommandError) as caught:
        await control.call(client.add_members, "g", Members(users=[ann.email, "zoe@example.org"]))
    assert caught.value.kind == "not_found"
    assert (await control.call(client.get_group, "g")).member_count == 0
    added = await control.call(client.add_members, "g", Members(users=[ann.email, ann.id]))
    assert (added.outcome, added.changed_members, added.member_count) == ("changed", 1, 1)
    members = await control.call(client.list_members, group.id)
    assert [user.email for user in members.users] == [ann.email]
    removed = await control.call(client.remove_members, "g", Members(users=[ann.id]))
    assert (removed.changed_members, removed.member_count) == (1, 0)


async def test_members_are_read_in_pages(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "PAGE_USERS", 2)
    client, accounts = control.client, control.accounts
    people = [await accounts.add_user(name) for name in ("ann", "bob", "cid")]
    group, _ = await accounts.groups.ensure(NewRecord("g"))
    await accounts.groups.add_members(group.id, [each.id for each in people])
    await accounts.groups.add_members(group.id, [people[2].id], Source.SCIM)
    accounts.users_store.read.clear()
    members = (await control.call(client.list_members, "g")).users
    assert [(each.name, each.groups, each.sources) for each in members] == [
        ("ann", ["g"], ["manual"]),
        ("bob", ["g"], ["manual"]),
        ("cid", ["g"], ["manual", "scim"]),
    ]
    listed = await control.call(client.list_users, limit=3)
    assert ([each.name for each in listed.users], listed.total) == (["ann", "bob", "cid"], 3)
    assert accounts.users_store.read == [2, 1, 2, 1]
    shown = await control.call(client.get_group, "g")
    assert (shown.member_count, shown.sources) == (3, {"manual": 3, "scim": 1})


async def test_dry_runs_keep_nothing(control: Control) -> None:
    client = control.client
    await control.call(client.create_group, NewGroup(name="g"), dry_run=True)
    assert (await control.call(client.list_groups)).groups == []
    await control.call(client.create_group, NewGroup(name="g"))
    changed = await control.call(client.change_group, "g", GroupChange(name="h"), dry_run=True)
    assert (changed.name, changed.dry_run) == ("h", True)
    assert (await control.call(client.get_group, "g")).name == "g"
    removed = await control.call(client.remove_group, "g", dry_run=True)
    assert removed.outcome == "removed"
    assert len((await control.call(client.list_groups)).groups) == 1
