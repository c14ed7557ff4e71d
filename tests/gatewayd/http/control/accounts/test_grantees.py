"""How accounts and groups are named."""

import pytest

from gatewayd.accounts.records import NewGroup, Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.control.accounts.grantees import GranteeFinder
from tests.fakes.accounts.services import Accounts


async def test_names_stand_for_grants_and_back() -> None:
    accounts = Accounts()
    ann = await accounts.add_user("ann")
    staff = await accounts.groups.create(NewGroup("Staff"))
    principals = GranteeFinder(accounts.users, accounts.groups)
    grants = await principals.grants(["*", ann.email, "group:Staff", "*"], "read")
    assert grants == (
        Grant("user", "*", "read"),
        Grant("user", ann.id, "read"),
        Grant("group", staff.id, "read"),
    )
    assert await principals.grants([ann.id, f"group:{staff.id}"], "read") == grants[1:]
    named = await principals.names([*grants, Grant("user", "gone", "read"), Grant("group", "gone", "read")])
    assert named == {
        ("user", "*"): "*",
        ("user", ann.id): ann.email,
        ("group", staff.id): "group:Staff",
        ("user", "gone"): "gone",
        ("group", "gone"): "group:gone",
    }
    assert await principals.emails([ann.id, "gone", ann.id]) == {ann.id: ann.email, "gone": ""}


@pytest.mark.parametrize("ref", ["zoe@example.org", "", "group:", "group:none", "Staff"])
async def test_who_is_unknown_is_not_found(ref: str) -> None:
    accounts = Accounts()
    await accounts.groups.create(NewGroup("Staff"))
    with pytest.raises(GatewayError) as caught:
        await GranteeFinder(accounts.users, accounts.groups).grants([ref], "read")
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_the_first_administrator_is_the_owner_unless_one_is_named() -> None:
    accounts = Accounts()
    principals = GranteeFinder(accounts.users, accounts.groups)
    ann = await accounts.add_user("ann")
    with pytest.raises(GatewayError) as caught:
        await principals.owner(None)
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    boss = await accounts.add_user("boss", Role.ADMIN)
    await accounts.add_user("second", Role.ADMIN)
    assert (await principals.owner(None)).id == boss.id
    assert (await principals.owner(ann.email)).id == ann.id
