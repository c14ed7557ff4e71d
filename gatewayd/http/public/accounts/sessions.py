"""Routes of sessions: those of the caller, and those of any account for administrators."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from gatewayd.accounts.records import Actor, CredentialKind, StoredSession
from gatewayd.accounts.sessions import Sessions
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.audit import note_change
from gatewayd.http.body import json_reply
from gatewayd.http.context import actor
from gatewayd.http.public.accounts.session_replies import NO_STORE
from gatewayd.http.public.query_parameters import PAGE_QUERY, parse_page
from gatewayd.http.reply_schemas import accounts
from gatewayd.http.routes import Route, RouteAccess
from gatewayd.http.schemas import TRUE, answers, listed

OWN_PREFIX = "/api/v1/auths/sessions"
PAGE_SIZE = 60
USER_PATH = "/api/v1/users/{id}/sessions"


class SessionRoutes:
    """Routes that list and end sessions."""

    def __init__(self, sessions: Sessions, users: Users) -> None:
        self._sessions = sessions
        self._users = users

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        own, admin = RouteAccess.ACCOUNT, RouteAccess.ADMIN
        return [
            Route("GET", OWN_PREFIX, self.list, own, "List the caller's sessions", tag="sessions"),
            Route(
                "POST",
                f"{OWN_PREFIX}/end_others",
                self.end_others,
                own,
                "End the other sessions of the caller",
                tag="sessions",
            ),
            Route("DELETE", f"{OWN_PREFIX}/{{id}}", self.end, own, "End a session", tag="sessions"),
            Route("GET", USER_PATH, self.list_of_user, admin, "List the sessions of an account", tag="users"),
            Route(
                "DELETE", USER_PATH, self.end_of_user, admin, "End every session of an account", tag="users"
            ),
        ]

    @answers(listed(accounts.listed_session), query=PAGE_QUERY)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer the sessions that are valid, newest first; `current` is true for that of the request.

        All, which are 200 at most, or 60 of them with `?page=`.
        """
        return _listing(request, await self._sessions.list(actor(request).user_id))

    @answers(TRUE)
    async def end(self, request: web.Request) -> web.StreamResponse:
        """End one session of the caller at once, and answer true; 404 for others, 403 for a request with a
        key."""
        caller = _session_actor(request)
        session = await self._sessions.end(caller.user_id, request.match_info["id"])
        note_change(request, caller.user.email, _audited(session))
        return json_reply(data=True)

    @answers(accounts.ended_sessions)
    async def end_others(self, request: web.Request) -> web.StreamResponse:
        """End all listed sessions of the caller but that of the request, and answer `{"ended"}`; 403 for a
        request with a key."""
        caller = _session_actor(request)
        ended = await self._sessions.end_others(caller.user_id, caller.jti)
        note_change(request, caller.user.email, {"ended": ended})
        return json_reply({"ended": ended})

    @answers(listed(accounts.listed_session), query=PAGE_QUERY)
    async def list_of_user(self, request: web.Request) -> web.StreamResponse:
        """Answer the valid sessions of an account, newest first; 60 of them with `?page=`."""
        user = await self._users.get(request.match_info["id"])
        return _listing(request, await self._sessions.list(user.id))

    @answers(TRUE)
    async def end_of_user(self, request: web.Request) -> web.StreamResponse:
        """End every session of an account at once, and answer true; its keys stay valid."""
        user = await self._users.end_sessions(request.match_info["id"])
        note_change(request, user.email, {"ended": "every session"})
        return json_reply(data=True)


def render_session(session: StoredSession, current: str | None) -> dict[str, Any]:
    """Return a session as JSON; `current` is the id of the session of the request."""
    return {
        "id": session.id,
        "created_at": session.created_at,
        "last_seen_at": session.last_seen_at,
        "expires_at": session.expires_at,
        "user_agent": session.origin.user_agent,
        "address": session.origin.address,
        "method": session.origin.method.value,
        "provider": session.origin.provider,
        "current": session.id == current,
    }


def _listing(request: web.Request, sessions: Sequence[StoredSession]) -> web.Response:
    current = actor(request).jti
    if "page" in request.query:
        offset, limit = parse_page(request.query, PAGE_SIZE)
        sessions = sessions[offset : offset + limit]
    return json_reply([render_session(session, current) for session in sessions], headers=NO_STORE)


def _audited(session: StoredSession) -> dict[str, Any]:
    origin = session.origin
    return {"session": session.id, "method": origin.method.value, "address": origin.address}


def _session_actor(request: web.Request) -> Actor:
    caller = actor(request)
    if caller.kind is not CredentialKind.SESSION:
        raise GatewayError(ErrorKind.FORBIDDEN, "cannot end sessions with an API key: sign in")
    return caller
