"""Tests for gatewayd.accounts.current_rights."""

from dataclasses import replace

import pytest

from gatewayd.accounts.records import Actor, CredentialKind, NewGroup, Role, User, UserChange
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts


async def test_rights_are_those_of_this_moment(accounts: Accounts) -> None:
    ann = await accounts.add_user("ann")
    group, _ = await accounts.groups.ensure(NewGroup("makers", permissions={"workspace": {"tools": True}}))
    await accounts.groups.add_members(group.id, [ann.id])
    before = replace(await accounts.actor(ann), key_id="k1")
    assert await accounts.current.of(before) == before
    await accounts.groups.remove_members(group.id, [ann.id])
    after = await accounts.current.of(before)
    assert (before.may("workspace", "tools"), after.may("workspace", "tools")) == (True, False)
    assert (after.group_ids, after.key_id, after.kind) == ((), "k1", CredentialKind.SESSION)


async def test_a_role_that_was_taken_away_counts_no_more(accounts: Accounts) -> None:
    await accounts.add_user("root", Role.ADMIN)
    boss = await accounts.add_user("boss", Role.ADMIN)
    actor = await accounts.actor(boss)
    await accounts.users.change(boss.id, UserChange(role=Role.USER), by=None)
    assert (actor.is_admin, (await accounts.current.of(actor)).is_admin) == (True, False)


@pytest.mark.parametrize("change", [UserChange(active=False), UserChange(role=Role.PENDING), None])
async def test_an_account_that_may_nothing_goes_no_further(
    accounts: Accounts, change: UserChange | None
) -> None:
    ann = await accounts.add_user("ann")
    actor = await accounts.actor(ann)
    await (
        accounts.users.remove(ann.id, None) if change is None else accounts.users.change(ann.id, change, None)
    )
    with pytest.raises(GatewayError) as caught:
        await accounts.current.of(actor)
    assert caught.value.kind is ErrorKind.UNAUTHENTICATED


async def test_the_operator_acts_for_an_account_with_its_own_rights(accounts: Accounts) -> None:
    ann = await accounts.add_user("ann")
    user = User(id=ann.id, email="", name="root", role=Role.ADMIN)
    operator = Actor(user, CredentialKind.CONTROL, (), {})
    assert await accounts.current.of(operator) is operator
