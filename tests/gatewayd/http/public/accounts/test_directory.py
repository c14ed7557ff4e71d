"""Tests for gatewayd.http.public.accounts.directory."""

import logging
from collections.abc import AsyncIterator

import pytest

from gatewayd.accounts.directory.records import DirectoryEntry
from gatewayd.accounts.directory.sign_in import DirectorySignIn
from gatewayd.accounts.identity.records import IdentityRules
from gatewayd.http.public.accounts.directory import PATH, DirectoryRoutes
from gatewayd.http.public.accounts.session_replies import CookieOptions, SessionReplies
from tests.fakes.accounts.services import Accounts, Site, serving_accounts


class FakeDirectory:
    """Knows one person."""

    async def authenticate(self, name: str, password: str) -> DirectoryEntry | None:
        found = DirectoryEntry("uuid-1", "cn=ada", "Ada", "ada@example.org")
        return found if (name, password) == ("ada", "own secret") else None


def nouns(accounts: Accounts, *, has_directory: bool = True) -> DirectoryRoutes:
    replies = SessionReplies(accounts.sessions, accounts.rules, accounts.runtime, CookieOptions())
    rules = IdentityRules(sign_up=True, trust_email=True)
    sign_in = DirectorySignIn(FakeDirectory(), accounts.external.resolve, accounts.sign_in_guard, rules)
    return DirectoryRoutes(sign_in if has_directory else None, replies)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    accounts = Accounts()
    await accounts.runtime.set({"DEFAULT_USER_ROLE": "user"}, by="test")
    async with serving_accounts(accounts, nouns(accounts).routes()) as made:
        yield made


async def test_a_session_with_both_cookies(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    form = {"user": "ada", "password": "own secret"}
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        async with site.client.post(PATH, json=form) as reply:
            body = await reply.json()
            assert (reply.status, body["email"]) == (200, "ada@example.org")
            assert reply.cookies["token"].value == body["token"]
            assert reply.cookies["gatewayd_device"]["path"] == PATH
        status, refused = await site.call("POST", PATH, None, {"user": "ada", "password": "wrong"})
    assert (status, refused["error"]["code"]) == (400, "invalid_credentials")
    (session,) = await site.accounts.sessions.list(body["id"])
    assert (session.origin.method, session.origin.provider) == ("ldap", "ldap")
    lines = [record.__dict__ for record in caplog.records]
    assert [(line["account"], line["method"]) for line in lines] == [
        ("ada@example.org", "ldap"),
        ("ada", "ldap"),
    ]
    assert "secret" not in repr(lines)


@pytest.mark.parametrize("body", [{}, {"user": 1, "password": "x"}, {"user": "ada"}, {"password": []}])
async def test_bad_bodies(site: Site, body: dict[str, object]) -> None:
    assert (await site.call("POST", PATH, None, body))[0] == 422


async def test_without_a_directory() -> None:
    accounts = Accounts()
    async with serving_accounts(accounts, nouns(accounts, has_directory=False).routes()) as site:
        status, body = await site.call("POST", PATH, None, {"user": "ada", "password": "own secret"})
    assert status == 403
    assert "ENABLE_LDAP" in body["detail"]
