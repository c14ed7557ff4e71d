"""Routes of `/v1/users/{ref}/sessions`: the sessions of a user."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import users as wire
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.records import StoredSession
from gatewayd.accounts.sessions import Sessions
from gatewayd.accounts.users import Users
from gatewayd.http.audit import note_change
from gatewayd.http.control.accounts.users import render_all
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply, timestamp
from gatewayd.http.routes import Route


class ControlSessionRoutes:
    """Routes of sessions on the control socket."""

    def __init__(self, sessions: Sessions, users: Users, groups: Groups, writes: WriteTransactions) -> None:
        self._sessions = sessions
        self._users = users
        self._groups = groups
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [serve(routes.LIST_SESSIONS, self.list), serve(routes.END_SESSIONS, self.end)]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `SessionList` for a user."""
        user = await self._users.resolve(request.match_info["ref"])
        found = await self._sessions.list(user.id)
        return control_reply(wire.SessionList(sessions=[render(session) for session in found]))

    async def end(self, request: web.Request) -> web.StreamResponse:
        """End every session of a user and answer `UserWritten`."""
        async with self._writes.block(request, "user end-sessions", request.match_info["ref"]) as dry_run:
            found = await self._users.resolve(request.match_info["ref"])
            user = await self._users.end_sessions(found.id)
            note_change(request, user.email, {"ended": "every session"})
            row = (await render_all([user], self._users, self._groups))[0]
            return control_reply(
                wire.UserWritten(**row.model_dump(), outcome=Outcome.CHANGED, dry_run=dry_run)
            )


def render(session: StoredSession) -> wire.UserSession:
    """Return a session as its wire model."""
    return wire.UserSession(
        id=session.id,
        method=session.origin.method.value,
        provider=session.origin.provider,
        address=session.origin.address,
        user_agent=session.origin.user_agent,
        created_at=timestamp(session.created_at),
        last_seen_at=timestamp(session.last_seen_at),
        expires_at=timestamp(session.expires_at),
    )
