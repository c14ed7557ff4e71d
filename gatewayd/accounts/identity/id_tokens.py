"""Checks of the claims of tokens (OpenID Connect Core 1.0, 3.1.3.7; Back-Channel Logout 1.0, 2.6)."""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.accounts.identity.external_accounts import refuse
from gatewayd.accounts.identity.records import MAX_SUBJECT_CHARACTERS, RefusalCode
from gatewayd.errors import GatewayError

LEEWAY_SECONDS: Final = 60
MAX_LOGOUT_AGE_SECONDS: Final = 300
MAX_JTI_CHARACTERS: Final = 512
LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
LOGOUT_TYPES: Final = frozenset({None, "jwt", "logout+jwt", "application/logout+jwt"})
ACCESS_TYPES: Final = frozenset({None, "jwt", "at+jwt", "application/at+jwt"})

Claims = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogoutNotice:
    """What a logout token says: who, in which session of the provider; at least one is not empty."""

    subject: str
    session: str
    jti: str
    issued_at: int


def check_id_token(claims: Claims, *, issuer: str, client_id: str, nonce: str, now: int) -> None:
    """Raise forbidden unless an id token is for this client, this sign-in and now."""
    _check_common(claims, issuer, now)
    _check_audience(claims, client_id)
    if not isinstance(claims.get("exp"), int | float):
        raise _bad("exp", "it is missing")
    sent = claims.get("nonce")
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), nonce.encode()):
        raise _bad("nonce", "it is not that of the request")
    _check_name(claims.get("sub"), "sub")


def check_required(claims: Claims, required: Sequence[tuple[str, str]]) -> None:
    """Raise forbidden unless the claims have these values."""
    for name, value in required:
        if claims.get(name) != value:
            raise _bad(name, "it is not the required one")


def check_logout_token(
    claims: Claims, kind: str | None, *, issuer: str, client_id: str, now: int
) -> LogoutNotice:
    """Return what a logout token says; raise forbidden for any other token."""
    if (kind.lower() if kind else kind) not in LOGOUT_TYPES:
        raise _bad("typ", "it is not that of a logout token")
    _check_common(claims, issuer, now)
    _check_audience(claims, client_id)
    issued_at, jti = claims.get("iat"), claims.get("jti")
    if not isinstance(issued_at, int | float) or now - issued_at > MAX_LOGOUT_AGE_SECONDS:
        raise _bad("iat", "it is missing or too old")
    events = claims.get("events")
    if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict):
        raise _bad("events", "it has no logout")
    if "nonce" in claims:
        raise _bad("nonce", "a logout token has none")
    if not isinstance(jti, str) or not 0 < len(jti) <= MAX_JTI_CHARACTERS:
        raise _bad("jti", "it is missing or too long")
    subject, session = claims.get("sub"), claims.get("sid")
    for value, name in ((subject, "sub"), (session, "sid")):
        if value is not None:
            _check_name(value, name)
    if subject is None and session is None:
        raise _bad("sub", "it is missing, and so is sid")
    return LogoutNotice(subject or "", session or "", jti, int(issued_at))


def check_access_token(claims: Claims, kind: str | None, *, issuer: str, now: int) -> str:
    """Return the client for which an access token was issued (RFC 9068, 2.2); raise forbidden for an id
    token and for one that is not valid now."""
    if (kind.lower() if kind else kind) not in ACCESS_TYPES or {"nonce", "at_hash", "events"} & claims.keys():
        raise _bad("typ", "it is not that of an access token")
    _check_common(claims, issuer, now)
    if not isinstance(claims.get("exp"), int | float):
        raise _bad("exp", "it is missing")
    _check_name(claims.get("sub"), "sub")
    client = claims.get("azp") or claims.get("client_id") or claims.get("appid")
    return client if isinstance(client, str) else ""


def is_audience(claims: Claims, client_id: str) -> bool:
    """Tell whether a token is for this client, perhaps among others."""
    audience = claims.get("aud")
    return client_id == audience or (isinstance(audience, list) and client_id in audience)


def _check_common(claims: Claims, issuer: str, now: int) -> None:
    if claims.get("iss") != issuer:
        raise _bad("iss", "it is another provider")
    for name in ("exp", "iat", "nbf"):
        value = claims.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise _bad(name, "it is not a time")
    if claims.get("exp") is not None and claims["exp"] <= now - LEEWAY_SECONDS:
        raise _bad("exp", "it is past")
    for name in ("iat", "nbf"):
        if claims.get(name) is not None and claims[name] > now + LEEWAY_SECONDS:
            raise _bad(name, "it is in the future")


def _check_audience(claims: Claims, client_id: str) -> None:
    if not is_audience(claims, client_id):
        raise _bad("aud", "it is another client")
    party, has_more = claims.get("azp"), isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if (has_more and party is None) or (party is not None and party != client_id):
        raise _bad("azp", "it is another client")


def _check_name(value: Any, name: str) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SUBJECT_CHARACTERS:
        raise _bad(name, "it is missing, too long or not a text")


def _bad(name: str, reason: str) -> GatewayError:
    return refuse(RefusalCode.PROVIDER, f"the token cannot be used: {name}: {reason}")
