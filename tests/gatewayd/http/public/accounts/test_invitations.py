"""Tests for gatewayd.http.public.accounts.invitations."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.accounts.records import NewGroup
from gatewayd.http.public.accounts.invitations import InvitationRoutes
from gatewayd.http.public.accounts.session_replies import CookieOptions, SessionReplies
from tests.fakes.accounts.services import Accounts, Site, check_access, serving_accounts

AUTHS = "/api/v1/auths"
BASE = f"{AUTHS}/invitations"


def nouns(accounts: Accounts) -> InvitationRoutes:
    replies = SessionReplies(accounts.sessions, accounts.rules, accounts.runtime, CookieOptions())
    return InvitationRoutes(
        accounts.invitations, accounts.sign_in_links, replies, lambda: "https://ai.example.org/"
    )


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    accounts = Accounts()
    async with serving_accounts(accounts, nouns(accounts).routes()) as made:
        yield made


async def invited(site: Site, **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = await site.post_ok(BASE, site.admin, body)
    return made


async def test_access(site: Site) -> None:
    assert await check_access(site, nouns(site.accounts).routes()) == 3


async def test_an_invitation_is_shown_once_and_accepted_once(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    group, _ = await site.accounts.groups.ensure(NewGroup("research"))
    with caplog.at_level(logging.DEBUG):
        made = await invited(site, email="ada@example.org", group_ids=[group.id], expires_in=60)
        assert made["url"] == f"https://ai.example.org/auth#invitation={made['token']}"
        (listed,) = await site.get_ok(BASE, site.admin)
        assert listed == {name: value for name, value in made.items() if name not in {"token", "url"}}
        assert (listed["created_by"], listed["expires_at"] - listed["created_at"]) == (site.admin.id, 60)
        token = {"token": made["token"]}
        for _ in range(2):
            shown = await site.post_ok(f"{BASE}/show", None, token)
            assert shown == {"email": "ada@example.org", "expires_at": made["expires_at"]}
        form = {**token, "name": "Ada", "password": "a long password"}
        session = await site.post_ok(f"{BASE}/accept", None, form)
        refused = [
            await site.call("POST", f"{BASE}/{verb}", None, body)
            for verb, body in (("accept", form), ("show", token), ("show", {"token": "x"}))
        ]
    assert {(status, answer["error"]["code"]) for status, answer in refused} == {(400, "invalid_link")}
    assert (session["email"], session["role"]) == ("ada@example.org", "user")
    (own,) = await site.accounts.sessions.list(session["id"])
    assert own.origin.method == "invitation"
    assert "invitation accepted" in caplog.text
    assert "invitation refused" in caplog.text
    assert made["token"] not in caplog.text + repr([record.__dict__ for record in caplog.records])
    assert await site.get_ok(BASE, site.admin) == []


async def test_a_get_uses_nothing_up(site: Site) -> None:
    made = await invited(site, email="ada@example.org")
    for path in (f"{BASE}/accept", f"{AUTHS}/link"):
        assert (await site.call("GET", f"{path}?token={made['token']}"))[0] == 405
    assert len(await site.get_ok(BASE, site.admin)) == 1


async def test_a_revoked_one_is_gone(site: Site) -> None:
    made = await invited(site, email="ada@example.org")
    assert await site.call("DELETE", f"{BASE}/{made['id']}", site.admin) == (200, True)
    assert (await site.call("DELETE", f"{BASE}/{made['id']}", site.admin))[0] == 404
    form = {"token": made["token"], "name": "Ada", "password": "a long password"}
    assert (await site.call("POST", f"{BASE}/accept", None, form))[0] == 400


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"email": "user@example.org"}, 409),
        ({"email": "x"}, 400),
        ({"role": "root"}, 422),
        ({"group_ids": ["gone"]}, 404),
        ({"group_ids": "gone"}, 422),
        ({"expires_in": 10**30}, 400),
    ],
)
async def test_bad_invitations(site: Site, body: dict[str, Any], status: int) -> None:
    assert (await site.call("POST", BASE, site.admin, body))[0] == status


async def test_a_sign_in_link_signs_in_once(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    _, token = await site.accounts.sign_in_links.create(site.user, "root")
    with caplog.at_level(logging.DEBUG):
        async with site.client.post(f"{AUTHS}/link", json={"token": token}) as reply:
            body = await reply.json()
            assert (reply.status, reply.cookies["token"].value) == (200, body["token"])
            assert reply.headers["Cache-Control"] == "no-store"
        status, answer = await site.call("POST", f"{AUTHS}/link", None, {"token": token})
    assert (body["id"], status, answer["error"]["code"]) == (site.user.id, 400, "invalid_link")
    assert token not in caplog.text + repr([record.__dict__ for record in caplog.records])
    (own,) = await site.accounts.sessions.list(site.user.id)
    assert own.origin.method == "link"
    made = await invited(site, email="ada@example.org")
    assert (await site.call("POST", f"{AUTHS}/link", None, {"token": made["token"]}))[0] == 400
