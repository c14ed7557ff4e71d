"""Session tokens: HS256 JSON web tokens (RFC 7519) that only this gateway issues and reads.

The only importer of `jose`. The library never sees a header other than `_HEADER` and never chooses an
algorithm. This module checks the claims itself: the library neither requires them nor uses the clock of the
gateway.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from jose import jwt
from jose.exceptions import JOSEError

from gatewayd import ids
from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.interfaces import RevocationStore, SessionStore
from gatewayd.accounts.records import SessionClaims, SessionOrigin, StoredSession, User
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.text import storable
from gatewayd.transactions import Transactor

ALGORITHM: Final = "HS256"
MAX_TOKEN_CHARACTERS: Final = 2048
MIN_SECRET_BYTES: Final = 32
LEEWAY_SECONDS: Final = 86_400
"""Maximum set-back of the clock after a session was issued."""
# {"alg":"HS256","typ":"JWT"}: the only accepted header. Others are refused before they are parsed.
_HEADER: Final = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
NO_SECRETS: Final[Mapping[str, int]] = MappingProxyType({})
_CLAIMS: Final = {"id", "sub", "ver", "jti", "iat", "exp"}
# `_checked` replaces these checks of the library, which use its own clock.
_OPTIONS: Final = {"verify_aud": False, "verify_iat": False, "verify_exp": False, "verify_nbf": False}


MAX_USER_AGENT_CHARACTERS: Final = 255
MAX_ADDRESS_CHARACTERS: Final = 64
MAX_SESSIONS_PER_ACCOUNT: Final = 200
MAX_SESSIONS_PER_PROVIDER: Final = 10
"""Sessions of an account at one provider, unless `max_per_provider` is set: as in Open WebUI."""

CONFIRMATION_SECONDS: Final = 600
"""Time for which a sign-in or a confirmation by password counts as fresh."""


@dataclass(frozen=True, slots=True)
class SessionStores:
    """The stores of sessions and of revoked tokens, and their transactions."""

    sessions: SessionStore
    revocations: RevocationStore
    transactor: Transactor


class Sessions:
    """Issues, reads, lists and ends sessions. `secret` has at least 32 bytes.

    Sessions of a `former` secret are valid until the time (epoch seconds) of that secret.

    A session has a token and a row. A token without a row, from before there were rows, is valid until it
    expires. A session that ends has its token revoked and its row removed. A new session ends those of its
    account that are too many, first those that were not used for the longest time.
    """

    def __init__(
        self,
        secret: str,
        stores: SessionStores,
        changes: AccountChangeNotifier,
        clock: ids.Clock = ids.now,
        prune_clock: ids.Clock | None = None,
        former: Mapping[str, int] = NO_SECRETS,
    ) -> None:
        size = len(secret.encode())
        if size < MIN_SECRET_BYTES:
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                f"cannot sign sessions: the secret has {size} bytes, at least {MIN_SECRET_BYTES} are needed",
            )
        self._secret = secret
        self._former = former
        self._store = stores.sessions
        self._revocations = stores.revocations
        self._transactor = stores.transactor
        self._changes = changes
        self._clock = clock
        self.max_per_provider = MAX_SESSIONS_PER_PROVIDER
        # A revocation that is deleted too early would revive its session after a correction of the clock.
        self._prune_clock = prune_clock or ids.retention_clock()

    async def issue(
        self, user: User, lifetime_seconds: int, origin: SessionOrigin, until: int | None = None
    ) -> tuple[str, SessionClaims]:
        """Store a new session of the user and return its token and claims.

        It expires at `until` if that comes first. Raises conflict if the user was removed meanwhile.
        """
        now = self._clock()
        ends = now + lifetime_seconds
        if until is not None:
            ends = min(ends, until)
        claims = SessionClaims(user.id, user.token_version, ids.new_id(), now, ends)
        body = {
            "id": claims.user_id,
            "sub": claims.user_id,
            "ver": claims.token_version,
            "jti": claims.jti,
            "iat": claims.issued_at,
            "exp": claims.expires_at,
        }
        token = jwt.encode(body, self._secret, algorithm=ALGORITHM)
        await self._store.add(_session_of(claims, origin))
        await self._end_surplus(claims, origin.provider)
        return token, claims

    def read(self, token: str) -> SessionClaims:
        """Return the claims of a token; raise unauthenticated unless the signature and expiry are valid.

        The caller checks revocation, user and token version.
        """
        if len(token) > MAX_TOKEN_CHARACTERS or not token.isascii() or token.count(".") != 2:
            raise _refused()
        if token.partition(".")[0] != _HEADER:
            raise _refused()
        body = _decoded(token, self._secret)
        if body is None and self._former:
            now = self._clock()
            valid = (secret for secret, until in self._former.items() if now < until)
            body = next((found for secret in valid if (found := _decoded(token, secret)) is not None), None)
        if body is None:
            raise _refused()
        return self._checked(body)

    def find_claims(self, token: str) -> SessionClaims | None:
        """Return the claims of a token as `read` does, None for a token that is not valid."""
        try:
            return self.read(token)
        except GatewayError:
            return None

    async def is_revoked(self, claims: SessionClaims) -> bool:
        """Tell whether the session was revoked."""
        return await self._revocations.contains(claims.jti)

    async def revoke(self, claims: SessionClaims) -> None:
        """End a session at once, also one without a row; idempotent."""
        async with self._transactor.transaction():
            await self._revocations.add(claims.jti, claims.user_id, claims.expires_at)
            await self._store.remove([claims.jti])
            self._changes.publish(AccountChange(claims.user_id, asks_again=True, ended=(claims.jti,)))

    async def list(self, user_id: str) -> Sequence[StoredSession]:
        """Return the valid sessions of a user, newest first."""
        return await self._store.list(user_id, after=self._clock())

    async def find(self, session_id: str) -> StoredSession | None:
        """Return the session with this id, None for one without a row."""
        return await self._store.find(session_id)

    async def end(self, user_id: str, session_id: str) -> StoredSession:
        """End one session of a user at once and return it; raise not_found for that of another user."""
        session = await self._store.find(session_id)
        if session is None or session.user_id != user_id:
            raise not_found("session", session_id)
        await self._end_all([session])
        return session

    async def end_others(self, user_id: str, session_id: str | None) -> int:
        """End all stored sessions of a user but one; return how many."""
        sessions = [each for each in await self.list(user_id) if each.id != session_id]
        await self._end_all(sessions)
        return len(sessions)

    async def end_of_provider(
        self, provider: str, *, user_id: str | None = None, provider_session: str | None = None
    ) -> int:
        """End the sessions that began at a provider; return how many.

        `user_id` selects those of one user, `provider_session` those of one session of the provider; one of
        them is given.
        """
        if user_id is None and not provider_session:
            raise ValueError("a user or a session of the provider is needed")
        sessions = await self._store.list_of_provider(
            provider, user_id=user_id, provider_session=provider_session
        )
        await self._end_all(sessions)
        return len(sessions)

    async def confirm(self, session_id: str) -> None:
        """Store that the user of a session has just confirmed it by their password.

        Raises not_found for a session without a row.
        """
        if not await self._store.confirm(session_id, self._clock()):
            raise not_found("session", session_id)

    async def is_fresh(self, session_id: str) -> bool:
        """Tell whether a session began, or was confirmed, at most `CONFIRMATION_SECONDS` ago."""
        session = await self._store.find(session_id)
        if session is None:
            return False
        age = self._clock() - max(session.created_at, session.confirmed_at)
        return 0 <= age <= CONFIRMATION_SECONDS

    async def touch(self, seen: Mapping[str, int]) -> None:
        """Write the times (epoch seconds) of the last requests of sessions."""
        await self._store.touch(seen)

    async def prune(self) -> int:
        """Delete revocations of expired tokens, and expired sessions; return how many revocations."""
        before = self._prune_clock() - LEEWAY_SECONDS
        await self._store.prune(before)
        return await self._revocations.prune(before)

    async def _end_surplus(self, newest: SessionClaims, provider: str) -> None:
        """End the sessions that are too many beside the newest one."""
        others = [each for each in await self.list(newest.user_id) if each.id != newest.jti]
        others.sort(key=lambda each: (each.last_seen_at, each.created_at), reverse=True)
        surplus = others[MAX_SESSIONS_PER_ACCOUNT - 1 :]
        if provider:
            alike = [each for each in others if each.origin.provider == provider]
            surplus += [each for each in alike[self.max_per_provider - 1 :] if each not in surplus]
        if surplus:
            await self._end_all(surplus)

    async def _end_all(self, sessions: Sequence[StoredSession]) -> None:
        ended: dict[str, list[str]] = {}
        for session in sessions:
            ended.setdefault(session.user_id, []).append(session.id)
        async with self._transactor.transaction():
            await self._revocations.add_all(sessions)
            await self._store.remove([session.id for session in sessions])
            for user_id, session_ids in ended.items():
                self._changes.publish(AccountChange(user_id, asks_again=True, ended=tuple(session_ids)))

    def _checked(self, body: dict[str, Any]) -> SessionClaims:
        texts = [body.get(name) for name in ("id", "sub", "jti")]
        numbers = [body.get(name) for name in ("ver", "iat", "exp")]
        if (
            body.keys() != _CLAIMS
            or not all(isinstance(text, str) and text for text in texts)
            or not all(type(number) is int for number in numbers)
            or body["id"] != body["sub"]
        ):
            raise _refused()
        claims = SessionClaims(body["id"], body["ver"], body["jti"], body["iat"], body["exp"])
        now = self._clock()
        if claims.expires_at <= now:
            raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the session: it has expired")
        if claims.issued_at > now + LEEWAY_SECONDS:
            raise _refused()
        return claims


def _session_of(claims: SessionClaims, origin: SessionOrigin) -> StoredSession:
    return StoredSession(
        id=claims.jti,
        user_id=claims.user_id,
        token_version=claims.token_version,
        created_at=claims.issued_at,
        expires_at=claims.expires_at,
        last_seen_at=claims.issued_at,
        origin=replace(
            origin,
            user_agent=storable(origin.user_agent)[:MAX_USER_AGENT_CHARACTERS],
            address=storable(origin.address)[:MAX_ADDRESS_CHARACTERS],
        ),
    )


def _decoded(token: str, secret: str) -> Any:
    """Return the claims of a token, None if the secret did not sign it."""
    try:
        return jwt.decode(token, secret, algorithms=["HS256"], options=_OPTIONS)
    except (JOSEError, json.JSONDecodeError):
        return None


def _refused() -> GatewayError:
    return GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the session: the token is not valid")
