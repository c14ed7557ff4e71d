"""Route of the sign-in by a directory."""

from collections.abc import Sequence

from aiohttp import web

from gatewayd.accounts.directory.sign_in import PROVIDER, DirectorySignIn
from gatewayd.accounts.records import SessionOrigin, SignInMethod
from gatewayd.accounts.sign_in import SignInClient
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.audit import audit_session
from gatewayd.http.body import RequestBody, read_model
from gatewayd.http.context import client_address
from gatewayd.http.public.accounts.session_replies import DEVICE_COOKIE, SessionReplies
from gatewayd.http.reply_schemas import accounts
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import answers

PATH = "/api/v1/auths/ldap"


class DirectorySignInBody(RequestBody):
    """User name and password of a directory."""

    user: str
    password: str


class DirectoryRoutes:
    """Route of the sign-in by a directory; `directory` is None if there is none."""

    def __init__(self, directory: DirectorySignIn | None, replies: SessionReplies) -> None:
        self._directory = directory
        self._replies = replies

    def routes(self) -> Sequence[Route]:
        """Return the row."""
        return [
            Route(
                "POST",
                PATH,
                self.signin,
                RouteAccess.PUBLIC,
                "Sign in with a directory",
                request=DirectorySignInBody,
                tag="auths",
            )
        ]

    @answers(accounts.session)
    async def signin(self, request: web.Request) -> web.StreamResponse:
        """`{"user", "password"}` -> Session and cookie.

        400 for a wrong name or password, 403 with a code if the person may not have an account, 429 after too
        many attempts, 503 without an answer of the directory, 403 without a directory.
        """
        form = await read_model(request, DirectorySignInBody)
        if self._directory is None:
            raise GatewayError(
                ErrorKind.FORBIDDEN, "cannot sign in: LDAP is switched off (setting ENABLE_LDAP)"
            )
        client = SignInClient(client_address(request), request.cookies.get(DEVICE_COOKIE, ""))
        try:
            found = await self._directory.sign_in(form.user, form.password, client)
        except GatewayError as error:
            audit_session(request, "sign-in refused", form.user, refused=error.message, method=PROVIDER)
            raise
        audit_session(
            request,
            "sign-in",
            found.user.email,
            method=PROVIDER,
            outcome=found.outcome.value,
            changes=", ".join(found.changes),
        )
        reply = await self._replies.open(
            request, found.user, SessionOrigin(SignInMethod.LDAP, provider=PROVIDER)
        )
        cookie = self._directory.issue_device_cookie(form.user)
        self._replies.set_device_cookie(request, reply, cookie, PATH)
        return reply
