"""Routes of the valves and user valves of functions and tools."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from aiohttp import web

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.http.audit import note_change
from gatewayd.http.body import json_reply, read_object
from gatewayd.http.context import actor
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import OBJECT, OBJECT_OR_NULL, answers
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.service import PluginService
from gatewayd.plugins.user_valves import UserValves


class ValveRoutes:
    """Routes of the valves of one family of plugins."""

    def __init__(self, family: PluginFamily, plugins: PluginService, user_valves: UserValves) -> None:
        self._family = family
        self._plugins = plugins
        self._user_valves = user_valves

    def routes(self, noun: RouteGroup, managers: RouteAccess) -> Sequence[Route]:
        """Return the rows of valves; `managers` is the access policy of the rows that are not about the
        caller's own valves."""
        valves, row, users = "/id/{id}/valves", noun.row, RouteAccess.VERIFIED
        return [
            row("GET", valves, self.show, managers, "Show the valves"),
            row("GET", f"{valves}/spec", self.describe, managers, "Show the schema of the valves"),
            row("POST", f"{valves}/update", self.change, managers, "Change the valves"),
            row("GET", f"{valves}/user", self.show_own, users, "Show the caller's user valves"),
            row("GET", f"{valves}/user/spec", self.describe_own, users, "Show the schema of the user valves"),
            row("POST", f"{valves}/user/update", self.change_own, users, "Change the caller's user valves"),
        ]

    @answers(OBJECT)
    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `{name: value}` with the stored values, without defaults."""
        await self._plugins.catch_up()
        return json_reply(self._plugins.valves(actor(request), self._family, plugin_id(request)))

    @answers(OBJECT_OR_NULL)
    async def describe(self, request: web.Request) -> web.StreamResponse:
        """Answer the JSON schema of the class `Valves`, with resolved options; null without the class.

        400 with the message of the plugin when it does not load.
        """
        await self._plugins.catch_up()
        with refuse_plugin_errors():
            schema = await self._plugins.valves_schema(actor(request), self._family, plugin_id(request))
        return json_reply(schema)

    @answers(OBJECT)
    async def change(self, request: web.Request) -> web.StreamResponse:
        """`{name: value}` -> all stored values; null resets a value to its default.

        400 with the name of an invalid field.
        """
        values = await read_object(request)
        with refuse_plugin_errors():
            changed = await self._plugins.set_valves(actor(request), self._family, plugin_id(request), values)
        # A valve may be a secret of a provider: the audit has the names, not the values.
        note_change(request, plugin_id(request), {"changed": sorted(values)})
        return json_reply(changed)

    @answers(OBJECT)
    async def show_own(self, request: web.Request) -> web.StreamResponse:
        """Answer `{name: value}` with the stored values of the caller."""
        await self._plugins.catch_up()
        values = await self._user_valves.find(actor(request), self._family, plugin_id(request))
        return json_reply(values or {})

    @answers(OBJECT_OR_NULL)
    async def describe_own(self, request: web.Request) -> web.StreamResponse:
        """Answer the JSON schema of the class `UserValves`; null without the class."""
        await self._plugins.catch_up()
        with refuse_plugin_errors():
            schema = await self._user_valves.schema(actor(request), self._family, plugin_id(request))
        return json_reply(schema)

    @answers(OBJECT)
    async def change_own(self, request: web.Request) -> web.StreamResponse:
        """`{name: value}` -> all stored values of the caller; null resets a value to its default."""
        values = await read_object(request)
        with refuse_plugin_errors():
            changed = await self._user_valves.change(actor(request), self._family, plugin_id(request), values)
        return json_reply(changed)


def plugin_id(request: web.Request) -> str:
    """Return the id in the path; stored ids are in lower case."""
    return request.match_info["id"].lower()


@contextmanager
def refuse_plugin_errors() -> Iterator[None]:
    """Turn errors of a plugin's code into refusals (400) with the message of the plugin."""
    try:
        yield
    except PluginError as failure:
        code = failure.code or ErrorKind.PLUGIN_FAILED.value
        raise GatewayError(ErrorKind.INVALID_REQUEST, failure.message, code=code) from failure
