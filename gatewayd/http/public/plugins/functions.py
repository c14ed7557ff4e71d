"""Routes of `/api/v1/functions`: pipes, filters and actions, for administrators."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from gatewayd.http.audit import note_change
from gatewayd.http.body import json_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.public import query_parameters
from gatewayd.http.public.plugins.bodies import FunctionBody, FunctionChangeBody, SyncBody
from gatewayd.http.public.plugins.serializers import PluginSerializer
from gatewayd.http.public.plugins.valves import ValveRoutes, plugin_id
from gatewayd.http.reply_schemas import plugins
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import TRUE, answers, listed
from gatewayd.plugins.function_sync import FunctionSync
from gatewayd.plugins.records import PluginFamily, PluginOrigin
from gatewayd.plugins.service import PluginService
from gatewayd.plugins.source.code import MAX_SOURCE_BYTES
from gatewayd.plugins.user_valves import UserValves

MAX_SYNC_BYTES: Final = 64 * 2**20
EXPORT_QUERY: Final = {"include_valves": "With true, the reply includes the valves of each function."}
_noun: Final = RouteGroup("/api/v1/functions", "functions")
_row: Final = _noun.row


@dataclass(frozen=True, slots=True)
class PublicPluginServices:
    """The services that the routes of plugins call."""

    plugins: PluginService
    user_valves: UserValves
    sync: FunctionSync
    shapes: PluginSerializer


class FunctionRoutes:
    """Routes of functions."""

    def __init__(self, services: PublicPluginServices) -> None:
        self._plugins = services.plugins
        self._sync = services.sync
        self._shapes = services.shapes
        self._valves = ValveRoutes(PluginFamily.FUNCTION, services.plugins, services.user_valves)

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        access = RouteAccess.ADMIN
        return [
            _row("GET", "/", self.list, RouteAccess.VERIFIED, "List the functions"),
            _row("GET", "/list", self.list_owned, access, "List the functions with their owners"),
            _row("GET", "/export", self.export, access, "Export the functions"),
            _row("POST", "/sync", self.sync, access, "Replace all functions", SyncBody),
            _row("POST", "/create", self.create, access, "Install a function", FunctionBody),
            _row("GET", "/id/{id}", self.show, access, "Show a function with its source"),
            _row("POST", "/id/{id}/update", self.change, access, "Change a function", FunctionChangeBody),
            _row("POST", "/id/{id}/toggle", self.toggle, access, "Switch a function on or off"),
            _row(
                "POST",
                "/id/{id}/toggle/global",
                self.toggle_global,
                access,
                "Switch a function for all models on or off",
            ),
            _row("DELETE", "/id/{id}/delete", self.remove, access, "Remove a function"),
            *self._valves.routes(_noun, access),
        ]

    @answers(listed(plugins.function))
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `[function]` without sources, by id; empty when plugins are off."""
        by = actor(request)
        await self._plugins.catch_up()
        return json_reply(await self._shapes.listed(by, self._plugins.list(by, PluginFamily.FUNCTION)))

    @answers(listed(plugins.owned_function))
    async def list_owned(self, request: web.Request) -> web.StreamResponse:
        """Answer `[function]` without sources, each with its owner as `user`."""
        by = actor(request)
        await self._plugins.catch_up()
        found = self._plugins.list(by, PluginFamily.FUNCTION)
        return json_reply(await self._shapes.listed(by, found, has_owner=True))

    @answers(listed(plugins.function), query=EXPORT_QUERY)
    async def export(self, request: web.Request) -> web.StreamResponse:
        """Answer `[function]` with sources, and with `valves` for `?include_valves=true`.

        Functions of files and built-in ones are excluded, so that the export can be synced again. Unreadable
        valves are null.
        """
        by, has_valves = (
            actor(request),
            query_parameters.parse_flag(request.query, "include_valves", default=False),
        )
        await self._plugins.catch_up()
        shown = []
        for plugin in self._plugins.list(by, PluginFamily.FUNCTION):
            if plugin.origin is PluginOrigin.DATABASE:
                valves = None if plugin.locked is not None else plugin.valves
                shown.append({**self._shapes.shown(by, plugin), **({"valves": valves} if has_valves else {})})
        return json_reply(shown)

    @answers(listed(plugins.function))
    async def sync(self, request: web.Request) -> web.StreamResponse:
        """`{"functions": [{"id", "name", "content", "meta", "is_active"?, "is_global"?, "valves"?}]}`.

        Replaces all functions of the database and answers `[function]` with sources. When one of them does
        not load (400) or has the id of a function from a file (409), nothing is changed.
        """
        form = await read_model(request, SyncBody, MAX_SYNC_BYTES)
        by = actor(request)
        made = await self._sync.replace_all(by, [one.wanted() for one in form.functions])
        note_change(request, "functions", {"ids": [plugin.id for plugin in made]})
        return json_reply([self._shapes.shown(by, plugin) for plugin in made])

    @answers(plugins.function)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """`{"id", "name", "content", "meta": {"description", ...}}` -> the function without its source.

        400 for an id that is no Python identifier, and with exception, text and line for a source that does
        not load; 409 for an id in use.
        """
        form = await read_model(request, FunctionBody, MAX_SOURCE_BYTES)
        made = await self._plugins.create(actor(request), PluginFamily.FUNCTION, form.new())
        note_change(request, made.id, {"name": made.name})
        return json_reply(self._shapes.shown(actor(request), made, has_source=False))

    @answers(plugins.function)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer the function with its source."""
        await self._plugins.catch_up()
        found = self._plugins.get(actor(request), PluginFamily.FUNCTION, plugin_id(request))
        return json_reply(self._shapes.shown(actor(request), found))

    @answers(plugins.function)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """`{"name"?, "content"?, "meta"?, "revision"?}` -> the function with its source; errors as for a new
        one, and 409 (`revision_changed`) if it has another revision than that of an earlier reply."""
        form = await read_model(request, FunctionChangeBody, MAX_SOURCE_BYTES)
        changed = await self._plugins.change(
            actor(request), PluginFamily.FUNCTION, plugin_id(request), form.change()
        )
        note_change(request, changed.id, {"changed": sorted(form.model_fields_set)})
        return json_reply(self._shapes.shown(actor(request), changed))

    @answers(plugins.function)
    async def toggle(self, request: web.Request) -> web.StreamResponse:
        """Toggle whether a function is on -> the function.

        A function that does not load can be on; `error` is the reason why it does not run.
        """
        changed = await self._plugins.set_active(actor(request), PluginFamily.FUNCTION, plugin_id(request))
        note_change(request, changed.id, {"is_active": changed.is_active})
        return json_reply(self._shapes.shown(actor(request), changed))

    @answers(plugins.function)
    async def toggle_global(self, request: web.Request) -> web.StreamResponse:
        """Toggle whether a function runs for all models -> the function."""
        changed = await self._plugins.set_global(actor(request), PluginFamily.FUNCTION, plugin_id(request))
        note_change(request, changed.id, {"is_global": changed.is_global})
        return json_reply(self._shapes.shown(actor(request), changed))

    @answers(TRUE)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Remove a function with its valves; answers true. 409 for a function from a file."""
        await self._plugins.remove(actor(request), PluginFamily.FUNCTION, plugin_id(request))
        note_change(request, plugin_id(request))
        return json_reply(data=True)
