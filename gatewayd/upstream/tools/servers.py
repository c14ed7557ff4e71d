"""Tools of tool servers: found by the ids in chat requests, or listed for a check of the server."""

from collections.abc import Sequence
from dataclasses import dataclass

from gatewayd.accounts.records import Actor
from gatewayd.events.records import EventTarget
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.servers.records import MCP, SERVER, ServerType, Tool, ToolServer
from gatewayd.plugins.servers.service import KnownServers, VisibleServer
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.tools.identity import IdentityHeaders
from gatewayd.upstream.tools.mcp_tools import McpTools
from gatewayd.upstream.tools.openapi_operations import tool_name
from gatewayd.upstream.tools.openapi_tools import OpenApiTools


@dataclass(frozen=True, slots=True)
class ToolServerOptions:
    """Time limits for tool servers in seconds, and identity headers.

    `call_timeout` is for one call (None: no limit), `data_timeout` for a description, `begin_timeout` for
    opening an MCP session. Without `identity` requests do not name the user.
    """

    call_timeout: float | None = None
    data_timeout: float = 10.0
    begin_timeout: float = 10.0
    identity: IdentityHeaders | None = None


@dataclass(frozen=True, slots=True)
class ServerName:
    """A parsed tool id: a server, and functions of it (empty: all)."""

    id: str
    is_mcp: bool = False
    functions: tuple[str, ...] = ()


class ServerTools:
    """The tool sources and the checker of the tool servers; see the interfaces in `plugins.servers`."""

    def __init__(self, known: KnownServers, openapi: OpenApiTools, mcp: McpTools) -> None:
        self._known = known
        self._openapi = openapi
        self._mcp = mcp

    async def tools(self, names: Sequence[str], actor: Actor, scope: CallScope) -> Sequence[Tool]:
        """Return the tools that the actor may use; unknown, inactive and inaccessible servers have none.

        Raises GatewayError that names a failed server.
        """
        found: list[Tool] = []
        for name in names:
            wanted = parse_tool_id(name)
            server = await self._usable(wanted, actor) if wanted is not None else None
            if wanted is not None and server is not None:
                found += _named(await self._of(server, scope), server, wanted.functions)
        return found

    async def check(self, server: ToolServer, actor: Actor) -> VisibleServer:
        """Fetch the present offer of a server; raises GatewayError that names it."""
        if server.type is ServerType.MCP:
            tools = await self._mcp.tools(server, CallScope(actor, EventTarget(actor.user_id)))
            return VisibleServer(title=server.name, specs=[tool.spec for tool in tools])
        described = await self._openapi.ask(server)
        specs = [operation.spec for operation in described.operations]
        return VisibleServer(described.title or server.name, described.version, specs)

    def close(self) -> None:
        """End all sessions."""
        self._mcp.close()

    async def _usable(self, wanted: ServerName, actor: Actor) -> ToolServer | None:
        server = await self._known.find(wanted.id)
        if server is None or not server.is_active or not self._known.may_use(actor, server):
            return None
        return server if wanted.is_mcp == (server.type is ServerType.MCP) else None

    async def _of(self, server: ToolServer, scope: CallScope) -> Sequence[Tool]:
        if server.type is ServerType.MCP:
            return await self._mcp.tools(server, scope)
        return await self._openapi.tools(server)


def make_tool_servers(known: KnownServers, tasks: TaskRegistry, options: ToolServerOptions) -> ServerTools:
    """Return the tools of the known servers; servers are contacted on the first request."""
    identity = options.identity
    return ServerTools(
        known,
        OpenApiTools(options.data_timeout, options.call_timeout, identity),
        McpTools(tasks, options.begin_timeout, options.call_timeout, identity),
    )


def parse_tool_id(name: str) -> ServerName | None:
    """Parse `server:<id>`, `server:mcp:<id>` or `...|fn1,fn2`; None for other names."""
    if not name.startswith(SERVER):
        return None
    server_id, _, functions = name.removeprefix(SERVER).partition("|")
    is_mcp = server_id.startswith(MCP)
    wanted = tuple(item.strip() for item in functions.split(",") if item.strip())
    return ServerName(server_id.removeprefix(MCP), is_mcp, wanted)


def _named(tools: Sequence[Tool], server: ToolServer, functions: Sequence[str]) -> Sequence[Tool]:
    """Return the tools with these names, with or without the prefix of the server."""
    if not functions:
        return tools
    names = {tool_name(item) for item in functions}
    names |= {tool_name(f"{server.id}_{item}") for item in functions}
    return [tool for tool in tools if tool.name in names]
