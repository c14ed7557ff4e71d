"""Sign-in by a provider that attacks, or that an attacker uses (OWASP ASVS 5.0, V10; RFC 9700)."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from gatewayd.accounts.identity import discovery
from gatewayd.accounts.identity.attempts import MAX_ATTEMPTS_PER_BROWSER, MAX_RETURN_CHARACTERS
from gatewayd.accounts.identity.providers import ClaimNames, ProviderKind
from gatewayd.accounts.identity.records import GroupRules, ProviderTokens, RoleRules
from gatewayd.accounts.records import Role, UserChange
from gatewayd.errors import GatewayError
from tests.fakes.accounts.oauth_site import FROM_OWN_PAGE, OAuthSite, parameters, serving_oauth
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.hostile_oidc import KEYS, LOGOUT_EVENT

REFUSED = "/auth?error="


@pytest.fixture
async def site() -> AsyncIterator[OAuthSite]:
    async with serving_oauth() as made:
        yield made


async def test_a_person_signs_in_and_out(site: OAuthSite, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gatewayd.audit")
    browser = site.browser()
    reply = await browser.get("/oauth/evil/login?redirect=/c/1")
    asked = parameters(reply)
    assert (asked["code_challenge_method"], asked["response_type"]) == ("S256", "code")
    assert asked["redirect_uri"].endswith("/oauth/evil/callback")
    site.evil.tokens = {"refresh_token": "r-1"}
    site.evil.grant("c", site.evil.claims(asked["nonce"]), asked["code_challenge"])
    assert await browser.finish(state=asked["state"], code="c", iss=site.evil.issuer) == "/c/1"
    assert browser.attempts == 0
    actor = await site.accounts.authenticator.authenticate(browser.cookies["token"], "GET", "/")
    session = (await site.accounts.sessions.list(actor.user_id))[0]
    assert (session.origin.provider, session.origin.provider_session) == ("evil", "sid-1")
    kept = await site.accounts.identities_store.find_tokens(actor.user_id, "evil")
    assert kept.refresh_token == "r-1"
    address = await site.accounts.provider_logout.address(session.id, "https://ai.example.org/auth")
    assert address.startswith(f"{site.evil.issuer}/logout?client_id=gateway&")
    assert "id_token_hint=ey" in address
    lines = [record for record in caplog.records if record.name == "gatewayd.audit"]
    assert [(line.getMessage(), line.__dict__["outcome"]) for line in lines] == [("sign-in", "created")]


async def test_a_new_sign_in_replaces_the_session_of_the_browser(site: OAuthSite) -> None:
    site.allow(roles=RoleRules(is_managed=True))
    browser = site.browser()
    assert await site.sign_in(browser, roles=["user"]) == "/"
    first = browser.cookies["token"]
    # The change of the role and the end of the former session do not cancel the sign-in itself.
    assert await site.sign_in(browser, roles=["admin"]) == "/"
    assert await site.sign_in(browser, roles=["admin"]) == "/"
    with pytest.raises(GatewayError, match="it was ended"):
        await site.accounts.authenticator.authenticate(first, "GET", "/")
    assert await site.accounts.authenticator.authenticate(browser.cookies["token"], "GET", "/")


@pytest.mark.parametrize("setting", ["https://ai.example.org", ""])
async def test_the_callback_is_at_the_public_address(site: OAuthSite, setting: str) -> None:
    await site.accounts.runtime.set({"WEBUI_URL": setting}, by="test")
    browser = site.browser()
    reply = await browser.get("/oauth/evil/login")
    expected = setting or str(site.client.make_url("")).rstrip("/")
    assert parameters(reply)["redirect_uri"] == f"{expected}/oauth/evil/callback"
    (cookie,) = reply.cookies.values()
    assert (cookie.key.startswith("__Host-"), bool(cookie["secure"])) == (bool(setting), bool(setting))
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    asked = parameters(reply)
    site.evil.grant("c", site.evil.claims(asked["nonce"]), asked["code_challenge"])
    done = await browser.get(f"/oauth/evil/callback?state={asked['state']}&code=c")
    assert bool(done.cookies["token"]["secure"]) == bool(setting)


@pytest.mark.parametrize("path", ["/oauth/nobody/login", "/oauth/nobody/callback", "/oauth/%2e%2e/login"])
async def test_an_unknown_provider_is_not_found(site: OAuthSite, path: str) -> None:
    assert (await site.client.get(path, allow_redirects=False)).status == 404


async def test_a_state_works_once_in_its_browser_at_its_provider(site: OAuthSite) -> None:
    browser, other = site.browser(), site.browser()
    asked = await browser.begin()
    site.evil.requests.clear()
    for params in ({}, {"state": "x"}, {"state": asked["state"][:8] + "x" * 35}, {"error": "access_denied"}):
        assert await site.browser().finish(code="c", **params) == f"{REFUSED}state"
    assert await other.finish(state=asked["state"], code="c") == f"{REFUSED}state"
    stolen = dict(browser.cookies)
    assert await browser.finish("good", state=asked["state"], code="c") == f"{REFUSED}state"
    assert (site.evil.requests, site.good.requests) == ([], [])
    site.evil.grant("c", site.evil.claims(asked["nonce"]), asked["code_challenge"])
    two = [site.browser(), site.browser()]
    for each in two:
        each.cookies = dict(stolen)
    found = await asyncio.gather(*(each.finish(state=asked["state"], code="c") for each in two))
    assert sorted(found) == ["/", f"{REFUSED}state"]
    assert site.people() == 1


async def test_a_cookie_that_another_site_of_the_domain_has_set_is_no_attempt(site: OAuthSite) -> None:
    await site.accounts.runtime.set({"WEBUI_URL": "https://ai.example.org"}, by="test")
    attacker, victim = site.browser(), site.browser()
    asked = await attacker.begin()
    site.evil.grant("c", site.evil.claims(asked["nonce"]), asked["code_challenge"])
    victim.cookies = {name.removeprefix("__Host-"): each for name, each in attacker.cookies.items()}
    site.evil.requests.clear()
    assert await victim.finish(state=asked["state"], code="c") == f"{REFUSED}state"
    assert site.evil.requests == []
    assert await attacker.finish(state=asked["state"], code="c") == "/"


async def test_an_attempt_ends_after_ten_minutes(site: OAuthSite) -> None:
    browser = site.browser()
    asked = await browser.begin()
    site.accounts.time += 601
    assert await browser.finish(state=asked["state"], code="c") == f"{REFUSED}state"


@pytest.mark.parametrize("value", ["", "x", "ü", "sealed:1:AAAA", "x" * 4000])
async def test_a_forged_cookie_is_no_attempt(site: OAuthSite, value: str) -> None:
    browser = site.browser()
    asked = await browser.begin()
    browser.cookies = {name: quote(value, safe=":") for name in browser.cookies}
    assert await browser.finish(state=asked["state"], code="c") == f"{REFUSED}state"


async def test_a_browser_has_five_attempts_of_which_the_oldest_goes(site: OAuthSite) -> None:
    browser = site.browser()
    attempts = []
    longest = f"?redirect=/{'a' * (MAX_RETURN_CHARACTERS - 1)}"
    for _ in range(MAX_ATTEMPTS_PER_BROWSER + 1):
        attempts.append(await browser.begin(query=longest))
        site.accounts.time += 1
    assert browser.attempts == MAX_ATTEMPTS_PER_BROWSER
    assert sum(len(name) + len(value) for name, value in browser.cookies.items()) < 6000
    assert await browser.finish(state=attempts[0]["state"], code="c") == f"{REFUSED}state"
    asked = attempts[1]
    site.evil.grant("c", site.evil.claims(asked["nonce"]), asked["code_challenge"])
    assert await browser.finish(state=asked["state"], code="c") == longest.partition("=")[2]


@pytest.mark.parametrize(
    ("metadata", "params"),
    [
        ({}, {"iss": "http://another.example"}),
        ({"authorization_response_iss_parameter_supported": True}, {}),
        ({}, {"error": "access_denied", "error_description": "%3Cscript%3E%0A"}),
        ({}, {"code": ""}),
        ({}, {"code": "c" * 4097}),
        ({}, {"code": "unknown"}),
    ],
)
async def test_a_bad_answer_of_the_provider(
    site: OAuthSite, metadata: dict[str, Any], params: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gatewayd.audit")
    site.evil.metadata = metadata
    browser = site.browser()
    asked = await browser.begin()
    site.evil.grant("c", site.evil.claims(asked["nonce"]), asked["code_challenge"])
    assert await browser.finish(state=asked["state"], **{"code": "c", **params}) == f"{REFUSED}provider"
    assert site.people() == 0
    refused = caplog.records[-1].__dict__["refused"]
    assert "\n" not in refused
    assert ("token" in browser.cookies) is False


async def test_a_code_without_the_verifier_is_of_no_use(site: OAuthSite) -> None:
    browser = site.browser()
    asked = await browser.begin()
    site.evil.grant("c", site.evil.claims(asked["nonce"]), "the challenge of another browser")
    assert await browser.finish(state=asked["state"], code="c") == f"{REFUSED}provider"


@pytest.mark.parametrize(
    "grant",
    [
        {"signing": "none"},
        {"signing": "public"},
        {"signing": "other"},
        {"signing": "other", "header": {"kid": "rsa"}},
        {"signing": "other", "header": {"kid": "rsa", "jwk": KEYS["other"].as_dict(private=False)}},
        {"header": {"jku": "http://127.0.0.1/jwks"}},
        {"header": {"x5u": "http://127.0.0.1/cert"}},
        {"header": {"crit": ["exp"], "exp": 1}},
        {"header": {"alg": ["RS256"]}, "signing": "public"},
        {"header": {"kid": 5}, "token": "e30.e30.e30"},
        {"token": "a.b"},
        {"token": "a.b.c"},
        {"token": "é.b.c"},
        {"token": "A" * 70_000 + ".b.c"},
        {"token": "W10.W10.W10"},
    ],
    ids=lambda grant: str(grant)[:40],
)
async def test_an_id_token_without_a_valid_signature(site: OAuthSite, grant: dict[str, Any]) -> None:
    if grant.get("header", {}).get("alg"):
        grant = {"token": "eyJhbGciOlsiUlMyNTYiXX0.e30.e30"}
    assert await site.sign_in(grant=grant) == f"{REFUSED}provider"
    assert site.people() == 0


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"aud": ["gateway", "another"]},
        {"aud": ["gateway", "another"], "azp": "another"},
        {"azp": "another"},
        {"aud": None},
        {"aud": 5},
        {"iss": "http://another.example"},
        {"iss": None},
        {"exp": 1},
        {"exp": None},
        {"exp": "never"},
        {"exp": True},
        {"iat": 1_900_000_000},
        {"nbf": 1_900_000_000},
        {"nonce": None},
        {"nonce": "another"},
        {"nonce": ["a"]},
        {"nonce": "\ud800"},
        {"more": float("nan")},
        {"sub": None},
        {"sub": ""},
        {"sub": ["s-1"]},
        {"sub": "s" * 385},
        {"email": ["ann@example.org"]},
        {"email": "e" * 2000 + "@example.org"},
        {"email": "ann@evil.example@example.org"},
        {"name": ["Ann"]},
        {"name": "n" * 1_000_000},
    ],
    ids=lambda claims: str(claims)[:40],
)
async def test_an_id_token_with_wrong_claims(site: OAuthSite, claims: dict[str, Any]) -> None:
    assert await site.sign_in(**claims) == f"{REFUSED}provider"
    assert site.people() == 0


async def test_a_session_id_that_cannot_be_stored_is_not_kept(site: OAuthSite) -> None:
    assert await site.sign_in(sid="a\0b") == "/"
    user = await site.accounts.users.resolve("ann@example.org")
    assert [each.origin.provider_session for each in await site.accounts.sessions.list(user.id)] == [""]


async def test_a_token_of_another_sign_in_is_refused(site: OAuthSite) -> None:
    browser = site.browser()
    first = await browser.begin()
    replayed = site.evil.sign(site.evil.claims(first["nonce"]))
    assert await site.sign_in(browser, grant={"token": replayed}) == f"{REFUSED}provider"


async def test_several_audiences_and_a_small_difference_of_clocks(site: OAuthSite) -> None:
    now = site.accounts.time
    claims = {"aud": ["gateway", "x"], "azp": "gateway", "iat": now + 50, "exp": now - 50}
    assert await site.sign_in(**claims) == "/"


async def test_keys_change_and_are_fetched_again_at_most_once_a_minute(site: OAuthSite) -> None:
    assert await site.sign_in() == "/"
    site.evil.published = ["ec"]
    site.evil.requests.clear()
    assert await site.sign_in(grant={"signing": "ec"}) == f"{REFUSED}provider"
    assert "/jwks" not in site.evil.requests
    site.accounts.time += 60
    assert await site.sign_in(grant={"signing": "ec"}) == "/"
    for _ in range(3):
        assert await site.sign_in(grant={"signing": "other"}) == f"{REFUSED}provider"
    assert site.evil.requests.count("/jwks") == 1
    site.evil.published = ["ec", "rsa"]
    site.accounts.time += 60
    assert await site.sign_in(grant={"header": {"kid": None}}) == "/"


async def test_a_withdrawn_key_is_forgotten_after_an_hour(site: OAuthSite) -> None:
    assert await site.sign_in() == "/"
    site.evil.published = ["other"]
    site.evil.failing = {"/jwks": 503}
    site.accounts.time += 3600
    assert await site.sign_in() == "/"
    site.evil.failing = {}
    site.accounts.time += 10
    assert await site.sign_in() == f"{REFUSED}provider"
    assert await site.sign_in(grant={"signing": "other"}) == "/"


async def test_keys_that_cannot_be_fetched_are_asked_for_again(site: OAuthSite) -> None:
    site.evil.failing = {"/jwks": 503}
    for _ in range(3):
        await site.sign_in()
    assert site.evil.requests.count("/jwks") == 1
    site.evil.failing = {}
    site.accounts.time += 10
    assert await site.sign_in() == "/"


async def test_many_sign_ins_at_a_dead_provider_ask_it_once(site: OAuthSite) -> None:
    site.evil.failing = {"/.well-known/openid-configuration": 500}
    replies = [site.browser().get("/oauth/evil/login") for _ in range(10)]
    found = {reply.headers["Location"] for reply in await asyncio.gather(*replies)}
    assert (found, site.evil.requests) == (
        {f"{REFUSED}unreachable"},
        ["/.well-known/openid-configuration"],
    )
    site.evil.failing = {}
    site.accounts.time += 10
    assert await site.sign_in() == "/"


async def test_userinfo_completes_the_claims_of_the_same_person(site: OAuthSite) -> None:
    site.evil.userinfo = {"sub": "s-1", "email": "ann@example.org", "email_verified": True, "name": "Ann"}
    sparse = {"email": None, "email_verified": None, "name": None}
    assert await site.sign_in(**sparse) == "/"
    for other in ("s-2", None, "S-1"):
        site.evil.userinfo["sub"] = other
        assert await site.sign_in(**sparse) == f"{REFUSED}provider"
    # An address is verified by its own document only.
    site.evil.userinfo = {"sub": "s-9", "email_verified": True}
    found = await site.sign_in(sub="s-9", email="b@example.org", email_verified=None, name=None)
    assert found == f"{REFUSED}email_unverified"


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({"issuer": "http://another.example"}, "provider"),
        ({"issuer": None}, "provider"),
        ({"token_endpoint": "https://127.0.0.1/token"}, "provider"),
        ({"token_endpoint": "file:///etc/passwd"}, "provider"),
        ({"jwks_uri": "http://user@127.0.0.1/jwks"}, "provider"),
        ({"jwks_uri": ["x"]}, "provider"),
        ({"authorization_endpoint": "http://127.0.0.1/a\nb"}, "provider"),
        ({"id_token_signing_alg_values_supported": ["none", "HS256"]}, "provider"),
    ],
)
async def test_a_description_that_cannot_be_used(
    site: OAuthSite, metadata: dict[str, Any], code: str
) -> None:
    site.evil.metadata = metadata
    reply = await site.browser().get("/oauth/evil/login")
    assert reply.headers["Location"] == f"{REFUSED}{code}"
    assert (await site.browser().get("/oauth/good/login")).headers["Location"].startswith(site.good.issuer)


async def test_a_provider_that_is_down_keeps_its_last_description(site: OAuthSite) -> None:
    site.good.failing = {"/.well-known/openid-configuration": 503}
    assert (await site.browser().get("/oauth/good/login")).headers["Location"] == f"{REFUSED}unreachable"
    await site.browser().begin()
    site.evil.failing = {"/.well-known/openid-configuration": 503}
    site.accounts.time += 4000
    assert await site.sign_in() == "/"
    site.evil.failing = {"/token": 500}
    assert await site.sign_in() == f"{REFUSED}unreachable"


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "/\\evil.example",
        "https:evil.example",
        "https://evil.example",
        "/%2f/evil.example",
        "/%5Cevil.example",
        "/a\r\nSet-Cookie: x=1",
        "/\tevil",
        "/ü",
        "/" + "a" * 600,
        "javascript:alert(1)",
        "/oauth/evil/login",
        "/api/v1/auths/signout",
        "",
    ],
)
async def test_a_return_path_leads_to_the_gateway(site: OAuthSite, path: str) -> None:
    assert await site.sign_in(query=f"?redirect={quote(path, safe='')}") == "/"


async def test_accounts_are_told_apart_by_issuer(site: OAuthSite) -> None:
    assert await site.sign_in() == "/"
    browser = site.browser()
    asked = await browser.begin("good")
    claims = site.good.claims(asked["nonce"], email="other@example.org")
    site.good.grant("c", claims, asked["code_challenge"])
    assert await browser.finish("good", state=asked["state"], code="c") == "/"
    assert site.people() == 2


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({}, "email_taken"),
        ({"email_verified": False}, "email_unverified"),
        ({"email_verified": "true"}, "email_unverified"),
        ({"email_verified": "false"}, "email_unverified"),
        ({"email_verified": 1}, "email_unverified"),
        ({"email_verified": None}, "email_unverified"),
        ({"email": "ADMIN@example.org"}, "email_taken"),
        ({"email": "admin@example.org."}, "provider"),
        ({"email": "admin@еxample.org", "email_verified": False}, "email_unverified"),  # noqa: RUF001
    ],
)
async def test_nobody_becomes_an_administrator_by_an_address(
    site: OAuthSite, claims: dict[str, Any], code: str
) -> None:
    site.allow(merge_by_email=True)
    found = await site.sign_in(**{"email": "admin@example.org", **claims})
    assert found == f"{REFUSED}{code}"
    assert site.people() == 0


async def test_a_name_at_the_provider_is_no_verified_address(site: OAuthSite) -> None:
    await site.accounts.add_user("bob")
    site.allow(merge_by_email=True)
    site.change(claims=ClaimNames(email="preferred_username"))
    names = {"preferred_username": "bob@example.org", "email_verified": True}
    assert await site.sign_in(**names, email="mallory@example.org") == f"{REFUSED}email_unverified"
    assert await site.sign_in(**names, email=None) == f"{REFUSED}email_unverified"
    assert await site.sign_in(**names, email="bob@example.org") == "/"


@pytest.mark.parametrize(
    ("emails", "found"),
    [
        ([{"email": "o@example.org", "verified": True}, {"email": "ann@example.org", "primary": True}], "?"),
        ([{"email": "ann@example.org", "primary": True, "verified": True}], "/"),
        ([], f"{REFUSED}provider"),
    ],
)
async def test_a_person_of_github_has_a_verified_primary_address(
    site: OAuthSite, emails: list[dict[str, Any]], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = site.evil
    github = replace(
        discovery.GITHUB,
        token_endpoint=f"{evil.issuer}/token",
        userinfo_endpoint=f"{evil.issuer}/me",
        secret_in_body=False,
    )
    monkeypatch.setattr(discovery, "GITHUB", github)
    site.change(kind=ProviderKind.GITHUB, claims=ClaimNames(subject="id"))
    evil.userinfo, evil.emails = {"id": 4711, "login": "ann", "name": None}, emails
    answer = await site.sign_in()
    assert answer == (f"{REFUSED}email_unverified" if found == "?" else found)
    if found == "/":
        user = await site.accounts.users.resolve("ann@example.org")
        assert (user.name, user.oauth) == ("ann", {"evil": {"sub": "4711"}})
        link = await site.accounts.identities_store.find("https://github.com", "4711")
        assert link is not None


@pytest.mark.parametrize(
    ("userinfo", "trusts", "found"),
    [
        ({"code": 0, "data": {"open_id": "ou-1", "name": "安", "email": "ann@example.org"}}, True, "/"),
        (
            {"code": 0, "data": {"open_id": "ou-1", "enterprise_email": "ann@example.org"}},
            False,
            "email_unverified",
        ),
        ({"code": 20005, "msg": "expired", "data": {"open_id": "ou-1"}}, True, "provider"),
        ({"code": 0, "data": {"name": "Ann"}}, True, "provider"),
        ({"code": 0, "data": ["ou-1"]}, True, "provider"),
        ({"open_id": "ou-1"}, True, "provider"),
    ],
)
async def test_a_person_of_feishu(
    site: OAuthSite, userinfo: dict[str, Any], trusts: bool, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = {"token_endpoint": f"{site.evil.issuer}/token", "userinfo_endpoint": f"{site.evil.issuer}/me"}
    monkeypatch.setattr(discovery, "FEISHU", replace(discovery.FEISHU, **addresses))
    site.allow(trust_email=trusts)
    site.change(kind=ProviderKind.FEISHU, claims=ClaimNames(subject="open_id"))
    site.evil.userinfo = userinfo
    assert await site.sign_in() == (found if found == "/" else f"{REFUSED}{found}")
    link = await site.accounts.identities_store.find("https://accounts.feishu.cn", "ou-1")
    assert (link is not None) == (found == "/")
    site.change(client_secret="another")
    assert await site.sign_in() == f"{REFUSED}provider"


async def test_names_are_text_and_the_picture_is_not_fetched(site: OAuthSite) -> None:
    name = '<img src=x onerror="alert(1)">\u202egnp'
    assert await site.sign_in(name=name, picture=f"{site.evil.issuer}/picture") == "/"
    user = await site.accounts.users.resolve("ann@example.org")
    assert (user.name, user.profile_image_url) == ('<img src=x onerror="alert(1)">gnp', "/user.png")
    assert "/picture" not in site.evil.requests


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"groups": ["g"] * 2001}, "provider"),
        ({"groups": {"a": 1}}, "provider"),
        ({"groups": [5]}, "provider"),
        ({"groups": ["g" * 2000]}, "provider"),
        ({"roles": {"a": 1}}, "provider"),
        ({"roles": ["r"] * 201}, "provider"),
        ({"roles": []}, "role_missing"),
        ({"roles": None}, "role_missing"),
    ],
    ids=lambda claims: str(claims)[:30],
)
async def test_claims_of_roles_and_groups_are_bounded(
    site: OAuthSite, claims: dict[str, Any], code: str
) -> None:
    site.allow(roles=RoleRules(is_managed=True), groups=GroupRules(is_managed=True))
    site.evil.userinfo = {"sub": "s-1"}
    assert await site.sign_in(**{"roles": ["user"], "groups": ["a"], **claims}) == f"{REFUSED}{code}"


async def test_groups_that_the_token_cannot_hold_stay(site: OAuthSite) -> None:
    site.allow(groups=GroupRules(is_managed=True, may_create=True))
    assert await site.sign_in(groups="a;b") == "/"
    user = await site.accounts.users.resolve("ann@example.org")
    for overage in ({"hasgroups": True}, {"_claim_names": {"groups": "src1"}}):
        assert await site.sign_in(**overage) == "/"
        assert len(await site.accounts.groups.list(user.id)) == 2


async def test_a_deactivated_person_is_refused_and_sessions_have_ended(site: OAuthSite) -> None:
    browser = site.browser()
    assert await site.sign_in(browser) == "/"
    user = await site.accounts.users.resolve("ann@example.org")
    await site.accounts.users.change(user.id, UserChange(active=False), None)
    assert await site.sign_in() == f"{REFUSED}deactivated"
    assert site.people() == 1


async def test_a_session_from_before_ends_at_the_sign_in(site: OAuthSite) -> None:
    ann = await site.accounts.add_user("bob")
    browser = site.browser()
    browser.cookies["token"] = fixed = await site.accounts.session(ann)
    asked = await browser.begin()
    site.evil.grant("c", site.evil.claims(asked["nonce"]), asked["code_challenge"])
    query = f"/oauth/evil/callback?state={asked['state']}&code=c"
    reply = await browser.get(query, {"Sec-Fetch-Site": "cross-site"})
    assert (reply.status, browser.cookies["token"] == fixed) == (302, False)
    assert await site.accounts.sessions.list(ann.id) == []


async def logout(site: OAuthSite, token: str) -> int:
    body = f"logout_token={token}"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    reply = await site.client.post("/oauth/backchannel-logout", data=body, headers=headers)
    if reply.status == 400:
        assert (await reply.json())["error"]["code"] == "invalid_request"
    return reply.status


@pytest.mark.parametrize(
    ("claims", "header"),
    [
        ({"nonce": "n"}, {}),
        ({"events": None}, {}),
        ({"events": {LOGOUT_EVENT: True}}, {}),
        ({"events": [LOGOUT_EVENT]}, {}),
        ({}, {"typ": "at+jwt"}),
        ({"jti": None}, {}),
        ({"jti": "j" * 600}, {}),
        ({"iat": 1_699_999_000}, {}),
        ({"iat": None}, {}),
        ({"aud": "another"}, {}),
        ({"iss": "http://another.example"}, {}),
        ({"sub": None, "sid": None}, {}),
        ({"sub": 5}, {}),
        ({}, {"kid": "other"}),
        ({}, {"crit": ["x"]}),
    ],
    ids=str,
)
async def test_a_bad_logout_token_ends_nothing(
    site: OAuthSite, claims: dict[str, Any], header: dict[str, Any]
) -> None:
    await site.sign_in()
    user = await site.accounts.users.resolve("ann@example.org")
    token = site.evil.sign(site.evil.logout_claims(**claims), {"typ": "logout+jwt", **header})
    assert await logout(site, token) == 400
    assert len(await site.accounts.sessions.list(user.id)) == 1
    id_token = site.evil.sign(site.evil.claims())
    assert await logout(site, id_token) == 400
    assert await logout(site, "") == 400
    assert await logout(site, "a.b.c") == 400
    assert await logout(site, "a.b.c&logout_token=a.b.c") == 400


async def test_a_logout_by_session_and_one_by_person(site: OAuthSite) -> None:
    for session in ("sid-1", "sid-2", "sid-3"):
        await site.sign_in(sid=session)
    user = await site.accounts.users.resolve("ann@example.org")
    await site.accounts.session(user)
    evil = site.evil
    first = evil.sign(evil.logout_claims(sub=None, sid="sid-1"), {"typ": "logout+jwt"})
    assert await logout(site, first) == 200
    left = {each.origin.provider_session for each in await site.accounts.sessions.list(user.id)}
    assert left == {"sid-2", "sid-3", ""}
    assert await logout(site, first) == 400
    stranger = evil.logout_claims(sub="nobody", sid=None, jti="jti-2")
    assert await logout(site, evil.sign(stranger)) == 200
    everywhere = evil.logout_claims(sid=None, jti="jti-3")
    assert await logout(site, evil.sign(everywhere)) == 200
    (kept,) = await site.accounts.sessions.list(user.id)
    assert kept.origin.provider == ""


async def test_a_logout_by_session_ends_those_of_the_person_whose_id_is_not_known(site: OAuthSite) -> None:
    for session in ("sid-1", "sid-2", None):
        await site.sign_in(sid=session)
    user = await site.accounts.users.resolve("ann@example.org")
    assert await logout(site, site.evil.sign(site.evil.logout_claims(sub="s-1", sid="sid-1"))) == 200
    left = {each.origin.provider_session for each in await site.accounts.sessions.list(user.id)}
    assert left == {"sid-2"}


async def test_a_logout_of_a_person_who_is_known_by_another_claim_needs_the_session(site: OAuthSite) -> None:
    site.change(claims=ClaimNames(subject="oid"))
    assert await site.sign_in(oid="o-1", sid="sid-1") == "/"
    user = await site.accounts.users.resolve("ann@example.org")
    person = site.evil.logout_claims(sub="s-1", sid=None)
    assert await logout(site, site.evil.sign(person)) == 400
    session = site.evil.logout_claims(sub="s-1", sid="sid-1", jti="jti-2")
    assert await logout(site, site.evil.sign(session)) == 200
    assert await site.accounts.sessions.list(user.id) == []


@pytest.mark.parametrize(
    ("claims", "header", "status"),
    [
        ({"azp": "phone"}, {"typ": "at+jwt"}, 200),
        ({"client_id": "phone"}, {}, 200),
        ({"azp": "another"}, {}, 403),
        ({}, {}, 403),
        ({"azp": "phone", "nonce": "n"}, {}, 403),
        ({"azp": "phone", "exp": 1}, {}, 403),
        ({"azp": "phone", "sub": "s-2"}, {}, 403),
        ({"azp": "phone"}, {"kid": "other"}, 403),
    ],
    ids=str,
)
async def test_access_tokens_of_listed_clients_only(
    site: OAuthSite, claims: dict[str, Any], header: dict[str, Any], status: int
) -> None:
    await site.sign_in()
    sent = {**site.evil.claims(nonce=None), "aud": "api", **claims}
    token = site.evil.sign({name: each for name, each in sent.items() if each is not None}, header)
    paths = ("/api/v1/auths/oauth/evil/token/exchange", "/api/v1/oauth/evil/token/exchange")
    for path in paths:
        assert (await site.client.post(path, json={"token": token})).status == 404
    site.change(trusted_clients=("phone",))
    for path in paths:
        reply = await site.client.post(path, json={"token": token})
        assert reply.status == status, await reply.text()
    assert site.people() == 1


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"active": True, "sub": "s-1", "client_id": "phone"}, 200),
        ({"active": False, "sub": "s-1", "client_id": "phone"}, 403),
        ({"active": "true", "sub": "s-1", "client_id": "phone"}, 403),
        ({"active": True, "sub": "s-1", "client_id": "other"}, 403),
        ({"active": True, "client_id": "phone"}, 403),
    ],
)
async def test_the_provider_is_asked_about_opaque_tokens(
    site: OAuthSite, answer: dict[str, Any], status: int
) -> None:
    await site.sign_in()
    site.change(trusted_clients=("phone",))
    site.evil.introspection, site.evil.userinfo = answer, {"sub": "s-1"}
    path = "/api/v1/oauth/evil/token/exchange"
    assert (await site.client.post(path, json={"token": "opaque"})).status == status
    assert (await site.client.post(path, json={"token": "two words\n"})).status == 403


async def test_a_link_begins_on_the_own_page_in_a_fresh_session(site: OAuthSite) -> None:
    accounts, browser = site.accounts, site.browser()
    ask = "/oauth/evil/login?link=true"
    failed = "/settings/account?error=state"
    assert (await browser.get(ask, FROM_OWN_PAGE)).headers["Location"] == failed
    browser.cookies["token"] = await accounts.session(site.admin)
    for headers in ({}, *({"Sec-Fetch-Site": each} for each in ("cross-site", "same-site", "none"))):
        assert (await browser.get(ask, headers)).headers["Location"] == failed
    accounts.time += 601
    assert (await browser.get(ask, FROM_OWN_PAGE)).headers["Location"] == failed
    token = bearer(browser.cookies["token"])
    for password, status in (("wrong", 400), ("secret", 200)):
        reply = await site.client.post("/api/v1/auths/confirm", json={"password": password}, headers=token)
        assert reply.status == status
    reply = await browser.get(ask, FROM_OWN_PAGE)
    asked = parameters(reply)
    site.evil.time = accounts.time
    site.evil.grant("c", site.evil.claims(asked["nonce"]), asked["code_challenge"])
    assert await browser.finish(state=asked["state"], code="c") == "/settings/account"
    assert site.people() == 0
    (shown, _) = await (await site.client.get("/api/v1/auths/identities", headers=token)).json()
    assert (shown["linked"], shown["email"], shown["subject_hint"]) == (True, "ann@example.org", "…s-1")
    assert await site.sign_in() == "/"


async def test_a_client_learns_whether_and_how_the_session_can_be_confirmed(site: OAuthSite) -> None:
    path, accounts = "/api/v1/auths/confirm", site.accounts
    eve = await accounts.add_user("eve")
    headers = bearer(await accounts.session(eve))
    reply = await site.client.get(path, headers=headers)
    assert await reply.json() == {"is_fresh": True, "has_password": False}
    accounts.time += 601
    await accounts.users_store.set_password_hash(eve.id, "hash:secret")
    reply = await site.client.get(path, headers=headers)
    assert await reply.json() == {"is_fresh": False, "has_password": True}
    assert (await site.client.get(path)).status == 401


async def test_a_link_belongs_to_the_session_that_began_it(site: OAuthSite) -> None:
    eve = await site.accounts.add_user("eve")
    browser = site.browser()
    browser.cookies["token"] = await site.accounts.session(eve)
    asked = parameters(await browser.get("/oauth/evil/login?link=true", FROM_OWN_PAGE))
    site.evil.grant("c", site.evil.claims(asked["nonce"]), asked["code_challenge"])
    browser.cookies["token"] = await site.accounts.session(site.admin)
    assert await browser.finish(state=asked["state"], code="c") == "/settings/account?error=state"
    assert await site.accounts.identities_store.list(eve.id) == []


async def test_the_last_way_in_is_not_unlinked(site: OAuthSite) -> None:
    browser = site.browser()
    await site.sign_in(browser)
    user = await site.accounts.users.resolve("ann@example.org")
    await site.accounts.identities_store.put_tokens(user.id, "evil", ProviderTokens("", "r"))
    headers, path = bearer(browser.cookies["token"]), "/api/v1/auths/identities/evil"
    reply = await site.client.delete(path, headers=headers)
    assert (reply.status, (await reply.json())["error"]["code"]) == (409, "last_way_in")
    await site.accounts.users.set_password(user.id, "secret words")
    headers = bearer(await site.accounts.session(user := await site.accounts.users.get(user.id)))
    assert (await site.client.delete(f"{path}s", headers=headers)).status == 404
    site.accounts.time += 601
    reply = await site.client.delete(path, headers=headers)
    assert (reply.status, (await reply.json())["error"]["code"]) == (403, "confirmation_needed")
    headers = bearer(await site.accounts.session(user))
    assert (await site.client.delete(path, headers=headers)).status == 200
    assert site.evil.revoked == ["r"]
    assert await site.sign_in() == f"{REFUSED}email_taken"
    user = await site.accounts.users.get(user.id)
    assert (user.oauth, user.role) == (None, Role.USER)
