"""Proxies that check nothing, as floors for what a proxy in Python can cost.

    python -m tests.bench.floors raw|aiohttp PROVIDER_PORT

`raw` passes the bytes of each connection to a connection of its own at the provider; `aiohttp` parses
requests and answers with the library, in a task for each request. The port is printed on standard output.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

import uvloop
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

HOST = "127.0.0.1"
PASSED_HEADERS = ("Content-Type",)


class ProviderSide(asyncio.Protocol):
    """Passes the bytes of the provider to a client."""

    def __init__(self, client: asyncio.Transport) -> None:
        self._client = client

    def data_received(self, data: bytes) -> None:
        """Pass bytes on."""
        self._client.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the client's connection too."""
        self._client.close()


class ClientSide(asyncio.Protocol):
    """Passes the bytes of a client to the provider, over a connection of its own."""

    def __init__(self, provider_port: int) -> None:
        self._provider_port = provider_port
        self._early = b""
        self._provider: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the provider."""
        self._opening = asyncio.ensure_future(self._open(cast(asyncio.Transport, transport)))

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, once there is a connection."""
        if self._provider is None:
            self._early += data
        else:
            self._provider.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the provider's connection too."""
        if self._provider is not None:
            self._provider.close()

    async def _open(self, client: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        provider, _ = await loop.create_connection(lambda: ProviderSide(client), HOST, self._provider_port)
        self._provider = provider
        if self._early:
            provider.write(self._early)


async def start_raw(provider_port: int) -> int:
    """Serve, and return the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ClientSide(provider_port), HOST, 0, backlog=4096)
    return int(server.sockets[0].getsockname()[1])


async def start_aiohttp(provider_port: int) -> int:
    """Serve, and return the port."""
    session = ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout())
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", _passing(session, f"http://{HOST}:{provider_port}"))
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0, backlog=4096)
    await site.start()
    return int(runner.addresses[0][1])


def _passing(session: ClientSession, base: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        passed = {name: request.headers[name] for name in PASSED_HEADERS if name in request.headers}
        async with session.request(
            request.method, base + request.path, data=body or None, headers=passed
        ) as answered:
            headers = {"Content-Type": answered.headers.get("Content-Type", "")}
            if answered.content_length is not None:
                whole = await answered.read()
                return web.Response(status=answered.status, body=whole, headers=headers)
            reply = web.StreamResponse(status=answered.status, headers=headers)
            await reply.prepare(request)
            async for data in answered.content.iter_any():
                await reply.write(data)
            await reply.write_eof()
            return reply

    return answer


STARTS: dict[str, Any] = {"raw": start_raw, "aiohttp": start_aiohttp}


async def serve(name: str, provider_port: int) -> None:
    """Serve until the process ends."""
    port = await STARTS[name](provider_port)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop_runner:
        loop_runner.run(serve(sys.argv[1], int(sys.argv[2])))
