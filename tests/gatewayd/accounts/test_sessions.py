import base64
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jose import jwk, jwt

from gatewayd.accounts.change_notifier import AccountChange
from gatewayd.accounts.sessions import LEEWAY_SECONDS, Sessions
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.accounts.memory_stores import MemoryRevocations
from tests.fakes.accounts.services import NOON, SECRET, Accounts


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
    token, claims = accounts.sessions.issue(ann, 60)
    assert accounts.sessions.read(token) == claims
    assert (claims.user_id, claims.token_version) == (ann.id, 0)
    assert claims.expires_at - claims.issued_at == 60
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}
    assert jwt.get_unverified_claims(token)["id"] == jwt.get_unverified_claims(token)["sub"] == ann.id


async def test_a_token_ends_when_it_says(accounts: Accounts) -> None:
    token, _ = accounts.sessions.issue(await accounts.add_user(), 60)
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
    _, claims = accounts.sessions.issue(ann, 60)
    _, other = accounts.sessions.issue(ann, 60)
    accounts.heard.clear()
    await accounts.sessions.revoke(claims)
    await accounts.sessions.revoke(claims)
    assert accounts.heard == [AccountChange(ann.id, asks_again=True)] * 2
    assert await accounts.sessions.is_revoked(claims)
    assert not await accounts.sessions.is_revoked(other)
    assert await accounts.sessions.prune() == 0
    accounts.time += 200
    assert await accounts.sessions.prune() == 0
    accounts.time += LEEWAY_SECONDS
    assert await accounts.sessions.prune() == 1


async def test_a_session_outlives_a_clock_that_is_set_back_and_so_does_its_end(accounts: Accounts) -> None:
    ann = await accounts.add_user()
    kept, claims = accounts.sessions.issue(ann, 60)
    ended, ended_claims = accounts.sessions.issue(ann, 60)
    await accounts.sessions.revoke(ended_claims)
    accounts.time += 3000
    assert await accounts.sessions.prune() == 0
    accounts.time -= 6600
    assert accounts.sessions.read(kept) == claims
    assert await accounts.sessions.is_revoked(accounts.sessions.read(ended))


async def test_a_clock_that_is_set_ahead_brings_no_ended_session_back(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions(SECRET, MemoryRevocations(accounts.memory), accounts.changes)
    _, claims = sessions.issue(await accounts.add_user(), 60)
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
    assert accounts.sessions.issue(ann, 60, accounts.time + 5)[1].expires_at == accounts.time + 5
    assert accounts.sessions.issue(ann, 60, accounts.time + 500)[1].expires_at == accounts.time + 60
