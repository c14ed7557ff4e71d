import base64
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jose import jwk, jwt

from gatewayd.accounts import sessions as sessions_module
from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.records import SessionOrigin, SignInMethod
from gatewayd.accounts.sessions import CONFIRMATION_SECONDS, LEEWAY_SECONDS, Sessions
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.services import BY_PASSWORD, NOON, SECRET, Accounts


def claims_at(now: int, **changed: Any) -> dict[str, Any]:
    body = {"id": "u1", "sub": "u1", "ver": 0, "jti": "j1", "iat": now, "exp": now + 60, **changed}
    return {name: value for name, value in body.items() if value is not ...}


def refuse(sessions: Sessions, token: str) -> None:
    with pytest.raises(GatewayError) as caught:
        sessions.read(token)
    assert caught.value.kind is ErrorKind.UNAUTHENTICATED


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def test_the_backend_is_cryptography() -> None:
    assert jwk.get_key("HS256").__module__ == "jose.backends.cryptography_backend"


async def test_a_token_says_what_was_issued(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    token, claims = await accounts.sessions.issue(ann, 60, BY_PASSWORD)
    assert accounts.sessions.read(token) == claims
    assert (claims.user_id, claims.token_version) == (ann.id, 0)
    assert claims.expires_at - claims.issued_at == 60
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}
    assert jwt.get_unverified_claims(token)["id"] == jwt.get_unverified_claims(token)["sub"] == ann.id


async def test_a_token_ends_when_it_says(accounts: Accounts) -> None:
    token, _ = await accounts.sessions.issue(await accounts.add_user(), 60, BY_PASSWORD)
    accounts.time += 59
    accounts.sessions.read(token)
    accounts.time += 1
    refuse(accounts.sessions, token)


@pytest.mark.parametrize(
    "changed",
    [{name: ...} for name in ("id", "sub", "ver", "jti", "iat", "exp")]
    + [
        {"sub": "u2"},
        {"id": 5, "sub": 5},
        {"jti": ""},
        {"ver": "0"},
        {"ver": False},
        {"exp": 1e12},
        {"exp": str(NOON + 60)},
        {"exp": NOON},
        {"iat": NOON + LEEWAY_SECONDS + 60},
        {"iat": None},
        {"aud": "x"},
        {"admin": True},
    ],
)
def test_claims_are_required_and_typed(accounts: Accounts, changed: dict[str, Any]) -> None:
    accounts.sessions.read(jwt.encode(claims_at(NOON), SECRET, algorithm="HS256"))
    refuse(accounts.sessions, jwt.encode(claims_at(NOON, **changed), SECRET, algorithm="HS256"))


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none", "typ": "JWT"},
        {"alg": "HS512", "typ": "JWT"},
        {"alg": "HS256"},
        {"alg": "HS256", "typ": "JWT", "kid": "1"},
        {"alg": "HS256", "typ": "JWT", "crit": ["exp"]},
        {"alg": "HS256", "typ": "JWT", "jku": "https://x"},
        {"typ": "JWT", "alg": "HS256"},
        [],
    ],
)
def test_other_headers_are_refused_however_well_signed(accounts: Accounts, header: Any) -> None:
    signing = f"{encoded(header)}.{encoded(claims_at(NOON))}"
    signature = base64.urlsafe_b64encode(jwk.construct(SECRET, "HS256").sign(signing.encode())).decode()
    refuse(accounts.sessions, f"{signing}.{signature.rstrip('=')}")


def test_foreign_signatures_are_refused(accounts: Accounts) -> None:
    refuse(accounts.sessions, jwt.encode(claims_at(NOON), "x" * 64, algorithm="HS256"))
    refuse(accounts.sessions, jwt.encode(claims_at(NOON), SECRET, algorithm="HS384"))
    good = jwt.encode(claims_at(NOON), SECRET, algorithm="HS256")
    refuse(accounts.sessions, good.rpartition(".")[0] + ".")
    head, _, signature = good.split(".")
    refuse(accounts.sessions, f"{head}.{encoded(claims_at(NOON, id='u2', sub='u2'))}.{signature}")


@pytest.mark.parametrize(
    "token", ["", ".", "..", "a.b", "a.b.c.d", "sk-1", "\udfff.a.b", "é.é.é", "x" * 100_000]
)
def test_what_is_no_token(accounts: Accounts, token: str) -> None:
    refuse(accounts.sessions, token)


@given(st.text(max_size=60), st.text(max_size=60))
def test_noise_behind_the_right_header(payload: str, signature: str) -> None:
    refuse(Accounts().sessions, f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{payload}.{signature}")


def test_signed_payloads_that_are_no_objects(accounts: Accounts) -> None:
    for payload in ("[]", "null", "{", "[" * 400):
        part = base64.urlsafe_b64encode(payload.encode()).decode().rstrip("=")
        signing = f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{part}"
        signature = base64.urlsafe_b64encode(jwk.construct(SECRET, "HS256").sign(signing.encode())).decode()
        refuse(accounts.sessions, f"{signing}.{signature.rstrip('=')}")


async def test_revocation_is_remembered_until_the_token_has_expired(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    _, claims = await accounts.sessions.issue(ann, 60, BY_PASSWORD)
    _, other = await accounts.sessions.issue(ann, 60, BY_PASSWORD)
    accounts.heard.clear()
    await accounts.sessions.revoke(claims)
    await accounts.sessions.revoke(claims)
    assert accounts.heard == [AccountChange(ann.id, asks_again=True, ended=(claims.jti,))] * 2
    assert await accounts.sessions.is_revoked(claims)
    assert not await accounts.sessions.is_revoked(other)
    assert await accounts.sessions.prune() == 0
    accounts.time += 200
    assert await accounts.sessions.prune() == 0
    accounts.time += LEEWAY_SECONDS
    assert await accounts.sessions.prune() == 1


async def test_a_session_outlives_a_clock_that_is_set_back_and_so_does_its_end(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    kept, claims = await accounts.sessions.issue(ann, 60, BY_PASSWORD)
    ended, ended_claims = await accounts.sessions.issue(ann, 60, BY_PASSWORD)
    await accounts.sessions.revoke(ended_claims)
    accounts.time += 3000
    assert await accounts.sessions.prune() == 0
    accounts.time -= 6600
    assert accounts.sessions.read(kept) == claims
    assert await accounts.sessions.is_revoked(accounts.sessions.read(ended))


async def test_a_clock_that_is_set_ahead_brings_no_ended_session_back(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions(SECRET, accounts.session_stores, accounts.changes)
    _, claims = await sessions.issue(await accounts.add_user(), 60, BY_PASSWORD)
    await sessions.revoke(claims)
    ahead = time.time() + 10 * LEEWAY_SECONDS
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: ahead)
        assert await sessions.prune() == 0
    assert await sessions.is_revoked(claims)


def test_weak_secrets_are_refused(accounts: Accounts) -> None:
    with pytest.raises(GatewayError, match="at least 32") as caught:
        Sessions("x" * 31, None, accounts.changes)  # type: ignore[arg-type]
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED


async def test_a_session_may_end_with_what_made_it(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    assert (await accounts.sessions.issue(ann, 60, BY_PASSWORD, accounts.time + 5))[
        1
    ].expires_at == accounts.time + 5
    assert (await accounts.sessions.issue(ann, 60, BY_PASSWORD, accounts.time + 500))[
        1
    ].expires_at == accounts.time + 60


async def test_a_new_session_ends_what_was_not_used_for_longest(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "MAX_SESSIONS_PER_ACCOUNT", 4)
    accounts.sessions.max_per_provider = 2
    ann, bob = await accounts.add_user(), await accounts.add_user("bob")

    async def begin(provider: str = "") -> str:
        accounts.time += 1
        method = SignInMethod.OAUTH if provider else SignInMethod.PASSWORD
        return (await accounts.sessions.issue(ann, 600, SessionOrigin(method, provider)))[1].jti

    async def left() -> set[str]:
        return {session.id for session in await accounts.sessions.list(ann.id)}

    await accounts.sessions.issue(bob, 600, SessionOrigin(SignInMethod.OAUTH, "okta"))
    first, second = await begin("okta"), await begin("okta")
    await accounts.sessions.touch({first: accounts.time + 1})
    third = await begin("okta")
    assert await left() == {first, third}, "the first one was used last"
    assert accounts.heard[-1] == AccountChange(ann.id, asks_again=True, ended=(second,))
    entra, password = await begin("entra"), await begin()
    assert await left() == {first, third, entra, password}
    latest = await begin()
    assert await left() == {third, entra, password, latest}
    assert len(await accounts.sessions.list(bob.id)) == 1
    accounts.time += 700
    assert await left() == set()
    assert await begin("okta") in await left(), "expired ones do not count"


async def test_sessions_are_listed_until_they_end(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user(), await accounts.add_user("bob")
    agent = SessionOrigin(SignInMethod.LDAP, user_agent="A\x00\ud800" * 500, address="1" * 500)
    _, one = await accounts.sessions.issue(ann, 60, agent)
    accounts.time += 1
    _, two = await accounts.sessions.issue(ann, 60, BY_PASSWORD)
    await accounts.sessions.issue(bob, 60, BY_PASSWORD)
    listed = await accounts.sessions.list(ann.id)
    assert [each.id for each in listed] == [two.jti, one.jti]
    shown = listed[1].origin
    assert (shown.method, len(shown.user_agent), len(shown.address)) == (SignInMethod.LDAP, 255, 64)
    with pytest.raises(GatewayError) as caught:
        await accounts.sessions.end(bob.id, one.jti)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert not await accounts.sessions.is_revoked(one)
    accounts.heard.clear()
    assert (await accounts.sessions.end(ann.id, one.jti)).id == one.jti
    assert accounts.heard == [AccountChange(ann.id, asks_again=True, ended=(one.jti,))]
    assert await accounts.sessions.is_revoked(one)
    assert [each.id for each in await accounts.sessions.list(ann.id)] == [two.jti]
    accounts.time += 60
    assert await accounts.sessions.list(ann.id) == []
    assert len(await accounts.sessions.list(bob.id)) == 0


async def test_the_other_sessions_end_together(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user(), await accounts.add_user("bob")
    claims = [(await accounts.sessions.issue(ann, 60, BY_PASSWORD))[1] for _ in range(3)]
    _, his = await accounts.sessions.issue(bob, 60, BY_PASSWORD)
    accounts.heard.clear()
    assert await accounts.sessions.end_others(ann.id, claims[1].jti) == 2
    assert [await accounts.sessions.is_revoked(each) for each in [*claims, his]] == [True, False, True, False]
    assert {*accounts.heard[0].ended} == {claims[0].jti, claims[2].jti}
    assert await accounts.sessions.end_others(ann.id, claims[1].jti) == 0
    assert await accounts.sessions.end_others(ann.id, None) == 1


async def test_a_provider_ends_its_sessions(accounts: Accounts) -> None:
    ann, bob = await accounts.add_user(), await accounts.add_user("bob")
    one, two = (SessionOrigin(SignInMethod.OAUTH, "okta", f"sid-{number}") for number in (1, 2))
    made = [
        (await accounts.sessions.issue(who, 60, origin))[1]
        for who, origin in ((ann, one), (ann, two), (bob, one), (ann, BY_PASSWORD))
    ]
    assert await accounts.sessions.end_of_provider("other", provider_session="sid-1") == 0
    assert await accounts.sessions.end_of_provider("okta", provider_session="sid-2") == 1
    assert await accounts.sessions.end_of_provider("okta", user_id=ann.id) == 1
    assert [await accounts.sessions.is_revoked(each) for each in made] == [True, True, False, False]
    for nothing in ({}, {"provider_session": ""}):
        with pytest.raises(ValueError, match="needed"):
            await accounts.sessions.end_of_provider("okta", **nothing)


async def test_a_confirmation_is_fresh_for_ten_minutes(accounts: Accounts) -> None:
    _, claims = await accounts.sessions.issue(await accounts.add_user(), 6000, BY_PASSWORD)
    accounts.time += CONFIRMATION_SECONDS
    assert await accounts.sessions.is_fresh(claims.jti)
    accounts.time += 1
    assert not await accounts.sessions.is_fresh(claims.jti)
    await accounts.sessions.confirm(claims.jti)
    assert await accounts.sessions.is_fresh(claims.jti)
    accounts.time += CONFIRMATION_SECONDS + 1
    assert not await accounts.sessions.is_fresh(claims.jti)
    assert not await accounts.sessions.is_fresh("gone")
    with pytest.raises(GatewayError):
        await accounts.sessions.confirm("gone")


async def test_expired_sessions_are_pruned_with_their_revocations(accounts: Accounts) -> None:
    await accounts.sessions.issue(await accounts.add_user(), 60, BY_PASSWORD)
    accounts.time += 61 + LEEWAY_SECONDS
    await accounts.sessions.prune()
    assert accounts.memory.tables.sessions == {}


async def test_the_time_of_the_last_request_is_written_by_the_flush(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    token = await accounts.session(ann)
    accounts.time += 5
    await accounts.authenticator.authenticate(token, "GET", "/x")
    assert (await accounts.sessions.list(ann.id))[0].last_seen_at == accounts.time - 5
    await accounts.authenticator.flush()
    assert (await accounts.sessions.list(ann.id))[0].last_seen_at == accounts.time


async def test_a_token_without_a_row_is_valid_and_can_be_revoked(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    token = await accounts.session(ann)
    accounts.memory.tables.sessions.clear()
    await accounts.authenticator.authenticate(token, "GET", "/x")
    await accounts.authenticator.flush()
    assert await accounts.sessions.list(ann.id) == []
    await accounts.sessions.revoke(accounts.sessions.read(token))
    with pytest.raises(GatewayError):
        await accounts.authenticator.authenticate(token, "GET", "/x")
