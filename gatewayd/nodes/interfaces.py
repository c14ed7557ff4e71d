"""Interfaces of the cluster. Every duration is measured by the clock of the database."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from gatewayd.nodes.records import ClaimedRun, HeldLease, Node, NodeMessage, NodePulse, NodeUse, RunClaim
from gatewayd.tasks import TaskOwner


class NodeStore(Protocol):
    """The nodes."""

    async def add(self, node: Node, seconds: float) -> None:
        """Insert a node with a lease of that many seconds."""
        ...

    async def list(self) -> Sequence[Node]:
        """Return all nodes, by name and start."""
        ...

    async def uses(self) -> Mapping[str, NodeUse]:
        """Return what each node works on, by its id."""
        ...

    async def change_draining(self, node_id: str, *, is_draining: bool) -> bool:
        """Tell a node to drain, or not to; False without the node."""
        ...

    async def remove(self, node_id: str, *, dead: bool = False) -> bool:
        """Delete a node, with `dead` only after the end of its lease; its jobs and leases are free then."""
        ...

    async def prune(self) -> int:
        """Delete the nodes that have been dead for a day, and return their number."""
        ...


class NodeSession(Protocol):
    """A connection of its own for the renewals of a node."""

    async def renew(self, node_id: str, seconds: float) -> NodePulse | None:
        """Extend the lease of a node; None when the node is removed. Raises unavailable."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class LeaseStore(Protocol):
    """Leases by name."""

    async def take(self, name: str, node_id: str, seconds: float) -> HeldLease | None:
        """Take a lease that nobody has, whose end is past or whose node is dead; None when it is taken."""
        ...

    async def renew(self, lease: HeldLease, seconds: float) -> bool:
        """Extend a lease; False when another node has taken it."""
        ...

    async def release(self, lease: HeldLease) -> None:
        """Give a lease back; nothing happens when another node has taken it."""
        ...

    def fenced(self, lease: HeldLease) -> AbstractAsyncContextManager[None]:
        """Run a transaction in which nobody can take the lease; conflict when another node has taken it."""
        ...


class NodeMembership(Protocol):
    """What services know of the node that they run on."""

    @property
    def id(self) -> str:
        """The id of the node, which another process never has."""
        ...

    @property
    def is_owner(self) -> bool:
        """Whether the lease of the node certainly runs; False also while the database cannot be reached."""
        ...

    @property
    def is_steady(self) -> bool:
        """Whether the node has renewed its lease for long enough that other living nodes have, too."""
        ...

    @property
    def is_draining(self) -> bool:
        """Whether the node is to begin nothing new."""
        ...

    def clock(self) -> int:
        """Return the time of the database in epoch seconds, or a little less, never more."""
        ...


class RunStore(Protocol):
    """The messages that nodes are answering."""

    async def claim(
        self, node_id: str, runs: Sequence[tuple[str, TaskOwner]], *, at: int
    ) -> Sequence[RunClaim]:
        """Claim messages for runs, each a pair of a task id and its owner; earlier claims of them are over.

        Raises invalid_request for an id of a chat or message that is too long.
        """
        ...

    async def hold(self, claim: RunClaim) -> bool:
        """Lock a claim for the caller's transaction; False when it is over."""
        ...

    async def end(self, claim: RunClaim) -> None:
        """Delete a claim."""
        ...

    async def list(self, node_id: str | None = None) -> Sequence[ClaimedRun]:
        """Return the claims of all nodes, or of one, oldest first."""
        ...

    async def stop(self, task_id: str) -> bool:
        """Ask the node of a run to stop it; False without the run."""
        ...

    async def remove_dead(self) -> int:
        """Delete the claims of nodes whose lease is over, and return their number."""
        ...


MessageListener = Callable[[NodeMessage], None]


class NodeChannel(Protocol):
    """Carries messages between living nodes. A message may be lost; none arrives twice."""

    @property
    def is_shared(self) -> bool:
        """Whether there may be other nodes."""
        ...

    @property
    def is_usable(self) -> bool:
        """Whether messages may reach other nodes now."""
        ...

    @property
    def node_id(self) -> str:
        """The id by which other nodes address this one."""
        ...

    def tell(self, message: NodeMessage) -> bool:
        """Send a message without waiting; return False if it certainly reaches nobody."""
        ...

    def hear(self, listener: MessageListener) -> None:
        """Call `listener` for every further message of another node to this one or to all."""
        ...
