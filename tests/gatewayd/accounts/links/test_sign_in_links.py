"""Tests for gatewayd.accounts.links.sign_in_links."""

import asyncio

import pytest

from gatewayd.accounts.links.sign_in_links import LIFETIME_SECONDS, MAX_LIFETIME_SECONDS
from gatewayd.accounts.records import UserChange
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts


@pytest.fixture
def accounts() -> Accounts:
    return Accounts()


async def refusal(accounts: Accounts, token: str) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await accounts.sign_in_links.use(token)
    return caught.value


async def test_a_link_works_once_also_at_once(accounts: Accounts) -> None:
    user = await accounts.add_user()
    _, token = await accounts.sign_in_links.create(user, "root")
    assert token not in repr(accounts.memory.tables.links)
    used = await asyncio.gather(
        *(accounts.sign_in_links.use(token) for _ in range(8)), return_exceptions=True
    )
    assert [each for each in used if not isinstance(each, GatewayError)] == [user]
    assert (await refusal(accounts, token)).code == "invalid_link"


async def test_a_new_link_replaces_the_earlier_one(accounts: Accounts) -> None:
    user = await accounts.add_user()
    _, old = await accounts.sign_in_links.create(user, "root")
    _, new = await accounts.sign_in_links.create(user, "root")
    assert (await refusal(accounts, old)).code == "invalid_link"
    assert await accounts.sign_in_links.use(new) == user


async def test_a_link_expires(accounts: Accounts) -> None:
    _, token = await accounts.sign_in_links.create(await accounts.add_user(), "root")
    accounts.time += LIFETIME_SECONDS
    assert (await refusal(accounts, token)).code == "invalid_link"


async def test_a_deactivated_or_removed_account_has_none(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user(), await accounts.add_user("bob")
    tokens = [(await accounts.sign_in_links.create(user, "root"))[1] for user in (ann, bob)]
    ann = await accounts.users.change(ann.id, UserChange(active=False), None)
    await accounts.users.remove(bob.id, None)
    assert [(await refusal(accounts, token)).code for token in tokens] == ["deactivated", "invalid_link"]
    with pytest.raises(GatewayError) as caught:
        await accounts.sign_in_links.create(ann, "root")
    assert caught.value.kind is ErrorKind.FORBIDDEN


@pytest.mark.parametrize("seconds", [0, -1, MAX_LIFETIME_SECONDS + 1])
async def test_a_bad_lifetime_is_refused(accounts: Accounts, seconds: int) -> None:
    with pytest.raises(GatewayError) as caught:
        await accounts.sign_in_links.create(await accounts.add_user(), "root", seconds)
    assert caught.value.param == "expires_in"
