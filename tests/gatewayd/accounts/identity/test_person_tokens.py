"""Tokens of providers for plugins: whose, for how long, and refreshed when."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gatewayd.accounts.identity.person_tokens import RETRY_SECONDS
from gatewayd.accounts.identity.token_answers import MAX_TOKEN_SECONDS, read_tokens
from gatewayd.accounts.records import Actor, CredentialKind
from gatewayd.errors import GatewayError
from tests.fakes.accounts.oauth_site import OAuthSite, serving_oauth
from tests.fakes.accounts.services import NOON


@pytest.fixture
async def site() -> AsyncIterator[OAuthSite]:
    async with serving_oauth() as made:
        yield made


async def person(site: OAuthSite, **tokens: Any) -> Actor:
    """Return who has just signed in at the provider, whose first access token is `at-1`."""
    site.evil.tokens = tokens
    browser = site.browser()
    assert await site.sign_in(browser) == "/"
    return await site.accounts.authenticator.authenticate(browser.cookies["token"], "GET", "/")


async def test_a_person_has_the_token_of_the_provider_of_their_session(site: OAuthSite) -> None:
    actor, tokens = await person(site, expires_in=300, refresh_token="rt-1"), site.accounts.person_tokens
    given = await tokens.of(actor)
    assert given is not None
    assert given.pop("id_token").startswith("ey")
    assert given == {"access_token": "at-1", "token_type": "Bearer", "expires_at": site.accounts.time + 300}
    assert "at-1" not in repr(await site.accounts.identities_store.find_tokens(actor.user_id, "evil"))
    for other in (
        replace(actor, kind=CredentialKind.KEY, jti=None),
        replace(actor, jti="an ended session"),
        replace(actor, user=site.admin),
    ):
        assert await tokens.of(other) is None
    assert site.evil.refreshes == []


@pytest.mark.parametrize("scopes", [{}, {"scope": "openid email profile"}])
async def test_a_token_that_is_about_to_expire_is_refreshed_once(
    site: OAuthSite, scopes: dict[str, str]
) -> None:
    site.change(refreshes_scopes=bool(scopes))
    actor, tokens = await person(site, expires_in=300, refresh_token="rt-1"), site.accounts.person_tokens
    site.accounts.time += 241
    del site.evil.tokens["expires_in"]
    many = await asyncio.gather(*(tokens.of(actor) for _ in range(9)))
    assert {given["access_token"] for given in many if given} == {"at-2"}
    assert None not in many
    assert many[0]["expires_at"] == site.accounts.time + 300
    assert many[0]["id_token"].startswith("ey")
    assert site.evil.refreshes == [{"grant_type": "refresh_token", "refresh_token": "rt-1", **scopes}]
    site.accounts.time += 300
    again = await tokens.of(actor)
    assert again is not None
    assert again["access_token"] == "at-3"
    assert [form["refresh_token"] for form in site.evil.refreshes] == ["rt-1", "rt-2"]


async def test_a_refresh_that_fails_leaves_what_is_valid_and_is_not_repeated_at_once(
    site: OAuthSite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    actor, tokens = await person(site, expires_in=300, refresh_token="rt-1"), site.accounts.person_tokens
    site.evil.tokens["refresh_token"] = "another"
    site.accounts.time += 250
    for _ in range(3):
        given = await tokens.of(actor)
        assert given is not None
        assert given["access_token"] == "at-1"
    assert len(site.evil.refreshes) == 1
    site.accounts.time += 50 + RETRY_SECONDS
    assert await tokens.of(actor) is None
    assert len(site.evil.refreshes) == 2
    assert await site.accounts.sessions.list(actor.user_id), "their session here stays"
    told = " ".join(str(record.__dict__) for record in caplog.records)
    assert "provider token not refreshed" in told
    assert not any(secret in told for secret in ("rt-1", "at-1"))
    site.accounts.login.configure([])
    site.accounts.time += RETRY_SECONDS
    assert await tokens.of(actor) is None


async def test_a_token_without_a_refresh_token_is_used_until_it_expires(site: OAuthSite) -> None:
    actor, tokens = await person(site, expires_in="300"), site.accounts.person_tokens
    site.accounts.time += 299
    assert await tokens.of(actor) is not None
    site.accounts.time += 1
    assert await tokens.of(actor) is None
    assert site.evil.refreshes == []


@pytest.mark.parametrize(
    ("life", "expires_at"),
    [
        *((life, NOON + 300) for life in (300, 300.9, "300")),
        *((life, 0) for life in (None, True, 0, -1, "", "x", "9" * 5000, MAX_TOKEN_SECONDS + 1, [], 1e400)),
    ],
)
def test_the_life_of_a_token(life: Any, expires_at: int) -> None:
    assert read_tokens({"access_token": "at", "expires_in": life}, NOON).expires_at == expires_at


@pytest.mark.parametrize("token", [None, "", 1, "x" * 70_000, "a\nb", "é"])
def test_an_answer_without_a_usable_token_is_refused(token: Any) -> None:
    with pytest.raises(GatewayError, match="access token"):
        read_tokens({"access_token": token}, NOON)
