"""Routes of `/v1/plugins/{family}`: listing, installation, switches and removal of functions and tools."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aiohttp import web

from gatewayctl.wire import plugins as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.records import Actor
from gatewayd.errors import invalid, shorten
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.plugins.serializers import PluginViews, render_report
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, is_set
from gatewayd.http.routes import Route
from gatewayd.plugins.installation import DesiredPlugin, PluginInstaller, check_is_stored, rehearse_switch
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind
from gatewayd.plugins.service import NewPlugin, PluginService
from gatewayd.plugins.source.check_process import SourceChecker
from gatewayd.plugins.source.code import MAX_SOURCE_BYTES


@dataclass(frozen=True, slots=True)
class ControlPluginServices:
    """The services that the routes of plugins call."""

    plugins: PluginService
    installing: PluginInstaller
    checker: SourceChecker


class PluginRoutes:
    """Routes of the plugins of both families.

    Changes run outside of transaction blocks, as the loading of a plugin cannot be rolled back.
    """

    def __init__(
        self,
        services: ControlPluginServices,
        views: PluginViews,
        principals: GranteeFinder,
        viewers: ControlActors,
    ) -> None:
        self._plugins = services.plugins
        self._installing = services.installing
        self._checker = services.checker
        self._views = views
        self._principals = principals
        self._viewers = viewers

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.RELOAD_PLUGINS, self.reload),
            serve(routes.LIST_PLUGINS, self.list),
            serve(routes.CHECK_PLUGIN, self.check, interruptible=True),
            serve(routes.GET_PLUGIN, self.show),
            serve(routes.INSTALL_PLUGIN, self.install),
            serve(routes.CHANGE_PLUGIN, self.change),
            serve(routes.REMOVE_PLUGIN, self.remove),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `PluginList`; `?kind=` is pipe, filter, action or tool."""
        await self._plugins.catch_up()
        found = self._plugins.list(self._operator(request), family_of(request))
        kind = request.query.get("kind")
        if kind is not None:
            found = [plugin for plugin in found if plugin.kind is _kind(kind)]
        return control_reply(wire.PluginList(plugins=await self._views.plugins(found)))

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `Plugin`, with its source for `?source=true`."""
        plugin = await self._get(request)
        return control_reply(await self._views.plugin(plugin, with_source=is_set(request, "source")))

    async def install(self, request: web.Request) -> web.StreamResponse:
        """Take `NewPlugin`, answer `PluginWritten`: created, changed or unchanged.

        A dry run loads a new source in a separate process.
        """
        given = await read_model(request, wire.NewPlugin, MAX_SOURCE_BYTES)
        family, dry_run = family_of(request), is_set(request, "dry_run")
        owner = await self._principals.owner(given.user)
        operator = self._operator(request)
        # The operator has all permissions; the owner gets the new plugin.
        actor = replace(operator, user=replace(operator.user, id=owner.id))
        new = NewPlugin(
            request.match_info["id"],
            given.content,
            name=given.name or "",
            description=given.description or "",
        )
        wanted = DesiredPlugin(new, given.is_active, given.is_global)
        work = self._installing.rehearse if dry_run else self._installing.install
        plugin, outcome = await work(actor, family, wanted)
        note_change(request, plugin.id, {"name": plugin.name, **_switches(plugin)})
        return await self._written(request, plugin, Outcome(outcome.value), action="install")

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Take `PluginChange`, answer `PluginWritten`; its `problem` is the reason when it does not load."""
        wanted = await read_model(request, wire.PluginChange)
        before = await self._get(request)
        after = rehearse_switch(before, wanted.is_active, wanted.is_global)
        outcome = Outcome.UNCHANGED if after == before else Outcome.CHANGED
        if not is_set(request, "dry_run"):
            after = await self._installing.switch(
                self._operator(request), before, wanted.is_active, wanted.is_global
            )
        note_change(request, after.id, _switches(after))
        return await self._written(request, after, outcome, action="switch")

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer `PluginWritten` with the plugin before its removal; conflict for a plugin from a file."""
        plugin = await self._get(request)
        check_is_stored(plugin)
        if not is_set(request, "dry_run"):
            await self._plugins.remove(self._operator(request), plugin.family, plugin.id)
        return await self._written(request, plugin, Outcome.REMOVED, action="remove")

    async def reload(self, request: web.Request) -> web.StreamResponse:
        """Answer `Reloaded`."""
        done = await self._plugins.reload(self._operator(request))
        audit(request, "plugin reload", "all")
        return control_reply(wire.Reloaded.model_validate(done))

    async def check(self, request: web.Request) -> web.StreamResponse:
        """Take `PluginSource`, answer `PluginReport`; nothing is stored."""
        asked = await read_model(request, wire.PluginSource, MAX_SOURCE_BYTES)
        report = await self._checker.check(asked.id, asked.content, family_of(request))
        return control_reply(render_report(report))

    async def _written(
        self, request: web.Request, plugin: Plugin, outcome: Outcome, *, action: str
    ) -> web.Response:
        dry_run = is_set(request, "dry_run")
        if not dry_run:
            audit(request, f"{plugin.family.value} {action}", plugin.id)
        return control_reply(await self._views.written(plugin, outcome, dry_run=dry_run))

    async def _get(self, request: web.Request) -> Plugin:
        await self._plugins.catch_up()
        return self._plugins.get(self._operator(request), family_of(request), id_of(request))

    def _operator(self, request: web.Request) -> Actor:
        return self._viewers.operator(request[PEER])


def _switches(plugin: Plugin) -> dict[str, bool]:
    return {"is_active": plugin.is_active, "is_global": plugin.is_global}


def family_of(request: web.Request) -> PluginFamily:
    """Return the family in the path; invalid_request for an unknown one."""
    name = request.match_info["family"]
    if name not in set(PluginFamily):
        raise invalid(f"cannot accept family {shorten(name)!r}: expected function or tool", param="family")
    return PluginFamily(name)


def id_of(request: web.Request) -> str:
    """Return the id in the path in its stored form."""
    return request.match_info["id"].lower()


def _kind(name: str) -> PluginKind:
    if name not in set(PluginKind):
        known = ", ".join(PluginKind)
        raise invalid(f"cannot accept kind {shorten(name)!r}: expected one of {known}", param="kind")
    return PluginKind(name)
