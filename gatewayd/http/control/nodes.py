"""Routes of `/v1/nodes`: the nodes of the cluster, from any of them."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayctl.wire.upkeep import nodes as wire
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import WriteTransactions, control_reply, timestamp
from gatewayd.http.routes import Route
from gatewayd.nodes.records import Node, NodeUse
from gatewayd.nodes.service import NodeAdministration, warnings_about


class ControlNodeRoutes:
    """Routes of nodes on the control socket."""

    def __init__(self, nodes: NodeAdministration, writes: WriteTransactions) -> None:
        self._nodes = nodes
        self._writes = writes

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [
            serve(routes.LIST_NODES, self.list),
            serve(routes.DRAIN_NODE, self.drain),
            serve(routes.REMOVE_NODE, self.remove),
        ]

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Answer `NodeList`; a daemon alone has no nodes."""
        found = await self._nodes.list()
        warnings = warnings_about([node for node, _ in found])
        return control_reply(
            wire.NodeList(nodes=[wire.Node(**_fields(*pair)) for pair in found], warnings=[*warnings])
        )

    async def drain(self, request: web.Request) -> web.StreamResponse:
        """Take `NodeDrain`, answer `NodeWritten`; the node notices within a quarter of its lease."""
        wanted = await read_model(request, wire.NodeDrain)
        ref = request.match_info["node"]
        async with self._writes.block(request, "node drain", ref) as dry_run:
            node = await self._nodes.drain(ref, is_draining=wanted.draining)
            note_change(request, node.id, {"draining": wanted.draining})
        return control_reply(wire.NodeWritten(**_fields(node), outcome=Outcome.CHANGED, dry_run=dry_run))

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Answer `NodeWritten`; conflict for a living node."""
        ref = request.match_info["node"]
        async with self._writes.block(request, "node remove", ref) as dry_run:
            node = await self._nodes.remove(ref)
        return control_reply(wire.NodeWritten(**_fields(node), outcome=Outcome.REMOVED, dry_run=dry_run))


def _fields(node: Node, use: NodeUse | None = None) -> dict[str, object]:
    used = use or NodeUse()
    state = ("draining" if node.is_draining else "alive") if node.is_alive else "dead"
    return {
        "id": node.id,
        "name": node.name,
        "state": state,
        "version": node.version,
        "migration": node.migration,
        "address": node.address,
        "configuration": node.configuration,
        "secrets": node.secrets,
        "plugins": node.plugins,
        "seconds": round(node.seconds, 1),
        "leases": [*used.leases],
        "files": used.jobs,
        "answers": used.runs,
        "connections": used.connections,
        "started_at": timestamp(node.started_at),
    }
