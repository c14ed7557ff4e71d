"""Session tokens: HS256 JSON web tokens (RFC 7519) that only this gateway issues and reads.

The only importer of `jose`. The library never sees a header other than `_HEADER` and never chooses an
algorithm. This module checks the claims itself: the library neither requires them nor uses the clock of the
gateway.
"""

import json
from typing import Any, Final

from jose import jwt
from jose.exceptions import JOSEError

from gatewayd import ids
from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.interfaces import RevocationStore
from gatewayd.accounts.records import SessionClaims, User
from gatewayd.errors import ErrorKind, GatewayError

ALGORITHM: Final = "HS256"
MAX_TOKEN_CHARACTERS: Final = 2048
MIN_SECRET_BYTES: Final = 32
LEEWAY_SECONDS: Final = 86_400
"""Maximum set-back of the clock after a session was issued."""
# {"alg":"HS256","typ":"JWT"}: the only accepted header. Others are refused before they are parsed.
_HEADER: Final = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
_CLAIMS: Final = {"id", "sub", "ver", "jti", "iat", "exp"}
# `_checked` replaces these checks of the library, which use its own clock.
_OPTIONS: Final = {"verify_aud": False, "verify_iat": False, "verify_exp": False, "verify_nbf": False}


class Sessions:
    """Issues, reads and revokes session tokens. `secret` has at least 32 bytes."""

    def __init__(
        self,
        secret: str,
        revocations: RevocationStore,
        changes: AccountChangeNotifier,
        clock: ids.Clock = ids.now,
        prune_clock: ids.Clock | None = None,
    ) -> None:
        size = len(secret.encode())
        if size < MIN_SECRET_BYTES:
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                f"cannot sign sessions: the secret has {size} bytes, at least {MIN_SECRET_BYTES} are needed",
            )
        self._secret = secret
        self._revocations = revocations
        self._changes = changes
        self._clock = clock
        # A revocation that is deleted too early would revive its session after a correction of the clock.
        self._prune_clock = prune_clock or ids.retention_clock()

    def issue(self, user: User, lifetime_seconds: int, until: int | None = None) -> tuple[str, SessionClaims]:
        """Return a token for the user, and its claims; it expires at `until` if that comes first."""
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
        return jwt.encode(body, self._secret, algorithm=ALGORITHM), claims

    def read(self, token: str) -> SessionClaims:
        """Return the claims of a token; raise unauthenticated unless the signature and expiry are valid.

        The caller checks revocation, user and token version.
        """
        if len(token) > MAX_TOKEN_CHARACTERS or not token.isascii() or token.count(".") != 2:
            raise _refused()
        if token.partition(".")[0] != _HEADER:
            raise _refused()
        try:
            body = jwt.decode(token, self._secret, algorithms=["HS256"], options=_OPTIONS)
        except (JOSEError, json.JSONDecodeError):
            raise _refused() from None
        return self._checked(body)

    async def is_revoked(self, claims: SessionClaims) -> bool:
        """Tell whether the session was revoked."""
        return await self._revocations.contains(claims.jti)

    async def revoke(self, claims: SessionClaims) -> None:
        """Revoke a session at once; idempotent."""
        await self._revocations.add(claims.jti, claims.user_id, claims.expires_at)
        self._changes.publish(AccountChange(claims.user_id, asks_again=True))

    async def prune(self) -> int:
        """Delete revocations of expired tokens; return how many."""
        return await self._revocations.prune(self._prune_clock() - LEEWAY_SECONDS)

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


def _refused() -> GatewayError:
    return GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the session: the token is not valid")
