"""Tool servers in memory."""

from collections.abc import Sequence

from gatewayd.plugins.servers.records import ToolServer


class MemoryServers:
    """A `ToolServerStore` in memory."""

    def __init__(self, *servers: ToolServer) -> None:
        self.rows = {server.id: server for server in servers}

    async def list(self) -> Sequence[ToolServer]:
        return [self.rows[server_id] for server_id in sorted(self.rows)]

    async def find(self, server_id: str) -> ToolServer | None:
        return self.rows.get(server_id)

    async def put(self, server: ToolServer) -> None:
        self.rows[server.id] = server

    async def remove(self, server_id: str) -> bool:
        return self.rows.pop(server_id, None) is not None
