"""Routes of `/api/v1/configs/tool_servers`: tool servers, for administrators."""

from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web

from gatewayd.errors import invalid
from gatewayd.http import body
from gatewayd.http.audit import note_change
from gatewayd.http.context import actor
from gatewayd.http.reply_schemas import plugins
from gatewayd.http.routes import Route, RouteAccess, RouteGroup
from gatewayd.http.schemas import answers
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.plugins.servers.config import read_connection, render_connection
from gatewayd.plugins.servers.records import ToolServer
from gatewayd.plugins.servers.service import ToolServers

SERVERS: Final = RouteGroup("/api/v1/configs/tool_servers", "tool servers")
CONNECTIONS: Final = "TOOL_SERVER_CONNECTIONS"

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
"""Largest body in bytes; entries may contain whole API descriptions."""

MAX_SERVERS: Final = 1000


class ToolServerRoutes:
    """Routes that list the tool servers, replace those of the database, and test one."""

    def __init__(self, servers: ToolServers) -> None:
        self._servers = servers

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            SERVERS.row("GET", "", self.list, RouteAccess.ADMIN, "List the tool servers"),
            SERVERS.row("POST", "", self.replace, RouteAccess.ADMIN, "Replace the tool servers"),
            SERVERS.row("POST", "/verify", self.verify, RouteAccess.ADMIN, "Test a tool server", asks=True),
        ]

    @answers(plugins.tool_connections)
    async def list(self, request: web.Request) -> web.Response:
        """Return `{"TOOL_SERVER_CONNECTIONS": [...], "problems": [sentence]}`.

        Keys and the values of headers are masked. `problems` are those of entries in the settings.
        """
        return self._render(await self._servers.list(actor(request)))

    @answers(plugins.tool_connections)
    async def replace(self, request: web.Request) -> web.Response:
        """Replace the servers of the database by `{"TOOL_SERVER_CONNECTIONS": [...]}`, and return all
        servers.

        A masked value keeps the stored secret. Entries of the settings may be included, but not changed
        (409).
        """
        sent = await body.read_object(request, MAX_BODY_BYTES, LARGE_LIMITS)
        entries = sent.get(CONNECTIONS)
        if not isinstance(entries, list) or len(entries) > MAX_SERVERS:
            expected = f"expected a list of at most {MAX_SERVERS}"
            raise invalid(f"cannot accept {CONNECTIONS}: {expected}", param=CONNECTIONS)
        servers = [read_connection(entry, str(index)) for index, entry in enumerate(entries)]
        shown = self._render(await self._servers.replace_all(actor(request), servers))
        note_change(request, "tool servers", {"ids": [server.id for server in servers]})
        return shown

    @answers(plugins.server_offer)
    async def verify(self, request: web.Request) -> web.Response:
        """Request the tools of one entry's server now, `{"status": true, "info": {"title", "version"},
        "specs": []}`."""
        server = read_connection(await body.read_object(request, MAX_BODY_BYTES, LARGE_LIMITS), "new")
        offer = await self._servers.check(actor(request), server)
        info = {"title": offer.title, "version": offer.version}
        return body.json_reply({"status": True, "info": info, "specs": list(offer.specs)})

    def _render(self, servers: Sequence[ToolServer]) -> web.Response:
        shown: dict[str, Any] = {
            CONNECTIONS: [render_connection(server) for server in servers],
            "problems": list(self._servers.known.problems),
        }
        return body.json_reply(shown)
