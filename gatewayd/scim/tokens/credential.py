"""Check of the SCIM token, the only credential of provisioning and valid for nothing else.

See gatewayd-scim(7), Token.
"""

import hmac
from collections.abc import Sequence

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError


class ScimTokens:
    """Holds the digests of the valid tokens; while SCIM is off, no token is valid."""

    def __init__(self, enabled: bool, tokens: Sequence[str]) -> None:
        self._digests: tuple[str, ...] = ()
        self.replace(enabled, [ids.digest(token) for token in tokens if token])

    @property
    def enabled(self) -> bool:
        """Whether SCIM is on."""
        return self._enabled

    def replace(self, enabled: bool, digests: Sequence[str]) -> None:
        """Replace the SHA-256 of the valid tokens; none is valid while SCIM is not enabled."""
        self._enabled = enabled
        self._digests = tuple(digests)

    def check(self, token: str) -> None:
        """Raise unauthenticated unless a token is valid."""
        if not self._enabled:
            raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the request: SCIM is not enabled")
        # Every token is compared, so that the time reveals nothing.
        digest = ids.digest(token)
        fitting = [hmac.compare_digest(digest, known) for known in self._digests]
        if not any(fitting):
            raise GatewayError(ErrorKind.UNAUTHENTICATED, "cannot accept the SCIM token: it is not valid")
