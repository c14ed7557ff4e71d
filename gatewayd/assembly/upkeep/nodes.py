"""The cluster profile: the node of this process, and the duties and runs of nodes."""

import hashlib
import hmac
import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from gatewayd import __version__, ids
from gatewayd.assembly.accounts import signing_secrets
from gatewayd.bus.redis_client import RedisClient
from gatewayd.deferred_writes import DeferredWrites
from gatewayd.http.control.nodes import ControlNodeRoutes
from gatewayd.http.control.transactions import WriteTransactions
from gatewayd.http.routes import Route
from gatewayd.nodes.duties import Duties, LeasedDuties, LocalDuties
from gatewayd.nodes.member import NodeMember
from gatewayd.nodes.messages import NodeMessages
from gatewayd.nodes.records import Node
from gatewayd.nodes.runs import LocalRuns, NodeRuns, RunReaper
from gatewayd.nodes.service import NodeAdministration
from gatewayd.settings import Settings
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.migrate import known_migrations
from gatewayd.storage.nodes.leases import TortoiseLeases
from gatewayd.storage.nodes.nodes import PostgresNodeSession, TortoiseNodes
from gatewayd.storage.nodes.runs import TortoiseAnswerRuns
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import Transactor

OWN_SETTINGS: Final = frozenset(
    {
        "backup_dir",
        "control_group",
        "control_socket",
        "data_dir",
        "host",
        "http_socket",
        "http_socket_group",
        "node_name",
        "port",
        "scim_token_file",
        "tls_certificate",
        "tls_key",
    }
)
"""Settings that differ between nodes."""

FINGERPRINT_USE: Final = b"gatewayd: fingerprint of a node"
SHOWN_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class ClusterServices:
    """The node of this process, None for a daemon alone, and the duties of the nodes."""

    member: NodeMember | None
    duties: Duties
    redis: RedisClient | None = None
    """Redis for what the nodes count together; None for a daemon alone."""

    refuses_without_redis: bool = False
    """Whether requests with limits are refused while Redis is away; otherwise each node counts alone."""

    @property
    def node_id(self) -> str:
        """The id of the node, "" for a daemon alone."""
        return "" if self.member is None else self.member.id


def new_node_id(settings: Settings) -> str:
    """Return the id of a node, "" for a daemon alone."""
    return ids.new_id() if settings.cluster else ""


async def open_cluster(
    settings: Settings, database: Database, node_id: str, tasks: TaskRegistry, stack: AsyncExitStack
) -> ClusterServices:
    """Enter the cluster, unless the daemon is alone; `stack` leaves it."""
    if not node_id:
        return ClusterServices(None, LocalDuties())
    node = describe_node(settings, node_id)
    member = NodeMember(
        node, TortoiseNodes(), PostgresNodeSession(database), settings.node_lease, known_migrations()
    )
    stack.push_async_callback(member.leave)
    await member.join()
    tasks.spawn("lease of this node", member.run())
    redis = RedisClient(settings.redis_url.get_secret_value())
    stack.push_async_callback(redis.close)
    duties = LeasedDuties(TortoiseLeases(), member, tasks)
    return ClusterServices(member, duties, redis, settings.limits_without_redis == "closed")


def make_run_register(
    cluster: ClusterServices,
    deferred: DeferredWrites,
    transactor: Transactor,
    tasks: TaskRegistry,
    messages: NodeMessages,
) -> LocalRuns | NodeRuns:
    """Return the claims of messages."""
    if cluster.member is None:
        return LocalRuns()
    store, member = TortoiseAnswerRuns(), cluster.member
    runs = NodeRuns(store, member, tasks, transactor, deferred.is_pending, messages)
    tasks.spawn("stops of runs", runs.run())
    return runs


def start_reaper(
    cluster: ClusterServices, tasks: TaskRegistry, end_unclaimed: Sequence[Callable[[], Awaitable[int]]]
) -> None:
    """Start to end what dead nodes left; a daemon alone ends what its former process left at start."""
    if cluster.member is not None:
        reaper = RunReaper(TortoiseAnswerRuns(), cluster.member, cluster.duties, end_unclaimed)
        tasks.spawn("end of dead runs", reaper.run())


def control_node_rows(writes: WriteTransactions) -> Sequence[Route]:
    """Return the rows of the noun node of the control socket."""
    return ControlNodeRoutes(NodeAdministration(TortoiseNodes()), writes).routes()


def describe_node(settings: Settings, node_id: str) -> Node:
    """Return the record of this process."""
    secret = signing_secrets(settings).current.encode()
    return Node(
        id=node_id,
        name=settings.node_name or f"{socket.gethostname()}-{settings.data_dir.name}",
        version=__version__,
        migration=known_migrations()[-1],
        address=f"{settings.host}:{settings.port}" if settings.host else str(settings.http_socket),
        configuration=_digest(secret, _configuration(settings)),
        secrets=_digest(secret, FINGERPRINT_USE),
        plugins=_digest(secret, _files_below(settings.plugins_dir)),
        started_at=ids.now(),
    )


def _configuration(settings: Settings) -> bytes:
    """Return the settings that nodes have in common; a digest with a key tells nobody a secret of them."""
    # The database has the tokens of the file.
    skipped = OWN_SETTINGS if settings.is_scim_token_external else OWN_SETTINGS | {"scim_token"}
    values = {name: getattr(settings, name) for name in type(settings).model_fields if name not in skipped}
    return json.dumps(values, default=_plain, sort_keys=True).encode()


def _plain(value: Any) -> Any:
    """Return a value of a setting as JSON can hold it."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    return str(value)


def _files_below(folder: Path) -> bytes:
    """Return the names and digests of the files of plugins."""
    lines = [
        f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(folder.rglob("*.py"))
    ]
    return "\n".join(lines).encode()


def _digest(secret: bytes, value: bytes) -> str:
    return hmac.new(secret, value, "sha256").hexdigest()[:SHOWN_DIGITS]
