"""Access lists by names."""

import pytest

from gatewayctl.wire.models import Holders
from gatewayd.accounts.records import NewGroup
from gatewayd.catalog.records import Grant
from gatewayd.errors import GatewayError
from gatewayd.http.control.accounts.access_lists import AccessLists, combine_grants
from tests.fakes.daemons.control_socket import Control

READ, WRITE = Grant("user", "a", "read"), Grant("user", "a", "write")


async def test_names_become_grants_and_back(control: Control) -> None:
    accounts = control.accounts
    lists = AccessLists(accounts.users, accounts.groups)
    ann = await accounts.add_user("ann")
    team = await accounts.groups.create(NewGroup("Team"))
    wanted = Holders(users=[ann.email, ann.id], groups=["Team"], everyone=True, permission="write")
    grants = await lists.read(wanted)
    assert grants == (
        Grant("user", ann.id, "write"),
        Grant("group", team.id, "write"),
        Grant("user", "*", "write"),
    )
    shown = await lists.show((*grants, Grant("group", "gone", "read"), Grant("user", "gone", "read")))
    assert [one.principal for one in shown] == [ann.email, "Team", "*", "gone", "gone"]


async def test_nobody(control: Control) -> None:
    lists = AccessLists(control.accounts.users, control.accounts.groups)
    with pytest.raises(GatewayError, match="name users, groups or everyone"):
        await lists.read(Holders())
    with pytest.raises(GatewayError, match="cannot find user"):
        await lists.read(Holders(users=["zoe@example.org"]))


def test_lists_are_combined() -> None:
    assert combine_grants((READ,), add=(READ, WRITE)) == (READ, WRITE)
    assert combine_grants((READ, WRITE), drop=(READ,)) == (WRITE,)
    assert combine_grants(()) == ()
