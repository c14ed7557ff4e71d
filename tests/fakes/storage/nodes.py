"""Nodes and leases in memory, with a clock that a test moves."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.records import HeldLease, Node, NodePulse, NodeUse


@dataclass
class FakeMembership:
    """Implements `NodeMembership` as a test sets it."""

    id: str = "n1"
    is_owner: bool = True
    is_steady: bool = True
    is_draining: bool = False
    time: int = 1000

    def clock(self) -> int:
        return self.time


UNREACHABLE = GatewayError(ErrorKind.UNAVAILABLE, "cannot reach the database: it is away")


class MemoryNodes:
    """Implements `NodeStore` and `NodeSession`. `offset` sets its clock apart from the node's."""

    def __init__(self, offset: float = 0.0) -> None:
        self.now = 1000.0
        self.offset = offset
        self.nodes: dict[str, Node] = {}
        self.until: dict[str, float] = {}
        self.leases: dict[str, tuple[str, int, float]] = {}
        self.migrations: tuple[str, ...] = ("0001_initial",)
        self.is_away = False
        self.is_closed = False

    def elapsed(self) -> float:
        """The clock since boot of the node."""
        return self.now

    async def add(self, node: Node, seconds: float) -> None:
        self.nodes[node.id] = node
        self.until[node.id] = self.now + seconds

    async def list(self) -> Sequence[Node]:
        return [replace(node, seconds=self.until[node.id] - self.now) for node in self.nodes.values()]

    async def uses(self) -> Mapping[str, NodeUse]:
        return {node_id: NodeUse() for node_id in self.nodes}

    async def change_draining(self, node_id: str, *, is_draining: bool) -> bool:
        if node_id in self.nodes:
            self.nodes[node_id] = replace(self.nodes[node_id], is_draining=is_draining)
        return node_id in self.nodes

    async def remove(self, node_id: str, *, dead: bool = False) -> bool:
        if self.is_away:
            raise UNREACHABLE
        if node_id not in self.nodes or (dead and self.until[node_id] > self.now):
            return False
        del self.nodes[node_id]
        return True

    async def renew(self, node_id: str, seconds: float) -> NodePulse | None:
        if self.is_away:
            raise UNREACHABLE
        if node_id not in self.nodes:
            return None
        self.until[node_id] = self.now + seconds
        return NodePulse(self.now + self.offset, self.nodes[node_id].is_draining, self.migrations)

    async def close(self) -> None:
        self.is_closed = True


class MemoryLeases:
    """Implements `LeaseStore`."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, int]] = {}
        self.is_away = False

    async def take(self, name: str, node_id: str, seconds: float) -> HeldLease | None:
        holder, fence = self.held.get(name, ("", 0))
        if holder:
            return None
        self.held[name] = (node_id, fence + 1)
        return HeldLease(name, fence + 1)

    async def renew(self, lease: HeldLease, seconds: float) -> bool:
        if self.is_away:
            raise UNREACHABLE
        return self.held[lease.name][1] == lease.fence

    async def release(self, lease: HeldLease) -> None:
        if self.is_away:
            raise UNREACHABLE
        if self.held[lease.name][1] == lease.fence:
            self.held[lease.name] = ("", lease.fence)

    @asynccontextmanager
    async def fenced(self, lease: HeldLease) -> AsyncIterator[None]:
        if self.held[lease.name][1] != lease.fence:
            raise GatewayError(ErrorKind.CONFLICT, "cannot write", code="lease_taken")
        yield
