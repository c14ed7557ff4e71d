"""Tools of MCP servers over streamable HTTP; the MCP library is an extra, loaded on first use."""

import asyncio
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from gatewayd.errors import ErrorKind
from gatewayd.extras import PackageExtra, missing_extra_error
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.servers.records import ToolServer
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.tools.failures import ServerFailures, failures_of
from gatewayd.upstream.tools.identity import IdentityHeaders, fill_placeholders
from gatewayd.upstream.tools.openapi_operations import MAX_DESCRIPTION_CHARACTERS, MAX_FUNCTIONS, tool_name
from gatewayd.upstream.tools.openapi_schemas import ReferenceResolver, SchemaError
from gatewayd.upstream.tools.openapi_tools import with_authorization

SESSIONS: Final = "gatewayd.upstream.tools.mcp_session"
"""The module that needs the MCP library."""

MAX_SESSIONS: Final = 200
"""Maximum number of sessions with all servers together."""

_DEFINITIONS: Final = ("$defs", "definitions", "$schema", "$id")


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Server and headers of a session; `timeout` is for opening it, in seconds."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    timeout: float
    failures: ServerFailures


class ToolServerSession(Protocol):
    """A session with a server; failures raise GatewayError that names the server."""

    @property
    def is_open(self) -> bool:
        """Whether the session can be used; it ends by itself if it is idle for too long."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether no call is running."""
        ...

    async def begin(self, tasks: TaskRegistry) -> None:
        """Connect and negotiate the protocol."""
        ...

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the tools in the format of the protocol: `{"name", "description", "inputSchema"}`."""
        ...

    async def call(self, name: str, arguments: dict[str, Any], seconds: float | None) -> Any:
        """Return the result of a tool within `seconds`: a list of content items or an object."""
        ...

    def close(self) -> None:
        """End the session; may be called again."""
        ...


class _Opener(Protocol):
    def open_session(self, options: SessionOptions) -> ToolServerSession: ...


class _Sessions:
    """Opens sessions, up to MAX_SESSIONS at a time."""

    def __init__(self, tasks: TaskRegistry) -> None:
        self._tasks = tasks
        self._opener: _Opener | None = None
        self._open: list[ToolServerSession] = []

    async def open(self, options: SessionOptions) -> ToolServerSession:
        """Return an open session."""
        if self._opener is None:
            self._opener = await asyncio.to_thread(_load)
        self._make_room(options.failures)
        session = self._opener.open_session(options)
        self._open.append(session)
        await session.begin(self._tasks)
        return session

    def close(self) -> None:
        """End all sessions."""
        for session in self._open:
            session.close()

    def _make_room(self, failures: ServerFailures) -> None:
        self._open = [session for session in self._open if session.is_open]
        if len(self._open) < MAX_SESSIONS:
            return
        idle = next((session for session in self._open if session.is_idle), None)
        if idle is None:
            raise failures.error(
                f"{MAX_SESSIONS} sessions with such servers are in use", ErrorKind.RATE_LIMITED
            )
        idle.close()
        self._open.remove(idle)


class _SharedSession:
    """The session that the tools of one request share; opened again after it has ended."""

    def __init__(self, sessions: _Sessions, options: SessionOptions) -> None:
        self._sessions = sessions
        self._options = options
        self._session: ToolServerSession | None = None
        self._lock = asyncio.Lock()

    async def session(self) -> ToolServerSession:
        """Return the open session."""
        async with self._lock:
            if self._session is None or not self._session.is_open:
                self._session = await self._sessions.open(self._options)
            return self._session


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of a server as a `plugins.servers.records.Tool`; `own_name` is its name on the server."""

    server: ToolServer
    own_name: str
    spec: dict[str, Any]
    timeout: float | None
    shared_session: _SharedSession

    @property
    def name(self) -> str:
        """The name of the tool, prefixed with the id of the server."""
        return str(self.spec["name"])

    @property
    def source_id(self) -> str:
        """The id of the server in `tool_ids`."""
        return self.server.tool_id

    async def run(self, arguments: dict[str, Any], scope: CallScope) -> Any:
        """Return the result of the server; cancellation ends the session."""
        session = await self.shared_session.session()
        try:
            return await session.call(self.own_name, arguments, self.server.timeout or self.timeout)
        except asyncio.CancelledError:
            session.close()
            raise


class McpTools:
    """Lists the tools of MCP servers, anew for every request.

    `begin_timeout` is for opening a session and for the list of tools, `call_timeout` for a call of a server
    without a time-out of its own (None: no limit), in seconds.
    """

    def __init__(
        self,
        tasks: TaskRegistry,
        begin_timeout: float,
        call_timeout: float | None,
        identity: IdentityHeaders | None,
    ) -> None:
        self._sessions = _Sessions(tasks)
        self._begin_timeout = begin_timeout
        self._call_timeout = call_timeout
        self._identity = identity

    async def tools(self, server: ToolServer, scope: CallScope) -> Sequence[McpTool]:
        """Return the tools of a server; raises GatewayError that names the server."""
        failures = failures_of(server)
        shared_session = _SharedSession(self._sessions, self._options(server, scope, failures))
        session = await shared_session.session()
        listed = await session.list_tools()
        wanted = [item for item in listed if not server.functions or item.get("name") in server.functions]
        if len(wanted) > MAX_FUNCTIONS:
            hint = f"the limit is {MAX_FUNCTIONS}: select some of them"
            raise failures.error(f"it has {len(wanted)} tools, and {hint}")
        try:
            specs = await asyncio.to_thread(lambda: [_spec(server, item) for item in wanted])
        except SchemaError as error:
            raise failures.error(f"its list of tools {error}") from error
        return [
            McpTool(server, str(item.get("name")), spec, self._call_timeout, shared_session)
            for item, spec in zip(wanted, specs, strict=True)
        ]

    def close(self) -> None:
        """End all sessions."""
        self._sessions.close()

    def _options(self, server: ToolServer, scope: CallScope, failures: ServerFailures) -> SessionOptions:
        headers = with_authorization(server, fill_placeholders(server.headers, scope))
        if self._identity is not None:
            headers |= self._identity.for_tool(scope)
        return SessionOptions(server.url, headers, self._begin_timeout, failures)


def _load() -> _Opener:
    try:
        module: Any = importlib.import_module(SESSIONS)
    except ImportError as error:
        raise missing_extra_error(
            f"cannot use tool servers that speak MCP ({error})", PackageExtra.MCP
        ) from error
    opener: _Opener = module
    return opener


def _spec(server: ToolServer, item: Mapping[str, Any]) -> dict[str, Any]:
    schema = item.get("inputSchema")
    own = schema if isinstance(schema, dict) else {}
    plain = {name: value for name, value in own.items() if name not in _DEFINITIONS}
    read = ReferenceResolver(own).schema(plain)
    description = item.get("description")
    return {
        "name": tool_name(f"{server.id}_{item.get('name')}"),
        "description": description[:MAX_DESCRIPTION_CHARACTERS] if isinstance(description, str) else "",
        "parameters": {"type": "object", "properties": {}, **(read if isinstance(read, dict) else {})},
    }
