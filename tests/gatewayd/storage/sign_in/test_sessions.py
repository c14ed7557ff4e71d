"""Tests for gatewayd.storage.sign_in.sessions."""

from dataclasses import replace

import pytest

from gatewayd.accounts.records import SessionOrigin, SignInMethod
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.records import session, user
from tests.gatewayd.storage.conftest import Stores

AT_PROVIDER = SessionOrigin(SignInMethod.OAUTH, "okta", "sid-1", "Firefox — 🦊", "2001:db8::1")


@pytest.fixture
async def owned(stores: Stores) -> Stores:
    """Return the stores with two users in them."""
    for user_id in ("u1", "u2"):
        await stores.users.add(user(user_id), None)
    return stores


async def test_a_session_comes_back_as_it_was_until_it_is_removed(owned: Stores) -> None:
    full = session("j1", "u1", origin=AT_PROVIDER, confirmed_at=7, last_seen_at=8)
    await owned.sessions.add(full)
    assert await owned.sessions.find("j1") == full
    assert await owned.sessions.list("u1", after=99) == [full]
    assert await owned.sessions.list("u1", after=100) == []
    assert await owned.sessions.list("u2", after=0) == []
    assert await owned.sessions.remove(["j1", "gone"]) == 1
    assert await owned.sessions.find("j1") is None


async def test_a_session_needs_its_user_and_goes_with_it(owned: Stores) -> None:
    with pytest.raises(GatewayError) as caught:
        await owned.sessions.add(session("j1", "gone"))
    assert caught.value.kind is ErrorKind.CONFLICT
    await owned.sessions.add(session("j2", "u1"))
    await owned.users.remove("u1")
    assert await owned.sessions.find("j2") is None


async def test_a_new_token_version_hides_older_sessions(owned: Stores) -> None:
    await owned.sessions.add(session("j1", "u1", origin=AT_PROVIDER))
    await owned.users.change(replace(user("u1"), token_version=1))
    new = session("j2", "u1", token_version=1)
    await owned.sessions.add(new)
    assert await owned.sessions.list("u1", after=0) == [new]
    assert await owned.sessions.find("j1") is None
    assert await owned.sessions.list_of_provider("okta") == []


async def test_sessions_of_a_provider(owned: Stores) -> None:
    first = session("j1", "u1", origin=AT_PROVIDER)
    second = session("j2", "u1", origin=replace(AT_PROVIDER, provider_session="sid-2"))
    third = session("j3", "u2", origin=AT_PROVIDER)
    for each in (first, second, third, session("j4", "u1")):
        await owned.sessions.add(each)
    assert await owned.sessions.list_of_provider("okta", user_id="u1") == [first, second]
    assert await owned.sessions.list_of_provider("okta", provider_session="sid-1") == [first, third]
    assert await owned.sessions.list_of_provider("other", provider_session="sid-1") == []


async def test_touch_and_confirm(owned: Stores) -> None:
    for session_id, seen in (("j1", 1), ("j2", 10)):
        await owned.sessions.add(session(session_id, "u1", last_seen_at=seen))
    await owned.sessions.touch({"j2": 9, "j1": 5, "gone": 1})
    assert await owned.sessions.confirm("j1", 6)
    assert not await owned.sessions.confirm("gone", 6)
    found = {each.id: each for each in await owned.sessions.list("u1", after=0)}
    assert (found["j1"].last_seen_at, found["j1"].confirmed_at, found["j2"].last_seen_at) == (5, 6, 10)


async def test_only_expired_sessions_are_pruned_and_many_are_removed(owned: Stores) -> None:
    for number in range(600):
        await owned.sessions.add(session(f"j{number}", "u1", expires_at=9 + (number > 0)))
    assert await owned.sessions.prune(10) == 1
    assert await owned.sessions.remove([f"j{number}" for number in range(600)]) == 599


async def test_what_cannot_be_stored_is_not_found(owned: Stores) -> None:
    assert await owned.sessions.find("\x00") is None
    assert await owned.sessions.list("\ud800", after=0) == []
    assert await owned.sessions.list_of_provider("p" * 129, user_id="u1") == []
    assert await owned.sessions.list_of_provider("okta", provider_session="\x00") == []
