"""Servers whose operations are offered to models as tools."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Grant
from gatewayd.plugins.runtime.context import CallScope

SERVER: Final = "server:"
"""What the ids of tool servers begin with where those of tools stand too."""

MCP: Final = "mcp:"
"""What follows for a server that speaks MCP."""


class ServerType(StrEnum):
    """What a tool server speaks: an HTTP API with an OpenAPI description, or MCP over streamable HTTP."""

    OPENAPI = "openapi"
    MCP = "mcp"


class ServerOrigin(StrEnum):
    """Where a tool server is configured."""

    DATABASE = "database"
    SETTINGS = "settings"


@dataclass(frozen=True, slots=True)
class ToolServer:
    """One tool server.

    `path` is that of the description below `url`; `spec` is the description itself when it is not fetched.
    `key` is sent as a bearer token; `headers` may hold placeholders such as `{{CHAT_ID}}`. `functions` are
    the names that are offered, all when empty. `timeout` is in seconds, None for that of the settings.
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
        """The server as `tool_ids` name it: `server:<id>` or `server:mcp:<id>`."""
        return f"{SERVER}{MCP if self.type is ServerType.MCP else ''}{self.id}"


class ToolServerStore(Protocol):
    """Tool servers that are kept in the database; all changes are committed on return."""

    async def list(self) -> Sequence[ToolServer]:
        """Return all servers with their grants, by id."""
        ...

    async def find(self, server_id: str) -> ToolServer | None:
        """Return one server."""
        ...

    async def put(self, server: ToolServer) -> None:
        """Insert or replace a server and its grants."""
        ...

    async def remove(self, server_id: str) -> bool:
        """Delete a server and its grants."""
        ...


class Tool(Protocol):
    """A function that a model may call, of a plugin or of a server."""

    @property
    def name(self) -> str:
        """The name in its specification."""
        ...

    @property
    def source_id(self) -> str:
        """The plugin or server that it is of, as `tool_ids` name it."""
        ...

    @property
    def spec(self) -> dict[str, Any]:
        """The specification: `{"name", "description", "parameters"}`."""
        ...

    async def run(self, arguments: dict[str, Any], scope: CallScope) -> Any:
        """Return what the function returns; raises GatewayError with a sentence for the model."""
        ...


class ToolSources(Protocol):
    """Finds tools of servers as `tool_ids` name them: `server:<id>`, `server:mcp:<id>`, `...|fn1,fn2`."""

    async def tools(self, names: Sequence[str], actor: Actor, scope: CallScope) -> Sequence[Tool]:
        """Return the tools that the actor may use; a server that fails raises, named in its sentence."""
        ...
