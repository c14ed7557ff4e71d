"""Routes of `/v1/users/{ref}/link` and `/v1/groups/{ref}/link`: ids of identity providers."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire import scim as wire
from gatewayctl.wire import users as user_wire
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.groups import CHANGE_LOCK as CHANGING_GROUPS
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.users import CHANGE_LOCK as CHANGING_USERS
from gatewayd.accounts.users import Users
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.accounts import groups as group_routes
from gatewayd.http.control.accounts import users as user_routes
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply
from gatewayd.http.routes import Route
from gatewayd.scim.links import LinkChange, ProviderLinks

# Value that removes a link.
NO_LINK: Final = ""


class LinkRoutes:
    """Routes of the links of users and groups to identity providers."""

    def __init__(self, links: ProviderLinks, users: Users, groups: Groups, writes: WriteTransactions) -> None:
        self._links = links
        self._users = users
        self._groups = groups
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LINK_USER, self.link_user),
            serve(routes.UNLINK_USER, self.unlink_user),
            serve(routes.LINK_GROUP, self.link_group),
            serve(routes.UNLINK_GROUP, self.unlink_group),
        ]

    async def link_user(self, request: web.Request) -> web.StreamResponse:
        """Take `Link`, answer `UserWritten`; conflict names the present owner of the id."""
        return await self._write_user(request, "user link", _linked(await read_model(request, wire.Link)))

    async def unlink_user(self, request: web.Request) -> web.StreamResponse:
        """Take `Unlink`, answer `UserWritten`: changed or unchanged."""
        change = _unlinked(await read_model(request, wire.Unlink))
        return await self._write_user(request, "user unlink", change)

    async def link_group(self, request: web.Request) -> web.StreamResponse:
        """Take `Link`, answer `GroupWritten`; conflict names the present owner of the id."""
        return await self._write_group(request, "group link", _linked(await read_model(request, wire.Link)))

    async def unlink_group(self, request: web.Request) -> web.StreamResponse:
        """Take `Unlink`, answer `GroupWritten`: changed or unchanged."""
        change = _unlinked(await read_model(request, wire.Unlink))
        return await self._write_group(request, "group unlink", change)

    async def _write_user(self, request: web.Request, action: str, change: LinkChange) -> web.Response:
        ref = request.match_info["ref"]
        async with self._writes.block(request, action, ref, alone=CHANGING_USERS) as dry_run:
            before = await self._users.resolve(ref)
            user = await self._links.link_user(before.id, change)
            note_change(request, before.email, _audited(change))
            row = (await user_routes.render_all([user], self._users, self._groups))[0]
        outcome = Outcome.UNCHANGED if user == before else Outcome.CHANGED
        return control_reply(user_wire.UserWritten(**row.model_dump(), outcome=outcome, dry_run=dry_run))

    async def _write_group(self, request: web.Request, action: str, change: LinkChange) -> web.Response:
        ref = request.match_info["ref"]
        async with self._writes.block(request, action, ref, alone=CHANGING_GROUPS) as dry_run:
            before = await self._groups.resolve(ref)
            group = await self._links.link_group(before.id, change)
            note_change(request, before.name, _audited(change))
            row = (await group_routes.render_all([group], self._groups))[0]
        outcome = Outcome.UNCHANGED if group == before else Outcome.CHANGED
        return group_routes.render_write(row, outcome, dry_run=dry_run)


def _audited(change: LinkChange) -> dict[str, str | None]:
    """Return the audited values of a link; an empty text is a removed one."""
    return {
        "external_id": change.external_id,
        "oauth_subject": change.subject,
        "provider": change.provider,
    }


def _linked(wanted: wire.Link) -> LinkChange:
    # An empty text is no id; `unlink` removes links.
    return LinkChange(wanted.external_id or None, wanted.oauth_subject or None, wanted.provider)


def _unlinked(wanted: wire.Unlink) -> LinkChange:
    return LinkChange(
        external_id=NO_LINK if wanted.external_id else None,
        subject=NO_LINK if wanted.oauth_subject else None,
        provider=wanted.provider,
    )
