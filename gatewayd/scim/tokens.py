"""The SCIM token: the only credential of provisioning, which opens nothing else (5.3)."""

import hmac
from collections.abc import Sequence

from gatewayd import ids
from gatewayd.errors import GatewayError, Kind


class ScimTokens:
    """Knows the tokens that are valid, by their digests; while SCIM is off none is."""

    def __init__(self, enabled: bool, tokens: Sequence[str]) -> None:
        self._digests: tuple[str, ...] = ()
        self.replace(enabled, tokens)

    @property
    def enabled(self) -> bool:
        """Whether SCIM is on."""
        return self._enabled

    def replace(self, enabled: bool, tokens: Sequence[str]) -> None:
        """Accept these tokens from now on, and none while SCIM is not enabled."""
        self._enabled = enabled
        self._digests = tuple(ids.digest(token) for token in tokens if token)

    def check(self, authorization: str | None) -> None:
        """Return when the header `Authorization` has a valid token, else raise unauthenticated."""
        if not authorization:
            raise _refused("cannot accept the request: the header Authorization is required")
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if not token or any(character.isspace() for character in token):
            raise _refused("cannot accept the header Authorization: expected Bearer <token>")
        if scheme.lower() != "bearer":
            raise _refused("cannot accept the header Authorization: its scheme is not Bearer")
        if not self._enabled:
            raise _refused("cannot accept the request: SCIM is not enabled")
        # Every token is compared, so that the time tells nothing.
        digest = ids.digest(token)
        fitting = [hmac.compare_digest(digest, known) for known in self._digests]
        if not any(fitting):
            raise _refused("cannot accept the SCIM token: it is not valid")


def _refused(message: str) -> GatewayError:
    return GatewayError(Kind.UNAUTHENTICATED, message)
