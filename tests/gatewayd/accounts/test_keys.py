import asyncio
import hashlib
import re

import pytest

from gatewayd.accounts import keys as module
from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.records import Role
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import Accounts


async def test_a_key_is_shown_once_and_kept_as_a_digest(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    await accounts.grant_keys(ann)
    key, value = await accounts.keys.issue(ann, " backup ")
    assert re.fullmatch(r"sk-[0-9a-f]{64}", value)
    assert key.digest == hashlib.sha256(value.encode()).hexdigest()
    assert (key.name, key.prefix, key.created_at, key.last_used_at) == (
        "backup",
        value[:11],
        accounts.time,
        None,
    )
    assert value not in repr(accounts.memory.tables)
    assert list(await accounts.keys.list(ann.id)) == [key]


async def test_both_levels_are_needed(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    with pytest.raises(GatewayError, match="API key") as caught:
        await accounts.keys.issue(ann)
    assert caught.value.kind is ErrorKind.FORBIDDEN
    assert len(await accounts.keys.why(ann)) == 2
    await accounts.runtime.set({"ENABLE_API_KEYS": True}, by="test")
    with pytest.raises(GatewayError, match=r"features\.api_keys"):
        await accounts.keys.issue(ann)
    await accounts.permissions.set_defaults({"features": {"api_keys": True}}, by="test")
    await accounts.keys.issue(ann)
    assert await accounts.keys.why(ann) == []


async def test_administrators_need_a_group(accounts: Accounts) -> None:
    admin = await accounts.add_user(role=Role.ADMIN)
    await accounts.permissions.set_defaults({"features": {"api_keys": True}}, by="test")
    await accounts.runtime.set({"ENABLE_API_KEYS": True}, by="test")
    with pytest.raises(GatewayError):
        await accounts.keys.issue(admin)
    await accounts.grant_keys(admin)
    await accounts.keys.issue(admin)


async def test_names_are_unique_for_a_user_and_made_when_missing(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user("ann"), await accounts.add_user("bob")
    await accounts.grant_keys(ann, bob)
    await accounts.keys.issue(ann, "one")
    await accounts.keys.issue(bob, "one")
    with pytest.raises(GatewayError) as caught:
        await accounts.keys.issue(ann, "ONE")
    assert caught.value.kind is ErrorKind.CONFLICT
    unnamed = await asyncio.gather(*(accounts.keys.issue(ann) for _ in range(8)))
    assert len({key.name for key, _ in unnamed}) == 8


@pytest.mark.parametrize("name", ["", " ", "x" * 129, "a\nb"])
async def test_bad_names(accounts: Accounts, name: str) -> None:
    ann = await accounts.add_user()
    await accounts.grant_keys(ann)
    with pytest.raises(GatewayError) as caught:
        await accounts.keys.issue(ann, name)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "name")


async def test_an_expiry_lies_ahead(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    await accounts.grant_keys(ann)
    key, _ = await accounts.keys.issue(ann, "soon", accounts.time + 1)
    assert key.expires_at == accounts.time + 1
    for bad in (accounts.time, -1, 10**15):
        with pytest.raises(GatewayError) as caught:
            await accounts.keys.issue(ann, "late", bad)
        assert caught.value.param == "expires_at"


async def test_the_number_of_keys_is_bounded(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEYS_PER_USER", 1)
    ann = await accounts.add_user()
    await accounts.grant_keys(ann)
    await accounts.keys.issue(ann)
    with pytest.raises(GatewayError) as caught:
        await accounts.keys.issue(ann)
    assert caught.value.kind is ErrorKind.CONFLICT


async def test_revoking(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user("ann"), await accounts.add_user("bob")
    await accounts.grant_keys(ann, bob)
    key, _ = await accounts.keys.issue(ann, "one")
    with pytest.raises(GatewayError) as caught:
        await accounts.keys.revoke(key.id, bob.id)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    accounts.heard.clear()
    await accounts.keys.revoke(key.id, ann.id)
    assert accounts.heard == [AccountChange(ann.id, asks_again=True)]
    with pytest.raises(GatewayError):
        await accounts.keys.revoke(key.id)
    await accounts.keys.issue(ann, "two")
    await accounts.keys.issue(ann, "three")
    await accounts.keys.issue(bob, "four")
    assert await accounts.keys.revoke_all(ann.id) == 2
    assert [left.name for left in await accounts.keys.list()] == ["four"]


async def test_no_key_makes_one_that_outlives_it(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    await accounts.grant_keys(ann)
    ends = accounts.time + 60
    assert (await accounts.keys.issue(ann, until=ends))[0].expires_at == ends
    assert (await accounts.keys.issue(ann, expires_at=ends - 1, until=ends))[0].expires_at == ends - 1
    with pytest.raises(GatewayError, match="expiry of your own key") as caught:
        await accounts.keys.issue(ann, expires_at=ends + 1, until=ends)
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, "expires_at")
    assert (await accounts.keys.issue(ann))[0].expires_at is None
