"""Routes of sign-in by identity providers, with the addresses of Open WebUI (gatewayd-signin(7))."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qs

from aiohttp import hdrs, web

from gatewayd import ids
from gatewayd.accounts.attempts import AttemptCounter, AttemptLimit, network_of
from gatewayd.accounts.identity.attempts import LIFE_SECONDS, cookie_name, is_attempt_cookie, safe_path
from gatewayd.accounts.identity.external_accounts import ExternalAccounts, refuse
from gatewayd.accounts.identity.identity_links import IdentityLinks
from gatewayd.accounts.identity.provider_login import CallbackParams, ProviderLogin, ProviderSession
from gatewayd.accounts.identity.provider_logout import ProviderLogout
from gatewayd.accounts.identity.records import RefusalCode
from gatewayd.accounts.identity.token_exchange import TokenExchange
from gatewayd.accounts.records import Actor, CredentialKind, SessionOrigin, SignInMethod
from gatewayd.accounts.sessions import Sessions
from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found, shorten
from gatewayd.http.audit import audit_session, note_change
from gatewayd.http.body import RequestBody, read_bytes, read_model
from gatewayd.http.context import base_url, client_address, find_actor
from gatewayd.http.origins import FETCH_SITE
from gatewayd.http.public.accounts.session_replies import NO_STORE, SessionReplies
from gatewayd.http.reply_schemas import accounts
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import ANY_MEDIA_TYPE, answers

log = logging.getLogger(__name__)

URL_ENCODED: Final = ("application/x-www-form-urlencoded",)
MAX_LOGOUT_BYTES: Final = 128 * 1024
EXCHANGES: Final = AttemptLimit(60, 180)
"""Token exchanges from one network, and seconds."""

BAD_LOGOUT: Final = "invalid_request"
"""Code of a refused logout token (OpenID Connect Back-Channel Logout 1.0, 2.8)."""

FAILURE_PATH: Final = "/auth"
LINK_PATH: Final = "/settings/account"
REFUSALS: Final = frozenset(RefusalCode)
LOGIN_QUERY: Final = {
    "redirect": "Path of the page to return to.",
    "link": "true links the provider to the account that is signed in.",
}
CALLBACK_QUERY: Final = {
    "code": "Authorization code.",
    "state": "State of the attempt.",
    "iss": "Issuer of the answer (RFC 9207).",
    "error": "Code of a refusal of the provider.",
    "error_description": "Its text, which only the log has.",
}


class ExchangeBody(RequestBody):
    """An access token of the provider."""

    token: str


@dataclass(frozen=True, slots=True)
class OAuthServices:
    """The services of sign-in by providers; `site_url` is the address of the gateway, "" if unknown."""

    login: ProviderLogin
    logout: ProviderLogout
    exchange: TokenExchange
    external: ExternalAccounts
    links: IdentityLinks
    sessions: Sessions
    site_url: Callable[[], str]
    accepts_logout: Callable[[], bool]


class OAuthRoutes:
    """Routes of sign-in by identity providers."""

    def __init__(self, services: OAuthServices, replies: SessionReplies) -> None:
        self._services = services
        self._replies = replies
        self._exchanges = AttemptCounter(EXCHANGES, ids.steady_clock())

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        public, optional = RouteAccess.PUBLIC, RouteAccess.OPTIONAL
        login = Route(
            "GET", "/oauth/{provider}/login", self.begin, optional, "Sign in by a provider", tag="auths"
        )
        done = Route(
            "GET", "/oauth/{provider}/callback", self.finish, optional, "End of a sign-in", tag="auths"
        )
        logout = Route(
            "POST",
            "/oauth/backchannel-logout",
            self.end_sessions,
            public,
            "End sessions for a provider",
            tag="auths",
            takes=URL_ENCODED,
        )
        exchange = Route(
            "POST",
            "/api/v1/auths/oauth/{provider}/token/exchange",
            self.trade,
            public,
            "Exchange an access token for a session",
            request=ExchangeBody,
            tag="auths",
        )
        return [
            replace(login, statuses=(302,)),
            replace(done, statuses=(302,), writes=True),
            replace(done, path="/oauth/{provider}/login/callback", statuses=(302,), writes=True),
            logout,
            exchange,
            replace(exchange, path="/api/v1/oauth/{provider}/token/exchange"),
        ]

    @answers(None, ANY_MEDIA_TYPE, query=LOGIN_QUERY)
    async def begin(self, request: web.Request) -> web.StreamResponse:
        """Answer 302 to the provider, with the cookie of an attempt that lasts ten minutes.

        404 for an unknown provider. With `link=true` the request must come from a page of the gateway, in a
        session that began or was confirmed at most ten minutes ago. A refusal is a redirect to
        `/auth?error=CODE`, or `/settings/account?error=CODE` for a link.
        """
        name, login = request.match_info["provider"], self._services.login
        login.get(name)
        is_link = request.query.get("link") == "true"
        default = LINK_PATH if is_link else "/"
        path = safe_path(request.query.get("redirect", default))
        try:
            user_id = (await self._linking_actor(request)).user_id if is_link else ""
            url, attempt, cookie = await login.begin(
                name, self._redirect_uri(request, name), return_path=path, user_id=user_id
            )
        except GatewayError as error:
            return self._refused(request, error, LINK_PATH if is_link else FAILURE_PATH)
        reply = web.Response(status=302, headers={hdrs.LOCATION: url, **NO_STORE})
        is_secure = attempt.is_secure
        kept = {key: value for key, value in request.cookies.items() if is_attempt_cookie(key)}
        for surplus in login.surplus(kept):
            _delete(reply, surplus)
        reply.set_cookie(
            cookie_name(attempt.state, is_secure=is_secure),
            cookie,
            max_age=LIFE_SECONDS,
            path="/",
            httponly=True,
            secure=is_secure,
            samesite="Lax",
        )
        return reply

    @answers(None, ANY_MEDIA_TYPE, query=CALLBACK_QUERY)
    async def finish(self, request: web.Request) -> web.StreamResponse:
        """Answer 302 to the page, with the cookie of a session.

        404 for an unknown provider. A refusal is a redirect to `/auth?error=CODE`; the codes are in
        gatewayd-signin(7), REFUSALS.
        """
        name, login = request.match_info["provider"], self._services.login
        login.get(name)
        params = CallbackParams(
            *(request.query.get(key, "") for key in ("state", "code", "iss", "error", "error_description"))
        )
        cookies = [cookie_name(params.state, is_secure=is_secure) for is_secure in (True, False)]
        failure = FAILURE_PATH
        try:
            found = await login.complete(name, request.cookies, params)
            if found.attempt.user_id:
                failure = LINK_PATH
                reply = await self._link(request, found)
            else:
                reply = await self._sign_in(request, found)
        except GatewayError as error:
            reply = self._refused(request, error, failure)
        for each in cookies:
            if each in request.cookies:
                _delete(reply, each)
        return reply

    @answers(None, ANY_MEDIA_TYPE)
    async def end_sessions(self, request: web.Request) -> web.StreamResponse:
        """Form with `logout_token`: end the sessions that it names (OpenID Connect Back-Channel Logout 1.0).

        200 also for an unknown person; 400 (code invalid_request) for a token that is not valid or was used
        before; 404 if enable_oauth_backchannel_logout is off.
        """
        if not self._services.accepts_logout():
            raise not_found("route", request.path)
        sent = await read_bytes(request, MAX_LOGOUT_BYTES)
        try:
            token = parse_qs(bytes(sent).decode(), max_num_fields=10).get("logout_token", [""])
            if len(token) != 1:
                raise refuse(RefusalCode.PROVIDER, "there are several logout tokens")
            provider, ended = await self._services.logout.end_by_token(token[0])
        except ValueError as error:
            raise invalid("cannot read the form", param="logout_token", code=BAD_LOGOUT) from error
        except GatewayError as error:
            if error.kind is not ErrorKind.FORBIDDEN:
                raise
            audit_session(request, "sign-out by a provider refused", "", refused=error.message)
            raise invalid("cannot accept the logout token", param="logout_token", code=BAD_LOGOUT) from error
        audit_session(request, "sign-out by a provider", "", provider=provider, ended=str(ended))
        return web.Response(headers=NO_STORE)

    @answers(accounts.session)
    async def trade(self, request: web.Request) -> web.StreamResponse:
        """`{"token"}`: an access token of a listed client -> Session of the person, who must have an account.

        404 if the exchange is off, 403 for another token, 429 after too many.
        """
        name = request.match_info["provider"]
        form = await read_model(request, ExchangeBody)
        options = self._services.exchange.get(name)
        network = network_of(client_address(request))
        if wait := self._exchanges.wait(network):
            raise GatewayError(
                ErrorKind.RATE_LIMITED, "cannot exchange the token now: too many", retry_after=wait
            )
        self._exchanges.add(network)
        try:
            identity = await self._services.exchange.identify(name, form.token)
            rules = replace(options.rules, sign_up=False, merge_by_email=False)
            found = await self._services.external.resolve(identity, rules)
        except GatewayError as error:
            audit_session(request, "token exchange refused", name, refused=error.message)
            raise
        audit_session(request, "token exchange", found.user.email, provider=name)
        return await self._replies.open(request, found.user, SessionOrigin(SignInMethod.OAUTH, name))

    async def _sign_in(self, request: web.Request, found: ProviderSession) -> web.Response:
        services, name = self._services, found.identity.provider
        rules = services.login.get(name).rules
        known = await services.external.resolve(found.identity, rules)
        await services.links.keep_tokens(known.user.id, name, found.tokens)
        audit_session(
            request,
            "sign-in",
            known.user.email,
            provider=name,
            outcome=known.outcome.value,
            **({"changes": shorten(", ".join(known.changes), 1000)} if known.changes else {}),
        )
        origin = SessionOrigin(SignInMethod.OAUTH, name, found.session_id)
        attempt = found.attempt
        return await self._replies.redirect(
            request, known.user, origin, attempt.return_path, is_secure=attempt.is_secure
        )

    async def _link(self, request: web.Request, found: ProviderSession) -> web.Response:
        caller, services = find_actor(request), self._services
        if caller is None or caller.user_id != found.attempt.user_id or not caller.is_verified:
            raise refuse(RefusalCode.STATE, "the account that began the link is not signed in")
        link = await services.external.link(caller.user_id, found.identity)
        await services.links.keep_tokens(caller.user_id, link.provider, found.tokens)
        note_change(
            request, caller.user.email, {"provider": link.provider, "linked": link.email or link.subject}
        )
        return web.Response(status=302, headers={hdrs.LOCATION: found.attempt.return_path, **NO_STORE})

    async def _linking_actor(self, request: web.Request) -> Actor:
        """Return the account that a link is for.

        A page of another site must not begin it, nor an address in a message, for which a browser sends
        "none": the person may be signed in there as somebody else.
        """
        caller = find_actor(request)
        if caller is None or caller.kind is not CredentialKind.SESSION or caller.jti is None:
            raise refuse(RefusalCode.STATE, "a link needs a session")
        if request.headers.get(FETCH_SITE) != "same-origin":
            raise refuse(RefusalCode.STATE, "a link must begin on a page of the gateway, by HTTPS or locally")
        if not await self._services.sessions.is_fresh(caller.jti):
            raise refuse(RefusalCode.STATE, "the session was not confirmed in the last minutes")
        return caller

    def _redirect_uri(self, request: web.Request, name: str) -> str:
        site = self._services.site_url().rstrip("/") or base_url(request)
        return f"{site}/oauth/{name}/callback"

    def _refused(self, request: web.Request, error: GatewayError, path: str) -> web.Response:
        """Answer a refusal with its code alone; other failures are raised."""
        code = error.code if error.code in REFUSALS else None
        if error.kind is ErrorKind.CONFLICT:
            code = RefusalCode.EMAIL_TAKEN
        if error.kind is ErrorKind.UNAVAILABLE:
            # A browser that is on its way back would show an error of the API as it is.
            code = RefusalCode.UNAVAILABLE
        if code is None:
            raise error
        name = request.match_info["provider"]
        audit_session(request, "sign-in refused", name, code=code, refused=error.message)
        return web.Response(status=302, headers={hdrs.LOCATION: f"{path}?error={code}", **NO_STORE})


def _delete(reply: web.Response, name: str) -> None:
    """Delete the cookie of an attempt; a name with __Host- can only be set by a secure cookie."""
    is_secure = name.startswith("__Host-")
    reply.del_cookie(name, path="/", httponly=True, secure=is_secure, samesite="Lax")
