"""Tests for gatewayd.http.public.accounts.auths."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.accounts.password_rules import PasswordRules
from gatewayd.http.access_revocation import AccessRevocation
from gatewayd.http.public.accounts.auths import AuthRoutes
from gatewayd.http.public.accounts.session_replies import CookieOptions, SessionReplies
from tests.fakes.accounts.services import Accounts, Site, check_access, serving_accounts
from tests.fakes.http.public_app import bearer, serving

SESSION = {
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
BASE = "/api/v1/auths"


async def nowhere(session_id: str, site: str) -> str:
    return ""


def nouns(accounts: Accounts) -> AuthRoutes:
    replies = SessionReplies(accounts.sessions, accounts.rules, accounts.runtime, CookieOptions())
    return AuthRoutes(accounts.users, accounts.sign_in, accounts.sign_up, replies, nowhere)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    accounts = Accounts()
    async with serving_accounts(accounts, nouns(accounts).routes()) as made:
        yield made


async def test_access(site: Site) -> None:
    assert await check_access(site, nouns(site.accounts).routes()) == 5


@pytest.mark.parametrize("path", [BASE, f"{BASE}/"])
async def test_the_session_of_each_account(site: Site, path: str) -> None:
    for who in (site.admin, site.user, site.pending):
        body = await site.get_ok(path, who)
        assert set(body) == SESSION | {
            "bio",
            "gender",
            "date_of_birth",
            "status_emoji",
            "status_message",
            "status_expires_at",
        }
        assert (body["id"], body["role"]) == (who.id, who.role.value)
        assert await site.get_ok(path, body["token"])


async def test_sign_in_opens_a_session_and_sets_a_cookie(site: Site) -> None:
    form = {"email": " USER@example.org", "password": "secret", "more": 1}
    async with site.client.post(f"{BASE}/signin", json=form) as reply:
        body = await reply.json()
        cookie = reply.cookies["token"]
    assert (reply.status, set(body), body["id"]) == (200, SESSION, site.user.id)
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "lax", "2419200")
    # The client keeps the cookie, which is a credential by itself.
    assert (await site.call("GET", f"{BASE}/"))[0] == 200


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"email": "user@example.org", "password": "wrong"}, 400),
        ({"email": "nobody@example.org", "password": "secret"}, 400),
        ({"email": "x", "password": ""}, 400),
        ({"email": "user@example.org"}, 422),
        ({"email": 5, "password": "secret"}, 422),
        ([], 422),
    ],
)
async def test_bad_sign_ins(site: Site, form: Any, status: int) -> None:
    got, body = await site.call("POST", f"{BASE}/signin", None, form)
    assert got == status
    assert "detail" in body
    assert "secret" not in str(body)


async def test_too_many_sign_ins_are_told_when_to_come_back(site: Site) -> None:
    form = {"email": "user@example.org", "password": "wrong"}
    for _ in range(10):
        assert (await site.call("POST", f"{BASE}/signin", None, form))[0] == 400
    async with site.client.post(f"{BASE}/signin", json=form) as reply:
        assert (reply.status, reply.headers["Retry-After"]) == (429, "900")


async def test_sixteen_first_sign_ups_over_http() -> None:
    accounts = Accounts()
    async with serving(nouns(accounts).routes(), authenticator=accounts.authenticator) as client:

        async def sign_up(number: int) -> tuple[int, Any]:
            form = {"name": "U", "email": f"u{number}@example.org", "password": "secret"}
            async with client.post(f"{BASE}/signup", json=form) as reply:
                return reply.status, await reply.json()

        answers = await asyncio.gather(*(sign_up(number) for number in range(16)))
        roles = [body["role"] for status, body in answers if status == 200]
        assert roles.count("admin") == 1
        assert {status for status, _ in answers} <= {200, 403}
        assert await accounts.users_store.count_active_admins() == 1
        assert (await sign_up(17))[0] == 403


async def test_sign_up_answers_a_session_with_the_default_role(site: Site) -> None:
    form = {"name": "New", "email": "new@example.org", "password": "x"}
    body = await site.post_ok(f"{BASE}/signup", None, form)
    assert (set(body), body["role"]) == (SESSION, "pending")
    assert (await site.call("POST", f"{BASE}/signup", None, form))[0] == 409
    assert (await site.call("POST", f"{BASE}/signup", None, {**form, "email": "bad"}))[0] == 400
    assert (await site.call("POST", f"{BASE}/signup", None, {**form, "email": "a@b", "password": ""}))[
        0
    ] == 400


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_sign_out_ends_the_session(site: Site, method: str) -> None:
    token = await site.accounts.session(site.user)
    async with site.client.request(method, f"{BASE}/signout", headers=bearer(token)) as reply:
        assert (reply.status, await reply.json()) == (200, {"status": True})
        assert reply.cookies["token"]["max-age"] == "0"
    assert (await site.call("GET", f"{BASE}/", token))[0] == 401
    assert await site.get_ok(f"{BASE}/", site.user)
    assert await site.call(method, f"{BASE}/signout", token) == (200, {"status": True})
    assert await site.call(method, f"{BASE}/signout") == (200, {"status": True})


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_sign_out_does_not_cancel_itself(method: str) -> None:
    accounts, shut_out = Accounts(), AccessRevocation()
    accounts.changes.subscribe(shut_out.on_change)
    rows = nouns(accounts).routes()
    user = await accounts.add_user("user")
    async with serving(rows, authenticator=accounts.authenticator, shut_out=shut_out) as client:
        # The second one needs the connection of the first.
        for token in [await accounts.session(user), await accounts.session(user)]:
            async with client.request(method, f"{BASE}/signout", headers=bearer(token)) as reply:
                assert (reply.status, await reply.json()) == (200, {"status": True})


async def test_sign_out_with_a_key_leaves_the_key(site: Site) -> None:
    await site.accounts.grant_keys(site.user)
    _, value = await site.accounts.keys.issue(site.user)
    assert await site.post_ok(f"{BASE}/signout", value) == {"status": True}
    assert (await site.get_ok(f"{BASE}/", value))["token"] == value


async def test_an_administrator_adds_accounts(site: Site) -> None:
    form = {"name": "New", "email": "New@example.org", "password": "x", "role": "user"}
    body = await site.post_ok(f"{BASE}/add", site.admin, form)
    assert set(body) == {"token", "token_type", "id", "email", "name", "role", "profile_image_url"}
    assert (body["email"], body["role"]) == ("new@example.org", "user")
    assert (await site.get_ok(f"{BASE}/", body["token"]))["id"] == body["id"]
    assert (await site.call("POST", f"{BASE}/add", site.admin, form))[0] == 409
    assert (await site.call("POST", f"{BASE}/add", site.admin, {**form, "role": "root"}))[0] == 422
    pending = await site.post_ok(f"{BASE}/add", site.admin, {"name": "P", "email": "p@x", "password": "x"})
    assert pending["role"] == "pending"


async def test_the_profile(site: Site) -> None:
    form = {"name": "Renamed", "profile_image_url": "/x.png", "bio": "b", "gender": None}
    body = await site.post_ok(f"{BASE}/update/profile", site.user, form)
    assert set(body) == {"id", "name", "role", "email", "profile_image_url"}
    assert (body["name"], body["profile_image_url"]) == ("Renamed", "/x.png")
    assert (await site.get_ok(f"{BASE}/", site.user))["bio"] == "b"
    await site.post_ok(f"{BASE}/update/profile", site.user, {"bio": None})
    shown = await site.get_ok(f"{BASE}/", site.user)
    assert (shown["bio"], shown["name"]) == (None, "Renamed")


async def test_the_password(site: Site) -> None:
    token = await site.accounts.session(site.user)
    path = f"{BASE}/update/password"
    assert (await site.call("POST", path, token, {"password": "no", "new_password": "new"}))[0] == 400
    assert await site.post_ok(path, token, {"password": "secret", "new_password": "new"}) is True
    assert (await site.call("GET", f"{BASE}/", token))[0] == 401
    await site.post_ok(f"{BASE}/signin", None, {"email": site.user.email, "password": "new"})


async def test_the_time_zone(site: Site) -> None:
    body = await site.post_ok(f"{BASE}/update/timezone", site.pending, {"timezone": "Europe/Oslo"})
    assert body == {"status": True}
    assert (await site.accounts.users.get(site.pending.id)).profile == {"timezone": "Europe/Oslo"}


async def test_a_key_changes_no_password(site: Site) -> None:
    await site.accounts.grant_keys(site.user)
    _, value = await site.accounts.keys.issue(site.user)
    form = {"password": "secret", "new_password": "another"}
    status, body = await site.call("POST", f"{BASE}/update/password", value, form)
    assert (status, "sign in" in body["detail"]) == (403, True)


async def test_the_present_password_is_not_guessed_for_long(site: Site) -> None:
    path, form = f"{BASE}/update/password", {"password": "no", "new_password": "new"}
    for _ in range(10):
        assert (await site.call("POST", path, site.user, form))[0] == 400
    assert (await site.call("POST", path, site.user, {**form, "password": "secret"}))[0] == 429


async def test_a_weak_new_password_is_named(site: Site) -> None:
    site.accounts.passwords.rules = PasswordRules()
    form = {"password": "secret", "new_password": "short"}
    status, body = await site.call("POST", f"{BASE}/update/password", site.user, form)
    assert (status, body["error"]["param"], body["error"]["code"]) == (400, "new_password", "weak_password")


async def test_a_browser_that_signed_in_is_not_held_up_by_its_neighbours(site: Site) -> None:
    right, wrong = {"email": "user@example.org", "password": "secret"}, {"password": "wrong"}
    async with site.client.post(f"{BASE}/signin", json=right) as reply:
        cookie = reply.cookies["gatewayd_device"]
        assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == (f"{BASE}/signin", True, "Strict")
    site.client.session.cookie_jar.clear()
    for _ in range(10):
        assert (await site.call("POST", f"{BASE}/signin", None, {**right, **wrong}))[0] == 400
    assert (await site.call("POST", f"{BASE}/signin", None, right))[0] == 429
    known = {"Cookie": f"gatewayd_device={cookie.value}"}
    async with site.client.post(f"{BASE}/signin", json=right, headers=known) as reply:
        assert reply.status == 200


async def test_the_token_of_a_new_account_ends_with_the_key_that_made_it(site: Site) -> None:
    await site.accounts.grant_keys(site.admin)
    ends = site.accounts.time + 60
    _, value = await site.accounts.keys.issue(site.admin, expires_at=ends)
    form = {"name": "New", "email": "new@example.org", "password": "x"}
    made = await site.post_ok(f"{BASE}/add", value, form)
    assert site.accounts.sessions.read(made["token"]).expires_at == ends


@pytest.mark.parametrize("origin", ["https", "http"])
async def test_a_session_that_began_by_https_stays_on_it(site: Site, origin: str) -> None:
    form = {"email": "user@example.org", "password": "secret"}
    headers = {"Origin": f"{origin}://{site.client.host}:{site.client.port}"}
    async with site.client.post(f"{BASE}/signin", json=form, headers=headers) as reply:
        assert reply.status == 200
        for cookie in reply.cookies.values():
            assert bool(cookie["secure"]) is (origin == "https")


async def test_a_cookie_that_is_kept_is_not_replaced(site: Site) -> None:
    token = await site.accounts.session(site.user)
    for headers, cookies in (({"Cookie": f"token={token}"}, 0), (bearer(token), 1)):
        async with site.client.get(f"{BASE}/", headers=headers) as reply:
            assert (reply.status, len(reply.cookies)) == (200, cookies)


async def test_a_foreign_page_signs_nobody_out(site: Site) -> None:
    token = await site.accounts.session(site.user)
    headers = {"Cookie": f"token={token}", "Sec-Fetch-Site": "cross-site"}
    async with site.client.get(f"{BASE}/signout", headers=headers) as reply:
        assert reply.status == 403
    assert await site.get_ok(f"{BASE}/", token)


async def test_a_picture_in_a_message_signs_nobody_out(site: Site) -> None:
    token = await site.accounts.session(site.user)
    headers = {"Cookie": f"token={token}", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "image"}
    async with site.client.get(f"{BASE}/signout", headers=headers) as reply:
        assert reply.status == 403
        assert (await reply.json())["error"]["code"] == "foreign_origin"
    assert await site.get_ok(f"{BASE}/", token)
