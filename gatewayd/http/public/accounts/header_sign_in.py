"""Sign-in by the headers of a trusted proxy, at the route of the sign-in with a password."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from gatewayd.accounts.identity.records import ExternalIdentity, IdentityRules, ResolvedAccount
from gatewayd.accounts.records import SignInMethod, User
from gatewayd.errors import GatewayError
from gatewayd.http.audit import audit_session
from gatewayd.http.trusted_headers import TrustedHeaders

Resolve = Callable[[ExternalIdentity, IdentityRules], Awaitable[ResolvedAccount]]


class HeaderSignIn:
    """Finds or creates the account of the person whom a proxy asserts."""

    def __init__(self, headers: TrustedHeaders, resolve: Resolve) -> None:
        self._headers = headers
        self._resolve = resolve

    async def sign_in(self, request: web.Request) -> User | None:
        """Return the account, None for a request without the header of a trusted proxy.

        Raises as `TrustedHeaders.find_identity` and `ExternalAccounts.resolve`.
        """
        identity = self._headers.find_identity(request)
        if identity is None:
            return None
        try:
            found = await self._resolve(identity, self._headers.rules(identity))
        except GatewayError as error:
            audit_session(
                request,
                "sign-in refused",
                identity.email,
                refused=error.message,
                method=SignInMethod.HEADER.value,
            )
            raise
        audit_session(
            request,
            "sign-in",
            found.user.email,
            method=SignInMethod.HEADER.value,
            outcome=found.outcome.value,
            changes=", ".join(found.changes),
        )
        return found.user
