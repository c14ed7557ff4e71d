"""`/v1/groups`."""

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire.groups import GroupChange, Members, NewGroup
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
