"""`/v1/groups`."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.groups import GroupChange, GroupMembers, NewGroup
from gatewayd.accounts import users
from gatewayd.accounts.records import MembershipSource
from gatewayd.accounts.records import NewGroup as NewRecord
from tests.fakes.daemons.control_socket import Control


async def test_members_are_all_or_none(control: Control) -> None:
    client = control.client
    ann = await control.accounts.add_user("ann")
    group = await control.call(client.call, routes.CREATE_GROUP, body=NewGroup(name="g"))
    assert (group.outcome, group.member_count) == ("created", 0)
    with pytest.raises(CommandError) as caught:
        await control.call(
            client.call, routes.ADD_MEMBERS, "g", body=GroupMembers(users=[ann.email, "zoe@example.org"])
        )
    assert caught.value.kind == "not_found"
    assert (await control.call(client.call, routes.GET_GROUP, "g")).member_count == 0
    added = await control.call(
        client.call, routes.ADD_MEMBERS, "g", body=GroupMembers(users=[ann.email, ann.id])
    )
    assert (added.outcome, added.changed_members, added.member_count) == ("changed", 1, 1)
    members = await control.call(client.call, routes.LIST_MEMBERS, group.id)
    assert [user.email for user in members.users] == [ann.email]
    removed = await control.call(client.call, routes.REMOVE_MEMBERS, "g", body=GroupMembers(users=[ann.id]))
    assert (removed.changed_members, removed.member_count) == (1, 0)


async def test_members_are_read_in_pages(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "USERS_PER_PAGE", 2)
    client, accounts = control.client, control.accounts
    people = [await accounts.add_user(name) for name in ("ann", "bob", "cid")]
    group, _ = await accounts.groups.ensure(NewRecord("g"))
    await accounts.groups.add_members(group.id, [each.id for each in people])
    await accounts.groups.add_members(group.id, [people[2].id], MembershipSource.SCIM)
    accounts.users_store.read.clear()
    members = (await control.call(client.call, routes.LIST_MEMBERS, "g")).users
    assert [(each.name, each.groups, each.sources) for each in members] == [
        ("ann", ["g"], ["manual"]),
        ("bob", ["g"], ["manual"]),
        ("cid", ["g"], ["manual", "scim"]),
    ]
    listed = await control.call(client.call, routes.LIST_USERS, limit=3)
    assert ([each.name for each in listed.users], listed.total) == (["ann", "bob", "cid"], 3)
    assert accounts.users_store.read == [2, 1, 2, 1]
    shown = await control.call(client.call, routes.GET_GROUP, "g")
    assert (shown.member_count, shown.sources) == (3, {"manual": 3, "scim": 1})


async def test_dry_runs_keep_nothing(control: Control) -> None:
    client = control.client
    await control.call(client.call, routes.CREATE_GROUP, body=NewGroup(name="g"), dry_run=True)
    assert (await control.call(client.call, routes.LIST_GROUPS)).groups == []
    await control.call(client.call, routes.CREATE_GROUP, body=NewGroup(name="g"))
    changed = await control.call(
        client.call, routes.CHANGE_GROUP, "g", body=GroupChange(name="h"), dry_run=True
    )
    assert (changed.name, changed.dry_run) == ("h", True)
    assert (await control.call(client.call, routes.GET_GROUP, "g")).name == "g"
    removed = await control.call(client.call, routes.REMOVE_GROUP, "g", dry_run=True)
    assert removed.outcome == "removed"
    assert len((await control.call(client.call, routes.LIST_GROUPS)).groups) == 1
