"""Routes of `/v1/plugins/{family}/{id}/grant` and `revoke`: access lists of tools."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from aiohttp import web

from gatewayctl.wire import models as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayd.catalog.records import Grant
from gatewayd.errors import invalid
from gatewayd.http.audit import note_grants
from gatewayd.http.body import read_model
from gatewayd.http.control.accounts.access_lists import AccessLists, combine_grants
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.plugins.plugins import family_of, id_of
from gatewayd.http.control.plugins.serializers import PluginViews
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, is_set
from gatewayd.http.routes import Route
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.service import PluginService


class PluginAccessRoutes:
    """Routes of the access lists of tools on the control socket."""

    def __init__(
        self, plugins: PluginService, views: PluginViews, lists: AccessLists, viewers: ControlActors
    ) -> None:
        self._plugins = plugins
        self._views = views
        self._lists = lists
        self._viewers = viewers

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.GRANT_PLUGIN, self.grant),
            serve(routes.REVOKE_PLUGIN, self.revoke),
        ]

    async def grant(self, request: web.Request) -> web.StreamResponse:
        """Take `Holders`, answer `PluginWritten`; invalid_request for a function, which has no access
        list."""
        named = await self._lists.read(await read_model(request, wire.Holders))
        return await self._change(request, "grant", add=named, drop=())

    async def revoke(self, request: web.Request) -> web.StreamResponse:
        """Take `Holders`, answer `PluginWritten`."""
        named = await self._lists.read(await read_model(request, wire.Holders))
        return await self._change(request, "revoke-access", add=(), drop=named)

    async def _change(
        self, request: web.Request, action: str, *, add: Sequence[Grant], drop: Sequence[Grant]
    ) -> web.Response:
        family, actor = family_of(request), self._viewers.operator(request[PEER])
        dry_run = is_set(request, "dry_run")
        await self._plugins.catch_up()
        plugin = self._plugins.get(actor, family, id_of(request))
        if family is PluginFamily.FUNCTION:
            raise invalid("cannot share a function: users reach it through models, which have access lists")
        combine = partial(combine_grants, add=add, drop=drop)
        if dry_run:
            before, plugin = plugin.grants, replace(plugin, grants=combine(plugin.grants))
        else:
            before, plugin = await self._plugins.change_grants(actor, family, plugin.id, combine)
        after = plugin.grants
        if not dry_run:
            note_grants(request, plugin.id, after, before)
            audit(request, f"{family.value} {action}", plugin.id)
        outcome = Outcome.UNCHANGED if after == before else Outcome.CHANGED
        return control_reply(await self._views.written(plugin, outcome, dry_run=dry_run))
