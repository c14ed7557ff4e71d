"""Routes of `/api/v1/tools`: tools of plugins and of tool servers."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiohttp import web

from gatewayd.accounts.permissions import require
from gatewayd.accounts.records import Actor
from gatewayd.http.audit import note_change
from gatewayd.http.body import json_reply, read_model
from gatewayd.http.context import actor
from gatewayd.http.public.knowledge.bodies import ShareBody
from gatewayd.http.public.plugins.bodies import ToolBody, ToolChangeBody
from gatewayd.http.public.plugins.functions import PublicPluginServices
from gatewayd.http.public.plugins.serializers import render_server
from gatewayd.http.public.plugins.valves import ValveRoutes, plugin_id
from gatewayd.http.reply_schemas import plugins
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import TRUE, answers, listed
from gatewayd.plugins.records import Plugin, PluginFamily, PluginOrigin
from gatewayd.plugins.servers.records import ToolServer
from gatewayd.plugins.source.code import MAX_SOURCE_BYTES

_noun: Final = RouteGroup("/api/v1/tools", "tools")
_row: Final = _noun.row

ListServers = Callable[[Actor], Awaitable[Sequence[ToolServer]]]
"""Returns the tool servers that an actor may use."""


async def no_servers(_: Actor) -> Sequence[ToolServer]:
    """Return no tool servers."""
    return ()


class ToolRoutes:
    """Routes of tools."""

    def __init__(self, services: PublicPluginServices, list_servers: ListServers = no_servers) -> None:
        self._plugins = services.plugins
        self._shapes = services.shapes
        self._list_servers = list_servers
        self._valves = ValveRoutes(PluginFamily.TOOL, services.plugins, services.user_valves)

    def routes(self) -> Sequence[Route]:
        """Return the rows; the access list of each tool decides about its use and changes."""
        access = RouteAccess.VERIFIED
        return [
            _row("GET", "/", self.list, access, "List the tools and tool servers of the caller"),
            _row("GET", "/list", self.list_owned, access, "List the tools with their owners"),
            _row("GET", "/export", self.export, access, "Export the tools"),
            _row("POST", "/create", self.create, access, "Install a tool", ToolBody),
            _row("GET", "/id/{id}", self.show, access, "Show a tool with its source"),
            _row("POST", "/id/{id}/update", self.change, access, "Change a tool", ToolChangeBody),
            _row(
                "POST",
                "/id/{id}/access/update",
                self.share,
                access,
                "Change the access list of a tool",
                ShareBody,
            ),
            _row("DELETE", "/id/{id}/delete", self.remove, access, "Remove a tool"),
            *self._valves.routes(_noun, access),
        ]

    @answers(plugins.tools)
    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `[tool]` without sources, each with `has_user_valves` and `write_access`; then the servers.

        A server has the id `server:<id>`, or `server:mcp:<id>`.
        """
        by = actor(request)
        shown = await self._shapes.listed(by, await self._usable(by))
        return json_reply([*shown, *(render_server(one) for one in await self._list_servers(by))])

    @answers(listed(plugins.owned_tool))
    async def list_owned(self, request: web.Request) -> web.StreamResponse:
        """Answer `[tool]` without sources, each with its owner as `user`."""
        by = actor(request)
        return json_reply(await self._shapes.listed(by, await self._usable(by), has_owner=True))

    @answers(listed(plugins.tool))
    async def export(self, request: web.Request) -> web.StreamResponse:
        """Answer `[tool]` with sources; 403 without the permission workspace.tools_export.

        Tools of files and built-in ones are excluded.
        """
        by = actor(request)
        require(by, "workspace", "tools_export")
        found = [one for one in await self._usable(by) if one.origin is PluginOrigin.DATABASE]
        return json_reply([self._shapes.shown(by, plugin) for plugin in found])

    @answers(plugins.tool)
    async def create(self, request: web.Request) -> web.StreamResponse:
        """`{"id", "name", "content", "meta": {"description", ...}, "access_grants"?}` -> the tool.

        403 without the permission workspace.tools or workspace.tools_import; 400 for an id that is no Python
        identifier, and with exception, text and line for a source that does not load; 409 for an id in use.
        """
        form = await read_model(request, ToolBody, MAX_SOURCE_BYTES)
        made = await self._plugins.create(actor(request), PluginFamily.TOOL, form.new())
        note_change(request, made.id, {"name": made.name})
        return json_reply(self._shapes.shown(actor(request), made, has_source=False))

    @answers(plugins.tool)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer the tool with its source; 404 for a tool that the caller may not use."""
        await self._plugins.catch_up()
        found = self._plugins.get(actor(request), PluginFamily.TOOL, plugin_id(request))
        return json_reply(self._shapes.shown(actor(request), found))

    @answers(plugins.tool)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """`{"name"?, "content"?, "meta"?, "access_grants"?}` -> the tool with its source.

        403 for a tool that the caller may use but not change; errors as for a new one.
        """
        form = await read_model(request, ToolChangeBody, MAX_SOURCE_BYTES)
        changed = await self._plugins.change(
            actor(request), PluginFamily.TOOL, plugin_id(request), form.change()
        )
        note_change(request, changed.id, {"changed": sorted(form.model_fields_set)})
        return json_reply(self._shapes.shown(actor(request), changed))

    @answers(plugins.tool)
    async def share(self, request: web.Request) -> web.StreamResponse:
        """`{"access_grants": [{"principal_type", "principal_id", "permission"}]}` -> the tool."""
        form = await read_model(request, ShareBody)
        changed = await self._plugins.set_grants(
            actor(request), PluginFamily.TOOL, plugin_id(request), form.grants() or ()
        )
        note_change(request, changed.id, form.model_dump(include={"access_grants"}))
        return json_reply(self._shapes.shown(actor(request), changed))

    @answers(TRUE)
    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Remove a tool with its valves; answers true. 409 for a tool from a file."""
        await self._plugins.remove(actor(request), PluginFamily.TOOL, plugin_id(request))
        note_change(request, plugin_id(request))
        return json_reply(data=True)

    async def _usable(self, by: Actor) -> Sequence[Plugin]:
        """Return the tools that an actor may use, including switched-off ones that the actor may change."""
        await self._plugins.catch_up()
        found = self._plugins.list(by, PluginFamily.TOOL)
        return [one for one in found if one.is_active or self._plugins.access.may_write(by, one)]
