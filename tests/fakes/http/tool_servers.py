"""Real tool servers on the loopback: an HTTP API with a description, and one of the MCP library."""

import asyncio
import base64
import contextlib
import logging
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import uvicorn
from aiohttp import web
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from gatewayd.accounts.records import Actor
from gatewayd.events.records import EventTarget
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.plugins.servers.config import ConfiguredServers
from gatewayd.plugins.servers.records import ServerType, ToolServer
from gatewayd.plugins.servers.service import KnownServers
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.tools.servers import ServerTools, ToolServerOptions, make_tool_servers
from tests.fakes.providers.models import make_actor
from tests.fakes.storage.tool_server_store import MemoryServers

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
KEY = "secret-key-of-the-server"


def make_scope(actor: Actor | None = None, **more: Any) -> CallScope:
    """Return the scope of a call in message m1 of chat c1."""
    actor = actor or make_actor()
    return CallScope(actor, EventTarget(actor.user_id, "c1", "m1"), **more)


@contextlib.asynccontextmanager
async def serving(
    *servers: ToolServer, configured: Sequence[ToolServer] = (), **options: Any
) -> AsyncIterator[ServerTools]:
    """Give what finds the tools of these servers."""
    tasks = TaskRegistry()
    known = KnownServers(MemoryServers(*servers), ConfiguredServers(tuple(configured)))
    made = make_tool_servers(known, tasks, ToolServerOptions(**options))
    try:
        yield made
    finally:
        made.close()
        await tasks.close()


# An HTTP API ----------------------------------------------------------------------------------------------


def operation(name: str, **more: Any) -> dict[str, Any]:
    """Return an operation."""
    return {"operationId": name, "summary": f"Does {name}.", "responses": {"200": {}}, **more}


def json_body(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the `requestBody` with a schema."""
    return {"requestBody": {"content": {"application/json": {"schema": schema}}}}


def parameter(name: str, place: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    """Return a parameter."""
    return {"name": name, "in": place, "schema": {"type": kind}, **more}


def description(**paths: Any) -> dict[str, Any]:
    """Return a description; the names of paths lack their slash."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tickets", "version": "7"},
        "paths": {f"/{path.replace('__', '/')}": item for path, item in paths.items()},
    }


TICKETS = {
    "openapi": "3.1.0",
    "info": {"title": "Tickets", "version": "7"},
    "paths": {
        "/tickets/{ticket}": {
            "parameters": [parameter("ticket", "path", required=True, description="Its number.")],
            "get": operation("get_ticket", parameters=[{"$ref": "#/components/parameters/Full"}]),
            "put": operation("change_ticket", **json_body({"$ref": "#/components/schemas/Ticket"})),
        },
        "/tickets": {"get": operation("list_tickets", parameters=[parameter("state", "query", "array")])},
        "/page": {"get": operation("show_page")},
        "/link": {"get": operation("show_link")},
        "/text": {"get": operation("read_text")},
        "/broken": {"post": operation("break_down", **json_body({"type": "object"}))},
        "/slow": {"get": operation("take_long")},
        "/huge": {"get": operation("say_much")},
        "/moved": {"get": operation("follow_here")},
        "/away": {"get": operation("follow_away")},
        "/unnamed": {"get": {"summary": "Has no name."}},
    },
    "components": {
        "parameters": {"Full": parameter("full", "query", "boolean")},
        "schemas": {
            "Ticket": {
                "type": "object",
                "required": ["title"],
                "properties": {
                    "title": {"type": "string"},
                    "parent": {"$ref": "#/components/schemas/Ticket"},
                },
            }
        },
    },
}


@dataclass
class Seen:
    """A request as the API saw it."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


@dataclass
class FakeApi:
    """An API with a description, which tests may exchange; `seen` are the calls, `asked` the descriptions."""

    document: Any = field(default_factory=lambda: TICKETS)
    key: str = ""
    etag: str | None = None
    status: int = 200
    seen: list[Seen] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def server(self, server_id: str = "tickets", **more: Any) -> ToolServer:
        """Return how it is reached."""
        return replace(ToolServer(server_id, server_id, self.url, key=self.key), **more)

    async def describe(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(dict(request.headers))
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.Response(status=401)
        if self.etag and request.headers.get("If-None-Match") == self.etag:
            return web.Response(status=304)
        headers = {"ETag": self.etag} if self.etag else {}
        if self.document is None:
            await self.gate.wait()
        if isinstance(self.document, bytes):
            return web.Response(body=self.document, headers=headers, status=self.status)
        return web.json_response(self.document, headers=headers, status=self.status)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append(
            Seen(request.method, request.raw_path, request.query_string, dict(request.headers), body)
        )
        match request.path:
            case "/page":
                headers = {"Content-Disposition": "inline"}
                return web.Response(text="<h1>Hi</h1>", content_type="text/html", headers=headers)
            case "/link":
                headers = {"Content-Disposition": "inline", "Location": "https://example.org/x"}
                return web.Response(text="", content_type="text/html", headers=headers)
            case "/text":
                return web.Response(text="plain words")
            case "/broken":
                return web.Response(status=422, text=f"no way, {request.headers.get('Authorization')}")
            case "/slow":
                return await self._slow()
            case "/huge":
                return web.Response(body=b"x" * (17 * 1024 * 1024))
            case "/moved":
                raise web.HTTPTemporaryRedirect("/text")
            case "/away":
                raise web.HTTPTemporaryRedirect("http://localhost:1/text")
            case _:
                return web.json_response({"path": request.raw_path, "method": request.method})

    async def _slow(self) -> web.StreamResponse:
        self.entered.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.left.set()
            raise
        return web.Response(text="late")


@contextlib.asynccontextmanager
async def api(**more: Any) -> AsyncIterator[FakeApi]:
    """Run an API."""
    fake = FakeApi(**more)
    app = web.Application()
    app.router.add_get("/openapi.json", fake.describe)
    app.router.add_route("*", "/{path:.*}", fake.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.port = runner.addresses[0][1]
    try:
        yield fake
    finally:
        fake.gate.set()
        await runner.cleanup()


@contextlib.asynccontextmanager
async def raw_server(answer: bytes | None) -> AsyncIterator[str]:
    """Give the address of a server that answers everything with these bytes, or with silence."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read(65536)
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
            writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


# An MCP server --------------------------------------------------------------------------------------------


@dataclass
class FakeMcp:
    """An MCP server in a thread; `headers` are those of the requests of calls."""

    url: str
    headers: list[dict[str, str]]
    entered: threading.Event
    cancelled: threading.Event
    stop: Any

    def server(self, server_id: str = "notes", **more: Any) -> ToolServer:
        """Return how it is reached."""
        return replace(ToolServer(server_id, server_id, self.url, ServerType.MCP, key=KEY), **more)


def notes(headers: list[dict[str, str]], entered: threading.Event, cancelled: threading.Event) -> MCPServer:
    """Return an MCP server with a few tools."""
    server = MCPServer("notes")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(structured_output=False)
    def draw() -> list[Any]:
        """Draw a picture."""
        return ["a picture", Image(data=base64.b64decode(PIXEL), format="png")]

    @server.tool()
    def whoami(ctx: Context) -> str:
        """Say who asks."""
        headers.append(dict(ctx.headers or {}))
        return "you"

    @server.tool()
    def fail() -> str:
        """Fail."""
        raise ToolError("nothing to see")

    @server.tool()
    async def wait() -> str:
        """Take long."""
        entered.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "late"

    return server


@contextlib.contextmanager
def mcp_server(server: MCPServer | None = None, *, is_old: bool = False, **options: Any) -> Iterator[FakeMcp]:
    """Run an MCP server in a thread of its own; an old one knows only the handshake and sessions."""
    headers: list[dict[str, str]] = []
    entered, cancelled = threading.Event(), threading.Event()
    with _kept_logging():
        made = (server or notes(headers, entered, cancelled)).streamable_http_app(**options)
    app = _without_discovery(made) if is_old else made
    bound = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=0)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()

    def stop() -> None:
        running.should_exit = True
        thread.join(10)
        bound.close()

    try:
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
        yield FakeMcp(url, headers, entered, cancelled, stop)
    finally:
        stop()


def _without_discovery(app: Any) -> Any:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if (b"mcp-method", b"server/discover") not in scope.get("headers", ()):
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 400, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return answer


@contextlib.contextmanager
def _kept_logging() -> Iterator[None]:
    """Undo what the library does to the root logger."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:], root.level = handlers, level
