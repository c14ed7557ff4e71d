"""Records and interfaces of tool servers, whose operations models call as tools."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Grant
from gatewayd.plugins.runtime.context import CallScope

SERVER: Final = "server:"
"""Prefix of tool servers among tool ids."""

MCP: Final = "mcp:"
"""Second prefix of a server that speaks MCP."""


class ServerType(StrEnum):
    """Protocol of a tool server: HTTP with an OpenAPI description, or MCP over streamable HTTP."""

    OPENAPI = "openapi"
    MCP = "mcp"


class ServerOrigin(StrEnum):
    """Where a tool server is configured."""

    DATABASE = "database"
    SETTINGS = "settings"


@dataclass(frozen=True, slots=True)
class ToolServer:
    """One tool server.

    `path` is the path of the description below `url`; `spec` is the description when it is not fetched.
    `key` is sent as a bearer token; `headers` may contain placeholders such as `{{CHAT_ID}}`. `functions`
    limits the functions, empty means all. `timeout` is in seconds, None for the timeout of the settings.
    """

    id: str
    name: str
    url: str
    type: ServerType = ServerType.OPENAPI
    description: str = ""
    path: str = "openapi.json"
    key: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] | None = None
    functions: tuple[str, ...] = ()
    timeout: float | None = None
    is_active: bool = True
    origin: ServerOrigin = ServerOrigin.DATABASE
    grants: tuple[Grant, ...] = ()
    updated_at: int = 0
    created_at: int = 0

    @property
    def tool_id(self) -> str:
        """The id of the server in `tool_ids`: `server:<id>` or `server:mcp:<id>`."""
        return f"{SERVER}{MCP if self.type is ServerType.MCP else ''}{self.id}"


class ToolServerStore(Protocol):
    """Store of tool servers in the database; changes are committed on return."""

    async def list(self) -> Sequence[ToolServer]:
        """Return all servers with their grants, sorted by id."""
        ...

    async def find(self, server_id: str) -> ToolServer | None:
        """Return one server; None when absent."""
        ...

    async def put(self, server: ToolServer) -> None:
        """Insert or replace a server and its grants."""
        ...

    async def remove(self, server_id: str) -> bool:
        """Delete a server and its grants; False when absent."""
        ...


class Tool(Protocol):
    """A function of a plugin or server that a model may call."""

    @property
    def name(self) -> str:
        """The name in the specification."""
        ...

    @property
    def source_id(self) -> str:
        """The id of its plugin or server in `tool_ids`."""
        ...

    @property
    def spec(self) -> dict[str, Any]:
        """The specification: `{"name", "description", "parameters"}`."""
        ...

    async def run(self, arguments: dict[str, Any], scope: CallScope) -> Any:
        """Return the result of the function; raises GatewayError with a sentence for the model."""
        ...


class ToolSources(Protocol):
    """Finder of server tools by `tool_ids`: `server:<id>`, `server:mcp:<id>`, `...|fn1,fn2`."""

    async def tools(self, names: Sequence[str], actor: Actor, scope: CallScope) -> Sequence[Tool]:
        """Return the tools that the actor may use; GatewayError that names a server which fails."""
        ...
