"""Routes of `/v1/users/{ref}/identities`: the identity providers of a user."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import users as wire
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.identity.identity_links import IdentityLinks
from gatewayd.accounts.identity.records import LinkedIdentity
from gatewayd.accounts.sessions import Sessions
from gatewayd.accounts.users import Users
from gatewayd.http.audit import note_change
from gatewayd.http.control.accounts.users import render_all
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply, timestamp
from gatewayd.http.routes import Route


class ControlIdentityRoutes:
    """Routes of identities on the control socket."""

    def __init__(
        self,
        links: IdentityLinks,
        sessions: Sessions,
        users: Users,
        groups: Groups,
        writes: WriteTransactions,
    ) -> None:
        self._links = links
        self._sessions = sessions
        self._users = users
        self._groups = groups
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [serve(routes.LIST_IDENTITIES, self.list), serve(routes.REMOVE_IDENTITY, self.remove)]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `IdentityList` for a user."""
        user = await self._users.resolve(request.match_info["ref"])
        found = [each.link for each in await self._links.list(user.id) if each.link is not None]
        return control_reply(wire.IdentityList(identities=[render(link) for link in found]))

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Unlink a user from a provider, end the sessions that began there, and answer `UserWritten`."""
        ref, provider = request.match_info["ref"], request.match_info["provider"]
        async with self._writes.block(request, "user remove-identity", ref) as dry_run:
            user = await self._users.resolve(ref)
            removed = await self._links.remove(user.id, provider, is_operator=True)
            ended = await self._sessions.end_of_provider(provider, user_id=user.id)
            values = {"provider": provider, "unlinked": removed.person, "ended": ended}
            note_change(request, user.email, values)
            after = await self._users.get(user.id)
            row = (await render_all([after], self._users, self._groups))[0]
            reply = control_reply(
                wire.UserWritten(**row.model_dump(), outcome=Outcome.CHANGED, dry_run=dry_run)
            )
        if not dry_run:
            await self._links.revoke(removed)
        return reply


def render(link: LinkedIdentity) -> wire.UserIdentity:
    """Return a link as its wire model."""
    return wire.UserIdentity(
        provider=link.provider,
        issuer=link.issuer,
        subject=link.subject,
        provisioning_id=link.provisioning_id,
        email=link.email,
        linked_at=timestamp(link.linked_at),
        used_at=timestamp(link.used_at),
    )
