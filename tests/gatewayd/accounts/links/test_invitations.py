"""Tests for gatewayd.accounts.links.invitations."""

import asyncio

import pytest

from gatewayd.accounts.links.invitations import MAX_LIFETIME_SECONDS
from gatewayd.accounts.links.records import AcceptedInvitation, NewInvitation
from gatewayd.accounts.records import MembershipSource, NewGroup, Role, UserChange
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts

OPERATOR = "control:root"


@pytest.fixture
def accounts() -> Accounts:
    return Accounts()


def by(token: str, **more: str) -> AcceptedInvitation:
    return AcceptedInvitation(**{"token": token, "name": "Ann", "password": "a long password", **more})


async def refused(accounts: Accounts, accepted: AcceptedInvitation) -> GatewayError:
    before = await accounts.users.count()
    with pytest.raises(GatewayError) as caught:
        await accounts.invitations.accept(accepted)
    assert await accounts.users.count() == before
    return caught.value


async def test_an_invited_person_is_in_the_groups_with_the_role(accounts: Accounts) -> None:
    groups = [(await accounts.groups.ensure(NewGroup(name)))[0] for name in ("one", "two")]
    new = NewInvitation("Ann@Example.org", Role.ADMIN, tuple(group.id for group in groups))
    link, token = await accounts.invitations.create(new, OPERATOR)
    assert token not in repr(accounts.memory.tables.links)
    assert await accounts.invitations.list() == [link]
    await accounts.groups.remove(groups[1].id)
    user, used = await accounts.invitations.accept(by(token))
    assert (user.email, user.name, user.role, used) == ("ann@example.org", "Ann", Role.ADMIN, link)
    sources = await accounts.groups.list_sources(groups[0].id, [user.id])
    assert sources == {user.id: [MembershipSource.MANUAL]}
    assert await accounts.users_store.find_password_hash(user.id) == "hash:a long password"
    assert await accounts.invitations.list() == []
    assert (await refused(accounts, by(token))).code == "invalid_link"


async def test_an_invitation_to_an_empty_gateway_makes_no_administrator(accounts: Accounts) -> None:
    _, token = await accounts.invitations.create(NewInvitation("ann@example.org"), OPERATOR)
    assert (await accounts.invitations.accept(by(token)))[0].role is Role.USER


@pytest.mark.parametrize("change", [UserChange(role=Role.USER), UserChange(active=False), None])
async def test_an_invitation_ends_with_the_role_of_its_administrator(
    accounts: Accounts, change: UserChange | None
) -> None:
    await accounts.add_user("first", Role.ADMIN)
    creator = await accounts.add_user("second", Role.ADMIN)
    new = NewInvitation("ann@example.org", Role.ADMIN)
    _, token = await accounts.invitations.create(new, creator.id)
    assert (await accounts.invitations.find_by_token(token)).created_by == creator.id
    if change is None:
        await accounts.users.remove(creator.id, None)
    else:
        await accounts.users.change(creator.id, change, None)
    assert (await refused(accounts, by(token))).code == "invalid_link"


async def test_one_of_many_tries_at_once_makes_an_account(accounts: Accounts) -> None:
    _, token = await accounts.invitations.create(NewInvitation(), OPERATOR)
    tries = [by(token, email=f"ann{number}@example.org") for number in range(8)]
    made = await asyncio.gather(
        *(accounts.invitations.accept(each) for each in tries), return_exceptions=True
    )
    assert sum(not isinstance(each, BaseException) for each in made) == 1
    assert {each.code for each in made if isinstance(each, GatewayError)} == {"invalid_link"}
    assert await accounts.users.count() == 1


async def test_a_bound_address_is_the_only_one(accounts: Accounts) -> None:
    _, token = await accounts.invitations.create(NewInvitation("ann@example.org"), OPERATOR)
    assert (await refused(accounts, by(token, email="eve@example.org"))).param == "email"
    user, _ = await accounts.invitations.accept(by(token, email="ANN@example.org "))
    assert user.email == "ann@example.org"
    _, token = await accounts.invitations.create(NewInvitation(), OPERATOR)
    assert (await refused(accounts, by(token))).param == "email"
    taken = await refused(accounts, by(token, email="ann@example.org"))
    assert (taken.kind, taken.param) == (ErrorKind.CONFLICT, "email")
    await accounts.invitations.accept(by(token, email="bob@example.org"))


async def test_a_mistake_does_not_use_it_up(accounts: Accounts) -> None:
    _, token = await accounts.invitations.create(NewInvitation("ann@example.org"), OPERATOR)
    assert (await refused(accounts, by(token, name=" "))).param == "name"
    assert (await refused(accounts, by(token, password="x" * 5000))).param == "password"
    await accounts.invitations.accept(by(token))


async def test_an_expired_or_revoked_one_does_not_work(accounts: Accounts) -> None:
    link, token = await accounts.invitations.create(NewInvitation("ann@example.org"), OPERATOR)
    assert await accounts.invitations.revoke(link.id) == link
    assert (await refused(accounts, by(token))).code == "invalid_link"
    with pytest.raises(GatewayError) as caught:
        await accounts.invitations.revoke(link.id)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    _, token = await accounts.invitations.create(NewInvitation("a@example.org", lifetime_seconds=5), OPERATOR)
    accounts.time += 5
    assert (await refused(accounts, by(token))).code == "invalid_link"
    assert await accounts.invitations.list() == []


@pytest.mark.parametrize("token", ["", "0" * 63, "0" * 64, "0" * 100_000, "\x00" * 64, "\ud800" * 64])
async def test_what_is_no_token(accounts: Accounts, token: str) -> None:
    assert (await refused(accounts, by(token))).code == "invalid_link"


async def test_a_sign_in_link_is_no_invitation(accounts: Accounts) -> None:
    link, token = await accounts.sign_in_links.create(await accounts.add_user(), OPERATOR)
    assert (await refused(accounts, by(token))).code == "invalid_link"
    with pytest.raises(GatewayError):
        await accounts.invitations.revoke(link.id)


@pytest.mark.parametrize(
    ("new", "param"),
    [
        (NewInvitation("no address"), "email"),
        (NewInvitation("taken@example.org"), "email"),
        (NewInvitation(lifetime_seconds=0), "expires_in"),
        (NewInvitation(lifetime_seconds=MAX_LIFETIME_SECONDS + 1), "expires_in"),
        (NewInvitation(group_ids=("g",) * 101), "group_ids"),
        (NewInvitation(group_ids=("gone",)), None),
    ],
)
async def test_bad_invitations_are_refused(accounts: Accounts, new: NewInvitation, param: str | None) -> None:
    await accounts.add_user("taken")
    with pytest.raises(GatewayError) as caught:
        await accounts.invitations.create(new, OPERATOR)
    assert caught.value.param == param
    assert await accounts.invitations.list() == []
