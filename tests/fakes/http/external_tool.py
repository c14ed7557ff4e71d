"""A tool outside of the gateway, as people write it: an HTTP API that reads headers and posts events."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from tests.fakes.http.loop_thread import background_loop

DESCRIPTION = {
    "openapi": "3.1.0",
    "info": {"title": "Library", "description": "Looks things up", "version": "1"},
    "paths": {
        "/books/{shelf}/lookup": {
            "post": {
                "operationId": "lookup",
                "summary": "Look something up",
                "parameters": [
                    {"name": "shelf", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {"query": {"type": "string", "description": "what for"}},
                                "required": ["query"],
                            }
                        }
                    }
                },
                "responses": {"200": {"description": "what was found"}},
            }
        }
    },
}


@dataclass
class ReportingTool:
    """The tool; what it is to post in a call, to which gateway, and by whose key. `told` are the statuses."""

    url: str = ""
    gateway: str = ""
    key: str = ""
    events: Sequence[Mapping[str, Any]] = ()
    headers: list[Mapping[str, str]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    told: list[int] = field(default_factory=list)

    async def describe(self, _: web.Request) -> web.Response:
        return web.json_response(DESCRIPTION)

    async def lookup(self, request: web.Request) -> web.Response:
        self.headers.append(request.headers.copy())
        self.bodies.append((request.match_info["shelf"], await request.json()))
        # Header names are the same in every case.
        chat_id = request.headers.get("x-openwebui-chat-id") or request.headers.get("x-service-chat-id")
        message_id = request.headers.get("X-SERVICE-MESSAGE-ID")
        if chat_id and message_id:
            await self._report(f"{self.gateway}/api/v1/chats/{chat_id}/messages/{message_id}/event")
        return web.json_response({"found": "a heron"})

    async def _report(self, url: str) -> None:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            for event in self.events:
                async with session.post(url, json=event) as reply:
                    self.told.append(reply.status)
                    await reply.read()


@contextlib.contextmanager
def reporting_tool() -> Iterator[ReportingTool]:
    """Serve the tool on loopback until the end of the block."""
    tool, app = ReportingTool(), web.Application()
    app.router.add_get("/openapi.json", tool.describe)
    app.router.add_post("/books/{shelf}/lookup", tool.lookup)
    runner = web.AppRunner(app, access_log=None)

    async def start() -> None:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        tool.url = "http://{}:{}".format(*runner.addresses[0][:2])

    with background_loop() as loop:
        try:
            asyncio.run_coroutine_threadsafe(start(), loop).result(30)
            yield tool
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(30)
