"""Routes of `/v1/invitations` and `/v1/users/{ref}/sign-in-link`."""

from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from gatewayctl.wire import invitations as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.links.invitations import Invitations
from gatewayd.accounts.links.records import NewInvitation, OneTimeLink
from gatewayd.accounts.links.sign_in_links import SignInLinks
from gatewayd.accounts.records import Role
from gatewayd.accounts.users import Users
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, author, control_reply, timestamp
from gatewayd.http.public.accounts.invitations import audited_invitation, link_address
from gatewayd.http.routes import Route


class ControlInvitationRoutes:
    """Routes of invitations and sign-in links on the control socket; `site_url` returns the address of the
    page."""

    def __init__(
        self,
        invitations: Invitations,
        links: SignInLinks,
        users: Users,
        groups: Groups,
        writes: WriteTransactions,
        site_url: Callable[[], str],
    ) -> None:
        self._invitations = invitations
        self._links = links
        self._users = users
        self._groups = groups
        self._writes = writes
        self._site_url = site_url

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_INVITATIONS, self.list),
            serve(routes.CREATE_INVITATION, self.create),
            serve(routes.REVOKE_INVITATION, self.revoke),
            serve(routes.CREATE_SIGN_IN_LINK, self.link),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `InvitationList`."""
        names = await self._group_names()
        found = [_render(link, names) for link in await self._invitations.list()]
        return control_reply(wire.InvitationList(invitations=found))

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Take `NewInvitation`, answer `InvitationWritten` with the address."""
        wanted = await read_model(request, wire.NewInvitation)
        chosen: dict[str, Any] = {}
        if wanted.role is not None:
            chosen["role"] = Role(wanted.role)
        if wanted.expires_in is not None:
            chosen["lifetime_seconds"] = wanted.expires_in
        async with self._writes.block(request, "user invite", wanted.email) as dry_run:
            groups = [await self._groups.resolve(ref) for ref in wanted.groups]
            new = NewInvitation(wanted.email, group_ids=tuple(group.id for group in groups), **chosen)
            link, token = await self._invitations.create(new, author(request))
            note_change(request, link.email, audited_invitation(link))
        address = None if dry_run else link_address(self._site_url(), "invitation", token)
        return await self._written(link, Outcome.CREATED, dry_run=dry_run, address=address)

    async def revoke(self, request: web.Request) -> web.StreamResponse:
        """Answer `InvitationWritten` with the invitation before its revocation."""
        link_id = request.match_info["id"]
        async with self._writes.block(request, "invitation revoke", link_id) as dry_run:
            link = await self._invitations.revoke(link_id)
            note_change(request, link.email or link.id, {"id": link.id})
        return await self._written(link, Outcome.REMOVED, dry_run=dry_run)

    async def link(self, request: web.Request) -> web.StreamResponse:
        """Take `NewSignInLink`, answer `SignInAddress`."""
        wanted = await read_model(request, wire.NewSignInLink)
        chosen = {} if wanted.expires_in is None else {"lifetime_seconds": wanted.expires_in}
        async with self._writes.block(request, "user sign-in-link", request.match_info["ref"]):
            user = await self._users.resolve(request.match_info["ref"])
            link, token = await self._links.create(user, author(request), **chosen)
            note_change(request, user.email, {"id": link.id, "expires_at": link.expires_at})
        address = link_address(self._site_url(), "link", token)
        return control_reply(
            wire.SignInAddress(user=user.email, address=address, expires_at=timestamp(link.expires_at))
        )

    async def _group_names(self) -> dict[str, str]:
        return {group.id: group.name for group in await self._groups.list()}

    async def _written(
        self, link: OneTimeLink, outcome: Outcome, *, dry_run: bool, address: str | None = None
    ) -> web.Response:
        shown = _render(link, await self._group_names()).model_dump()
        reply = wire.InvitationWritten(**shown, outcome=outcome, dry_run=dry_run, address=address)
        return control_reply(reply)


def _render(link: OneTimeLink, names: dict[str, str]) -> wire.Invitation:
    return wire.Invitation(
        id=link.id,
        email=link.email,
        role=link.role.value,
        groups=[names.get(group_id, group_id) for group_id in link.group_ids],
        created_by=link.created_by,
        created_at=timestamp(link.created_at),
        expires_at=timestamp(link.expires_at),
    )
