"""Store of tool servers and their access lists."""

from collections.abc import Sequence

from gatewayd.catalog.records import Grant
from gatewayd.plugins.servers.records import ServerType, ToolServer
from gatewayd.storage import grants
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import decode, encode, encode_optional, fits_columns
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.engine.upserts import upsert_rows
from gatewayd.storage.grants import GrantResource
from gatewayd.storage.tables.plugins import ToolServerRow


class TortoiseToolServers:
    """Implements `ToolServerStore` of `plugins.servers`; stored servers have the origin DATABASE."""

    async def list(self) -> Sequence[ToolServer]:
        """Return all servers with their grants, by id."""
        with translate_errors("list tool servers"):
            rows = await ToolServerRow.all().order_by("id")
            lists = await grants.read_all(GrantResource.TOOL_SERVER)
        return [_record_of(row, lists.get(row.id, ())) for row in rows]

    async def find(self, server_id: str) -> ToolServer | None:
        """Return one server."""
        if not fits_columns(ToolServerRow, id=server_id):
            return None
        with translate_errors("read a tool server"):
            row = await ToolServerRow.get_or_none(id=server_id)
            if row is None:
                return None
            lists = await grants.read(GrantResource.TOOL_SERVER, [server_id])
        return _record_of(row, lists.get(server_id, ()))

    async def put(self, server: ToolServer) -> None:
        """Insert or replace a server and its grants."""
        columns = {
            "id": server.id,
            "name": server.name,
            "url": server.url,
            "type": server.type.value,
            "description": server.description,
            "path": server.path,
            "key": server.key,
            "headers": encode(server.headers, "headers"),
            "spec": encode_optional(server.spec, "spec"),
            "functions": encode(server.functions, "functions"),
            "timeout": server.timeout,
            "is_active": server.is_active,
            "updated_at": server.updated_at,
            "created_at": server.created_at,
        }
        async with write_transaction("store the tool server"):
            await upsert_rows(ToolServerRow, [columns], ["id"])
            await grants.write(GrantResource.TOOL_SERVER, server.id, server.grants)

    async def remove(self, server_id: str) -> bool:
        """Delete a server and its grants."""
        if not fits_columns(ToolServerRow, id=server_id):
            return False
        async with write_transaction("remove the tool server"):
            # The order of `put` prevents a deadlock.
            removed = await ToolServerRow.filter(id=server_id).delete() > 0
            await grants.remove(GrantResource.TOOL_SERVER, server_id)
        return removed


def _record_of(row: ToolServerRow, access: Sequence[Grant]) -> ToolServer:
    return ToolServer(
        id=row.id,
        name=row.name,
        url=row.url,
        type=ServerType(row.type),
        description=row.description,
        path=row.path,
        key=row.key,
        headers=decode(row.headers, f"the headers of tool server {row.id}"),
        spec=decode(row.spec, f"the spec of tool server {row.id}"),
        functions=tuple(decode(row.functions, f"the functions of tool server {row.id}")),
        timeout=row.timeout,
        is_active=row.is_active,
        grants=tuple(access),
        updated_at=row.updated_at,
        created_at=row.created_at,
    )
