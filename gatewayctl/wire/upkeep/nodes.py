"""Nodes of a cluster on the wire."""

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written


class Node(Reply):
    """One process of the gateway.

    `state` is alive, draining or dead. `configuration`, `secrets` and `plugins` are fingerprints: equal ones
    mean equal contents. `seconds` is the rest of the lease, negative since its end. `leases` are duties;
    `files` are in work, `answers` are being made, and `connections` are those to the database.
    """

    id: str
    name: str
    state: str
    version: str = ""
    migration: str = ""
    address: str = ""
    configuration: str = ""
    secrets: str = ""
    plugins: str = ""
    seconds: float = 0.0
    leases: list[str] = Field(default_factory=list)
    files: int = 0
    answers: int = 0
    connections: int = 0
    started_at: str | None = None


class NodeList(Reply):
    """Nodes by name, and sentences about what differs between living ones and should not."""

    nodes: list[Node]
    warnings: list[str] = Field(default_factory=list)


class NodeDrain(Request):
    """Whether the node is to begin nothing new."""

    draining: bool = True


class NodeWritten(Written, Node):
    """A node after a change."""
