"""Nodes, their pulse, and leases."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.tasks import TaskOwner

RUN_TAKEN: Final = "run_taken"
"""Code of the conflict of a run whose message another run has claimed."""


@dataclass(frozen=True, slots=True)
class Node:
    """One process of the gateway.

    `migration` is the newest migration that its version ships. `configuration`, `secrets` and `plugins` are
    digests, which are the same on nodes that have the same ones. `started_at` is in epoch seconds by the
    clock of the node. `seconds` is the time until its lease ends, negative for the time since its end; only
    the store fills it.
    """

    id: str
    name: str
    version: str = ""
    migration: str = ""
    address: str = ""
    configuration: str = ""
    secrets: str = ""
    plugins: str = ""
    is_draining: bool = False
    started_at: int = 0
    seconds: float = 0.0

    @property
    def is_alive(self) -> bool:
        """Whether the lease of the node runs."""
        return self.seconds > 0


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What a node works on: names of its leases, number of files in work, of answers, and of connections to
    the database."""

    leases: Sequence[str] = ()
    jobs: int = 0
    runs: int = 0
    connections: int = 0


@dataclass(frozen=True, slots=True)
class NodePulse:
    """The reply of the database to a renewal: its time in epoch seconds, whether the node is to drain, and
    the applied migrations."""

    now: float
    is_draining: bool
    migrations: Sequence[str]


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease of this node. Each new holder of a name has a higher `fence`."""

    name: str
    fence: int


@dataclass(frozen=True, slots=True)
class RunClaim:
    """The right of one run to write its answer, until another run claims the message.

    `fence` is higher than that of every earlier claim. `owner` names the user, the chat and the message.
    """

    task_id: str
    owner: TaskOwner
    fence: int = 0


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A claim in the database, with its node, and whether somebody wants the run to stop."""

    claim: RunClaim
    node_id: str
    is_stopped: bool
    started_at: int


@dataclass(frozen=True, slots=True)
class NodeMessage:
    """A message to one node, or with an empty `to` to all others; `body` is JSON of the `kind`.

    Messages with one `key` arrive in their order, and in one order with the events of a user of that id.
    The channel fills `sender`.
    """

    kind: str
    body: bytes
    key: str = ""
    to: str = ""
    sender: str = ""
