"""Routes of `/v1/tool-servers`: servers with tools, and their access lists."""

from collections.abc import Sequence
from dataclasses import replace

from aiohttp import web

from gatewayctl.wire import models as model_wire
from gatewayctl.wire import routes
from gatewayctl.wire import tool_servers as wire
from gatewayctl.wire.base import Outcome
from gatewayd.accounts.records import Actor
from gatewayd.catalog.records import Grant
from gatewayd.http.audit import note_change, note_grants
from gatewayd.http.body import read_model
from gatewayd.http.control.accounts.access_lists import AccessLists, combine_grants
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.peer import PEER
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply, timestamp
from gatewayd.http.routes import Route
from gatewayd.json_decoder import LARGE_LIMITS
from gatewayd.plugins.servers.records import ServerType, ToolServer
from gatewayd.plugins.servers.service import CHANGE_LOCK, ToolServers

MAX_BODY_BYTES = 16 * 1024 * 1024
"""Largest body in bytes; an API description may be long."""


class ControlToolServerRoutes:
    """Routes of tool servers on the control socket; those of the settings are read-only."""

    def __init__(
        self, servers: ToolServers, lists: AccessLists, viewers: ControlActors, writes: WriteTransactions
    ) -> None:
        self._servers = servers
        self._lists = lists
        self._viewers = viewers
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_TOOL_SERVERS, self.list),
            serve(routes.ADD_TOOL_SERVER, self.create),
            serve(routes.GET_TOOL_SERVER, self.show),
            serve(routes.REMOVE_TOOL_SERVER, self.remove),
            serve(routes.CHECK_TOOL_SERVER, self.check, interruptible=True),
            serve(routes.GRANT_TOOL_SERVER, self.grant),
            serve(routes.REVOKE_TOOL_SERVER, self.revoke),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `ToolServerList`."""
        found = await self._servers.list(self._operator(request))
        shown = [await self._show(server) for server in found]
        problems = list(self._servers.known.problems)
        return control_reply(wire.ToolServerList(servers=shown, problems=problems))

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer `ToolServer`."""
        return control_reply(await self._show(await self._get(request)))

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Take `NewToolServer`, answer `ToolServerWritten`; the server gets no request yet."""
        wanted = await read_model(request, wire.NewToolServer, MAX_BODY_BYTES, LARGE_LIMITS)
        async with self._writes.block(request, "tool-server add", wanted.id) as dry_run:
            server = await self._servers.create(self._operator(request), _read(wanted))
            note_change(request, server.id, {"name": server.name, "type": server.type.value})
        return await self._written(server, Outcome.CREATED, dry_run=dry_run)

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer `ToolServerWritten` with the server before its removal; conflict for one of the settings."""
        server_id = request.match_info["id"]
        async with self._writes.block(request, "tool-server remove", server_id) as dry_run:
            server = await self._get(request)
            await self._servers.remove(self._operator(request), server_id)
        return await self._written(server, Outcome.REMOVED, dry_run=dry_run)

    async def check(self, request: web.Request) -> web.StreamResponse:
        """Request the tools of the server now, answer `ToolServerCheck`."""
        server = await self._get(request)
        offer = await self._servers.check(self._operator(request), server)
        tools = [
            wire.OfferedTool(
                name=str(spec.get("name")),
                description=str(spec.get("description") or ""),
                parameters=spec.get("parameters") or {},
            )
            for spec in offer.specs
        ]
        return control_reply(
            wire.ToolServerCheck(id=server.id, title=offer.title, version=offer.version, tools=tools)
        )

    async def grant(self, request: web.Request) -> web.StreamResponse:
        """Take `Holders`, answer `ToolServerWritten`."""
        named = await self._lists.read(await read_model(request, model_wire.Holders))
        return await self._change(request, "grant", add=named, drop=())

    async def revoke(self, request: web.Request) -> web.StreamResponse:
        """Take `Holders`, answer `ToolServerWritten`."""
        named = await self._lists.read(await read_model(request, model_wire.Holders))
        return await self._change(request, "revoke-access", add=(), drop=named)

    async def _change(
        self, request: web.Request, action: str, *, add: Sequence[Grant], drop: Sequence[Grant]
    ) -> web.Response:
        server_id = request.match_info["id"]
        block = self._writes.block(request, f"tool-server {action}", server_id, alone=CHANGE_LOCK)
        async with block as dry_run:
            server = await self._get(request)
            before, after = server.grants, combine_grants(server.grants, add=add, drop=drop)
            if after != before:
                server = await self._servers.change(self._operator(request), replace(server, grants=after))
            note_grants(request, server.id, after)
        outcome = Outcome.UNCHANGED if after == before else Outcome.CHANGED
        return await self._written(server, outcome, dry_run=dry_run)

    async def _written(self, server: ToolServer, outcome: Outcome, *, dry_run: bool) -> web.Response:
        shown = await self._show(server)
        return control_reply(wire.ToolServerWritten(**shown.model_dump(), outcome=outcome, dry_run=dry_run))

    async def _show(self, server: ToolServer) -> wire.ToolServer:
        return wire.ToolServer(
            id=server.id,
            name=server.name,
            url=server.url,
            type=server.type.value,
            description=server.description,
            path=server.path,
            described=server.spec is not None,
            keyed=bool(server.key),
            headers=list(server.headers),
            functions=list(server.functions),
            timeout=server.timeout,
            is_active=server.is_active,
            origin=server.origin.value,
            grants=await self._lists.show(server.grants),
            updated_at=timestamp(server.updated_at),
            created_at=timestamp(server.created_at),
        )

    async def _get(self, request: web.Request) -> ToolServer:
        return await self._servers.get(self._operator(request), request.match_info["id"])

    def _operator(self, request: web.Request) -> Actor:
        return self._viewers.operator(request[PEER])


def _read(wanted: wire.NewToolServer) -> ToolServer:
    server = ToolServer(
        id=wanted.id,
        name=wanted.name or wanted.id,
        url=wanted.url,
        type=ServerType(wanted.type),
        description=wanted.description,
        key=wanted.key,
        headers=dict(wanted.headers),
        spec=wanted.spec,
        functions=tuple(dict.fromkeys(wanted.functions)),
        timeout=wanted.timeout,
    )
    return server if wanted.path is None else replace(server, path=wanted.path)
