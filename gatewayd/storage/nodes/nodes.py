"""Store of nodes, and the session that renews the lease of one."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

from gatewayd.nodes.records import Node, NodePulse, NodeUse
from gatewayd.storage.engine.database import Database, ReservedConnection
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.fields import fits_columns
from gatewayd.storage.engine.location import APP
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import write_transaction
from gatewayd.storage.tables.nodes import NodeRow

NOW: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
"""Milliseconds by the clock of the database; `now()` would be the start of the transaction."""

ALIVE: Final = f"(SELECT id FROM nodes WHERE until > {NOW})"  # noqa: S608 - constants

RENEW: Final = (
    f"UPDATE nodes SET until = {NOW} + $2 WHERE id = $1 RETURNING {NOW}, is_draining, "  # noqa: S608
    f"(SELECT array_agg(name ORDER BY id) FROM tortoise_migrations WHERE app = '{APP}')"
)
SELECT_NODES: Final = f"SELECT *, (until - {NOW}) / 1000.0 AS seconds FROM nodes ORDER BY name, id"  # noqa: S608
SELECT_USES: Final = (
    "SELECT n.id, "  # noqa: S608 - constants
    "(SELECT array_agg(name ORDER BY name) FROM leases"
    f"  WHERE node_id = n.id AND until > {NOW}) AS leases, "
    "(SELECT COUNT(*) FROM ingest_jobs WHERE lease_owner = n.id) AS jobs, "
    "(SELECT COUNT(*) FROM answer_runs WHERE node_id = n.id) AS runs, "
    "(SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"
    "  AND application_name = 'gatewayd ' || left(n.id, 36)) AS connections FROM nodes n"
)
COLUMNS: Final = (
    "id",
    "name",
    "version",
    "migration",
    "address",
    "configuration",
    "secrets",
    "plugins",
    "is_draining",
    "started_at",
)


class TortoiseNodes:
    """Implements `nodes.interfaces.NodeStore`."""

    async def add(self, node: Node, seconds: float) -> None:
        """Insert a node with a lease of that many seconds."""
        async with write_transaction("enter the cluster") as client:
            statement = SqlStatement(client)
            values = statement.bind_all([getattr(node, name) for name in COLUMNS])
            until = f"{NOW} + {statement.bind(milliseconds(seconds))}"
            await statement.run(
                f"INSERT INTO nodes ({', '.join(COLUMNS)}, until) VALUES ({values}, {until})"  # noqa: S608
            )

    async def list(self) -> Sequence[Node]:
        """Return all nodes, by name and start."""
        with translate_errors("list nodes"):
            rows = await SqlStatement(NodeRow._meta.db).run(SELECT_NODES)
        return [Node(**{name: row[name] for name in COLUMNS}, seconds=float(row["seconds"])) for row in rows]

    async def uses(self) -> Mapping[str, NodeUse]:
        """Return what each node works on, by its id."""
        with translate_errors("list nodes"):
            rows = await SqlStatement(NodeRow._meta.db).run(SELECT_USES)
        return {
            row["id"]: NodeUse(tuple(row["leases"] or ()), row["jobs"], row["runs"], row["connections"])
            for row in rows
        }

    async def change_draining(self, node_id: str, *, is_draining: bool) -> bool:
        """Tell a node to drain, or not to; False without the node."""
        if not fits_columns(NodeRow, id=node_id):
            return False
        async with write_transaction("change the node"):
            return await NodeRow.filter(id=node_id).update(is_draining=is_draining) > 0

    async def remove(self, node_id: str, *, dead: bool = False) -> bool:
        """Delete a node, with `dead` only after the end of its lease."""
        if not fits_columns(NodeRow, id=node_id):
            return False
        async with write_transaction("remove the node") as client:
            statement = SqlStatement(client)
            condition = f" AND until <= {NOW}" if dead else ""
            return bool(
                await statement.run(
                    f"DELETE FROM nodes WHERE id = {statement.bind(node_id)}{condition} RETURNING id"  # noqa: S608
                )
            )


class PostgresNodeSession:
    """Implements `nodes.interfaces.NodeSession`; a lost connection is opened again by the next renewal."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: ReservedConnection | None = None

    async def renew(self, node_id: str, seconds: float) -> NodePulse | None:
        """Extend the lease of a node; None when the node is removed. Raises unavailable."""
        with translate_errors("renew the lease of this node"):
            async with AsyncExitStack() as stack:
                # After an error or a cancellation nobody knows what the connection would answer next.
                stack.push_async_callback(self.close)
                if self._connection is None:
                    self._connection = await self._database.engine.reserve()
                rows = await self._connection.rows(RENEW, node_id, milliseconds(seconds))
                stack.pop_all()
        return _pulse_of(rows[0]) if rows else None

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def milliseconds(seconds: float) -> int:
    """Return a duration in the unit of the columns `until`."""
    return round(seconds * 1000)


def _pulse_of(row: Sequence[Any]) -> NodePulse:
    now, is_draining, migrations = row
    return NodePulse(now / 1000, is_draining, tuple(migrations or ()))
