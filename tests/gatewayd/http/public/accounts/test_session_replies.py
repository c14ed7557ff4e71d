"""Tests for gatewayd.http.public.accounts.session_replies."""

import json
from dataclasses import replace

import pytest
from aiohttp.test_utils import make_mocked_request

from gatewayd.accounts.records import CredentialKind
from gatewayd.http.public.accounts.session_replies import CookieOptions, SessionReplies
from tests.fakes.accounts.services import BY_PASSWORD, Accounts

ASKED = make_mocked_request("POST", "/")


def replies(accounts: Accounts, cookie: CookieOptions | None = None) -> SessionReplies:
    return SessionReplies(accounts.sessions, accounts.rules, accounts.runtime, cookie or CookieOptions())


async def test_a_new_session_and_its_cookie() -> None:
    accounts = Accounts()
    user = await accounts.add_user()
    await accounts.runtime.set({"JWT_EXPIRES_IN": "1h"}, by="test")
    reply = await replies(accounts).open(ASKED, user, BY_PASSWORD)
    body = json.loads(reply.body)
    assert set(body) == {
        "token",
        "token_type",
        "expires_at",
        "id",
        "email",
        "name",
        "role",
        "profile_image_url",
        "permissions",
    }
    assert (body["token_type"], body["expires_at"], body["role"]) == ("Bearer", accounts.time + 3600, "user")
    assert body["permissions"]["features"]["api_keys"] is False
    assert accounts.sessions.read(body["token"]).user_id == user.id
    cookie = reply.cookies["token"]
    assert (cookie.value, cookie["httponly"], cookie["samesite"]) == (body["token"], True, "lax")
    assert (str(cookie["max-age"]), cookie["path"], cookie["secure"]) == ("3600", "/", False)
    assert reply.headers["Cache-Control"] == "no-store"


async def test_a_secure_site_sets_a_secure_cookie() -> None:
    accounts = Accounts()
    options = CookieOptions("session", "strict", secure=True)
    reply = await replies(accounts, options).open(ASKED, await accounts.add_user(), BY_PASSWORD)
    cookie = reply.cookies["session"]
    assert (cookie["secure"], cookie["samesite"]) == (True, "strict")


async def test_a_key_is_echoed_without_a_cookie() -> None:
    accounts = Accounts()
    user = await accounts.add_user()
    await accounts.grant_keys(user)
    _, value = await accounts.keys.issue(user)
    actor = await accounts.authenticator.authenticate(value, "GET", "/x")
    assert actor.kind is CredentialKind.KEY
    reply = replies(accounts).show(ASKED, actor, value, {"bio": None})
    body = json.loads(reply.body)
    assert (body["token"], body["expires_at"], body["bio"]) == (value, None, None)
    assert not reply.cookies


async def test_closing_without_a_session_only_deletes_the_cookie() -> None:
    reply = await replies(Accounts()).close(ASKED, None, "", {"redirect_url": "/x"})
    assert json.loads(reply.body) == {"status": True, "redirect_url": "/x"}
    assert str(reply.cookies["token"]["max-age"]) == "0"


async def test_a_session_knows_its_browser() -> None:
    accounts = Accounts()
    user = await accounts.add_user()
    asked = make_mocked_request("POST", "/", headers={"User-Agent": "Lynx\x7f"})
    await replies(accounts).open(asked, user, BY_PASSWORD)
    (session,) = await accounts.sessions.list(user.id)
    assert session.origin == replace(BY_PASSWORD, user_agent="Lynx\x7f", address="")


async def test_a_redirect_has_the_cookie_and_no_body() -> None:
    accounts = Accounts()
    user = await accounts.add_user()
    reply = await replies(accounts).redirect(ASKED, user, BY_PASSWORD, "/c/1", is_secure=False)
    assert (reply.status, reply.headers["Location"], reply.body) == (302, "/c/1", None)
    assert reply.headers["Cache-Control"] == "no-store"
    assert accounts.sessions.read(reply.cookies["token"].value).user_id == user.id


@pytest.mark.parametrize("header", ["Origin", "Sec-Fetch-Site", None])
async def test_the_former_session_of_a_browser_ends(header: str | None) -> None:
    accounts = Accounts()
    user, other = await accounts.add_user(), await accounts.add_user("bob")
    token = await accounts.session(user)
    headers = {"Cookie": f"token={token}", **({header: "x"} if header else {})}
    await replies(accounts).open(make_mocked_request("POST", "/", headers=headers), other, BY_PASSWORD)
    assert await accounts.sessions.is_revoked(accounts.sessions.read(token)) is (header is not None)
    headers["Cookie"] = "token=no.such.token"
    await replies(accounts).open(make_mocked_request("POST", "/", headers=headers), other, BY_PASSWORD)
