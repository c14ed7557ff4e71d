"""Changes that need a fresh session: one that began, or was confirmed by the password, a short time ago."""

from typing import Final

from gatewayd.accounts.records import Actor, CredentialKind
from gatewayd.accounts.sessions import Sessions
from gatewayd.errors import ErrorKind, GatewayError

UNCONFIRMED: Final = "confirmation_needed"
"""Error code on which a client asks for the password, sends it to /api/v1/auths/confirm, and tries again."""


async def check_confirmed(sessions: Sessions, caller: Actor, what: str) -> None:
    """Raise forbidden (code `confirmation_needed`) unless the caller has a fresh session (ASVS 5.0, 7.5.1).

    `what` completes "cannot ...". An API key is never enough.
    """
    is_session = caller.kind is CredentialKind.SESSION and caller.jti is not None
    if not is_session or not await sessions.is_fresh(caller.jti or ""):
        raise GatewayError(
            ErrorKind.FORBIDDEN,
            f"cannot {what}: confirm the session first, or sign in again",
            code=UNCONFIRMED,
        )
