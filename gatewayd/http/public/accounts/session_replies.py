"""Session replies: a token, its account and its cookie."""

from dataclasses import dataclass, replace
from typing import Any, Final

from aiohttp import hdrs, web

from gatewayd.accounts.devices import LIFE_SECONDS
from gatewayd.accounts.key_rules import KeyRules
from gatewayd.accounts.records import (
    Actor,
    CredentialKind,
    PermissionTree,
    SessionClaims,
    SessionOrigin,
    User,
)
from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.accounts.sessions import Sessions
from gatewayd.http.body import json_reply
from gatewayd.http.context import base_url, client_address
from gatewayd.http.origins import FETCH_SITE
from gatewayd.http.public.accounts.serializers import render_account

DEVICE_COOKIE: Final = "gatewayd_device"
DEVICE_PATH: Final = "/api/v1/auths/signin"
NO_STORE = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class CookieOptions:
    """Attributes of the session cookie; `secure` sets Secure also for a request by plain HTTP."""

    name: str = "token"
    same_site: str = "lax"
    secure: bool = False


class SessionReplies:
    """Replies that open, show and end sessions.

    A Session body: `{"token", "token_type": "Bearer", "expires_at", "id", "email", "name", "role",
    "profile_image_url", "permissions"}`.
    """

    def __init__(
        self, sessions: Sessions, rules: KeyRules, runtime: RuntimeSettings, cookie: CookieOptions
    ) -> None:
        self._sessions = sessions
        self._rules = rules
        self._runtime = runtime
        self._cookie = cookie

    async def open(self, request: web.Request, user: User, origin: SessionOrigin) -> web.Response:
        """Answer a new session of the user, with its cookie.

        The session has the address and the user agent of the request. A session that a browser sent with the
        request ends (ASVS 5.0, 7.2.4).
        """
        rights = await self._rules.rights(user)
        token, claims = await self._begin(request, user, origin)
        await self._end_former(request)
        reply = json_reply(_body(user, token, claims.expires_at, rights.permissions), headers=NO_STORE)
        self._set(request, reply, token, claims.expires_at - claims.issued_at)
        return reply

    async def redirect(
        self, request: web.Request, user: User, origin: SessionOrigin, location: str, *, is_secure: bool
    ) -> web.Response:
        """Answer 302 to `location` with the cookie of a new session, as `open` makes it.

        A GET has no Origin: with `is_secure` the browser has come by HTTPS.
        """
        token, claims = await self._begin(request, user, origin)
        await self._end_former(request)
        reply = web.Response(status=302, headers={hdrs.LOCATION: location, **NO_STORE})
        self._set(request, reply, token, claims.expires_at - claims.issued_at, is_secure=is_secure)
        return reply

    async def _begin(
        self, request: web.Request, user: User, origin: SessionOrigin, until: int | None = None
    ) -> tuple[str, SessionClaims]:
        return await self._sessions.issue(
            user, self._runtime.session_seconds(), _with_client(request, origin), until
        )

    async def _end_former(self, request: web.Request) -> None:
        """End the session of the cookie. Programs may keep several sessions in one store of cookies; only
        browsers send Origin or Sec-Fetch-Site."""
        cookie = request.cookies.get(self._cookie.name, "")
        if not cookie or not (hdrs.ORIGIN in request.headers or FETCH_SITE in request.headers):
            return
        claims = self._sessions.find_claims(cookie)
        if claims is not None:
            await self._sessions.revoke(claims)

    def set_device_cookie(
        self, request: web.Request, reply: web.Response, value: str, path: str = DEVICE_PATH
    ) -> None:
        """Add the device cookie to a reply, with the path of the sign-in and a life of `LIFE_SECONDS`."""
        reply.set_cookie(
            DEVICE_COOKIE,
            value,
            max_age=LIFE_SECONDS,
            path=path,
            httponly=True,
            secure=self._is_secure(request),
            samesite="Strict",
        )

    async def issue(self, request: web.Request, user: User, origin: SessionOrigin, until: int | None) -> str:
        """Return a token for the user, without a cookie; `until` is the expiry of the credential of the
        request."""
        return (await self._begin(request, user, origin, until))[0]

    def show(
        self, request: web.Request, caller: Actor, credential: str, more: dict[str, Any]
    ) -> web.Response:
        """Answer the session or key of the request.

        A session gets its cookie unless the browser has it: a GET does not show whether it came by HTTPS, and
        would replace a Secure cookie by an insecure one.
        """
        is_session = caller.kind is CredentialKind.SESSION
        expires_at = caller.expires_at if is_session else None
        body = _body(caller.user, credential, expires_at, caller.permissions)
        reply = json_reply({**body, **more}, headers=NO_STORE)
        if is_session and request.cookies.get(self._cookie.name) != credential:
            claims = self._sessions.read(credential)
            self._set(request, reply, credential, claims.expires_at - claims.issued_at)
        return reply

    async def close(
        self, request: web.Request, caller: Actor | None, credential: str, more: dict[str, Any]
    ) -> web.Response:
        """Answer `{"status": true}` and `more`, with the session revoked and the cookie deleted."""
        if caller is not None and caller.kind is CredentialKind.SESSION:
            await self._sessions.revoke(self._sessions.read(credential))
        reply = json_reply({"status": True, **more})
        reply.del_cookie(
            self._cookie.name,
            path="/",
            httponly=True,
            secure=self._is_secure(request),
            samesite=self._cookie.same_site,
        )
        return reply

    def _is_secure(self, request: web.Request) -> bool:
        """Return whether a cookie is Secure: by the setting, or for a request by HTTPS."""
        origin = request.headers.get(hdrs.ORIGIN, "")
        return self._cookie.secure or origin.startswith("https:") or base_url(request).startswith("https:")

    def _set(
        self, request: web.Request, reply: web.Response, token: str, seconds: int, *, is_secure: bool = False
    ) -> None:
        reply.set_cookie(
            self._cookie.name,
            token,
            max_age=seconds,
            path="/",
            httponly=True,
            secure=is_secure or self._is_secure(request),
            samesite=self._cookie.same_site,
        )


def _with_client(request: web.Request, origin: SessionOrigin) -> SessionOrigin:
    user_agent = request.headers.get(hdrs.USER_AGENT, "")
    return replace(origin, user_agent=user_agent, address=client_address(request))


def _body(user: User, token: str, expires_at: int | None, permissions: PermissionTree) -> dict[str, Any]:
    return {
        "token": token,
        "token_type": "Bearer",
        "expires_at": expires_at,
        **render_account(user),
        "permissions": permissions,
    }
