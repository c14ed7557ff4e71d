"""Table of tool servers. Keys and headers are secret: they are compared and set, and never shown."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gatewayd.plugins.servers.config import MASK
from gatewayd.plugins.servers.records import ServerOrigin, ServerType, ToolServer
from gatewayd.plugins.servers.service import ToolServers, check_whole, restore_secrets
from gatewayd.state.collections import SIDES, checked_references
from gatewayd.state.interfaces import StateTable
from gatewayd.state.records import (
    Fields,
    ObjectChange,
    StateAction,
    StateObject,
    StateSnapshot,
    located,
    refused,
)
from gatewayd.state.scope import StateScope

_PARAMETERS: Final = {name: name for name in ("url", "path", "key", "headers", "spec")} | {
    "info.name": "name",
    "info.description": "description",
    "config.timeout": "timeout",
}
_PLAIN: Final = ("url", "name", "description", "path", "key", "spec", "timeout")


class ToolServerTable(StateTable):
    """Tool servers by id; those of the settings are read-only."""

    table = "tool_servers"
    secrets = frozenset({"key", "headers"})

    def __init__(self, servers: ToolServers) -> None:
        self._servers = servers

    async def read(self, scope: StateScope) -> Mapping[str, StateObject]:
        """Return all servers, and tell `scope` their ids."""
        found = await self._servers.list(scope.actor)
        scope.servers = {each.id for each in found}
        return {
            each.id: StateObject(
                _fields(each, scope), self.secrets, is_own=each.origin is ServerOrigin.DATABASE
            )
            for each in found
        }

    async def check(
        self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject], scope: StateScope
    ) -> Mapping[str, Fields]:
        """Return the servers; raises for a change of one of the settings."""
        present = {each.id: each for each in await self._servers.list(scope.actor)}
        result: dict[str, Fields] = {}
        for name, fields in wanted.items():
            if name not in held and "url" not in fields:
                raise refused(self.path(name, "url"), "a new tool server needs one")
            with located(self.path(name), _PARAMETERS):
                server = _changed(fields, name, present.get(name))
                check_whole(server)
            normal = _fields(server, scope)
            references = checked_references(self, name, fields, scope)
            result[name] = {each: references.get(each, normal[each]) for each in fields}
            own = name not in held or held[name].is_own
            if not own and any(held[name].fields[each] != value for each, value in result[name].items()):
                raise refused(self.path(name), "it comes from tool_server_connections of the settings")
        return result

    def announce(self, snapshot: StateSnapshot, scope: StateScope) -> None:
        """Add new servers to the ids, and remove those that leave."""
        scope.servers |= set(snapshot.wanted)
        scope.servers -= set(snapshot.leaving)

    async def write(self, change: ObjectChange, scope: StateScope) -> None:
        """Create, change or remove a server."""
        if change.action is StateAction.DELETE:
            await self._servers.remove(scope.actor, change.name)
            return
        values = change.values
        if change.action is StateAction.CREATE:
            server = _changed(values, change.name, None)
            await self._servers.create(scope.actor, replace(server, grants=scope.grants(values)))
            return
        held = await self._servers.get(scope.actor, change.name)
        server = _changed(values, change.name, held)
        if any(side in values for side in SIDES):
            server = replace(server, grants=scope.grants(values, held.grants))
        await self._servers.change(scope.actor, server)


def _fields(server: ToolServer, scope: StateScope) -> dict[str, Any]:
    return {
        "type": server.type.value,
        **{name: getattr(server, name) for name in _PLAIN},
        "headers": dict(server.headers),
        "functions": list(server.functions),
        "active": server.is_active,
        **scope.sides(server.grants),
    }


def _changed(fields: Fields, server_id: str, held: ToolServer | None) -> ToolServer:
    """Return a server with the fields set; secrets that are not given stay while the address does."""
    if held is None:
        base = ToolServer(id=server_id, name=server_id, url="")
    else:
        base = replace(held, key=MASK if held.key else "", headers=dict.fromkeys(held.headers, MASK))
    values = {name: fields[name] for name in _PLAIN if name in fields}
    if "type" in fields:
        values["type"] = ServerType(fields["type"])
    if "headers" in fields:
        values["headers"] = dict(fields["headers"])
    if "functions" in fields:
        values["functions"] = tuple(dict.fromkeys(fields["functions"]))
    if "active" in fields:
        values["is_active"] = fields["active"]
    server = replace(base, **values)
    return server if held is None else restore_secrets(server, held)
