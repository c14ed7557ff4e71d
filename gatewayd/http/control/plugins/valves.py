"""Routes of `/v1/plugins/{family}/{id}/valves`: the valves of a plugin."""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from gatewayctl.wire import plugins as wire
from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.plugins.plugins import family_of, id_of
from gatewayd.http.control.plugins.serializers import render_valves
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, control_reply, is_set
from gatewayd.http.routes import Route
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.service import PluginService
from gatewayd.plugins.valve_rows import check_names, list_valves, parse_values


class PluginValveRoutes:
    """Routes of valves on the control socket. Secrets are masked unless the request asks for them."""

    def __init__(self, plugins: PluginService, registry: PluginManager, viewers: ControlActors) -> None:
        self._plugins = plugins
        self._registry = registry
        self._viewers = viewers

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.GET_VALVES, self.show),
            serve(routes.SET_VALVES, self.change),
        ]

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `ValveList`, also of a plugin that does not load; `?reveal=true` shows secrets."""
        actor, plugin = await self._find(request)
        stored = self._plugins.valves(actor, plugin.family, plugin.id)
        schema, problem = await self._schema(actor, plugin)
        shown = render_valves(list_valves(schema, stored), reveal=is_set(request, "reveal"))
        return control_reply(wire.ValveList(valves=shown, fields=schema, problem=problem))

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Take `ValveChange`, answer `ValvesWritten`; all valves are changed or none."""
        wanted = await read_model(request, wire.ValveChange)
        actor, plugin = await self._find(request)
        schema, _ = await self._schema(actor, plugin)
        check_names(schema, [*wanted.values, *wanted.texts])
        check_names(schema, [name for name in wanted.unset if name not in plugin.valves])
        values = {**wanted.values, **parse_values(schema, wanted.texts), **dict.fromkeys(wanted.unset)}
        dry_run = is_set(request, "dry_run")
        if dry_run:
            after = await self._rehearse(plugin, values)
        else:
            after = await self._plugins.set_valves(actor, plugin.family, plugin.id, values)
            note_change(request, plugin.id, {"changed": sorted(values)})
            audit(request, f"{plugin.family.value} valves", plugin.id)
        outcome = Outcome.UNCHANGED if after == plugin.valves else Outcome.CHANGED
        shown = render_valves(list_valves(schema, after))
        return control_reply(wire.ValvesWritten(outcome=outcome, dry_run=dry_run, valves=shown))

    async def _rehearse(self, plugin: Plugin, values: Mapping[str, Any]) -> dict[str, Any]:
        loaded = await self._registry.loaded(plugin.family, plugin.id)
        return await loaded.changed_valves(plugin.valves, values)

    async def _schema(self, actor: Actor, plugin: Plugin) -> tuple[dict[str, Any] | None, str | None]:
        try:
            return await self._plugins.valves_schema(actor, plugin.family, plugin.id), None
        except GatewayError as error:
            if error.kind not in {ErrorKind.PLUGIN_FAILED, ErrorKind.NOT_CONFIGURED}:
                raise
            return None, error.message

    async def _find(self, request: web.Request) -> tuple[Actor, Plugin]:
        await self._plugins.catch_up()
        actor = self._viewers.operator(request[PEER])
        return actor, self._plugins.get(actor, family_of(request), id_of(request))
