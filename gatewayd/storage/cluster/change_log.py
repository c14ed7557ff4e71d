"""The change log in PostgreSQL, which triggers of the migration 0021_cluster_changes write."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol

import orjson
from tortoise.connection import get_connection

from gatewayd.cluster.records import Change, LogReading
from gatewayd.nodes.member import CONTRACTING
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import translate_errors

CHANNEL: Final = "gatewayd_changes"
MAX_CHANGES: Final = 1000
"""Rows of one reading; a node that is further behind empties its caches."""

KEPT_ROWS: Final = 10_000
KEPT_SECONDS: Final = 3600
"""Rows that are older than this are removed, except the last KEPT_ROWS."""

READ_ACTION: Final = "read the change log"

# One statement, which is one snapshot. A server that is restored or promoted has another identifier or
# timeline; pg_current_wal_insert_lsn fails on a standby, whose answer would be old.
READ: Final = f"""
SELECT v,
    (SELECT system_identifier FROM pg_control_system())
        || '/' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
        || '/' || (SELECT oid FROM pg_database WHERE datname = current_database()) AS identity,
    (SELECT max(name) FROM tortoise_migrations
        WHERE app = 'gatewayd' AND right(name, {len(CONTRACTING)}) = '{CONTRACTING}') AS contraction,
    (SELECT coalesce(json_agg(json_build_array(version, kind, subject) ORDER BY version), '[]')::text
        FROM (SELECT version, kind, subject FROM cluster_changes WHERE version > $1 AND version <= v
            ORDER BY version LIMIT {MAX_CHANGES}) AS rows) AS changes
FROM cluster_version WHERE id = 1
"""  # noqa: S608 - constants

PRUNE: Final = f"""
DELETE FROM cluster_changes
WHERE version <= (SELECT v FROM cluster_version WHERE id = 1) - {KEPT_ROWS}
    AND at < clock_timestamp() - interval '{KEPT_SECONDS} seconds'
"""  # noqa: S608 - constants


class ListeningEngine(Protocol):
    """The part of the engine for PostgreSQL that listens."""

    def listening(self, channel: str, notice: Callable[[], None]) -> AbstractAsyncContextManager[Any]:
        """Yield a connection apart from the pool."""
        ...


class PostgresChangeLink:
    """Implements `cluster.interfaces.ChangeLink`."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener

    async def read(self, after: int) -> LogReading:
        """Read the log after a version."""
        with translate_errors(READ_ACTION):
            [row] = await self._listener.query(READ, after)
        return reading_of(row)


class PostgresChangeLog:
    """Implements `cluster.interfaces.ChangeLog` over an open database."""

    def __init__(self, database: Database) -> None:
        self._name = database.engine.connection_name
        engine: Any = database.engine
        self._engine: ListeningEngine = engine

    async def read(self, after: int) -> LogReading:
        """Read the log after a version, on a connection of the pool."""
        client: Any = get_connection(self._name)
        with translate_errors(READ_ACTION):
            [row] = await client.execute_query_dict(READ, [after])
        return reading_of(row)

    @asynccontextmanager
    async def listen(self, notice: Callable[[], None]) -> AsyncIterator[PostgresChangeLink]:
        """Yield a connection of its own, which calls `notice` after each commit of changes and at its end."""
        async with self._engine.listening(CHANNEL, notice) as listener:
            yield PostgresChangeLink(listener)

    async def prune(self) -> None:
        """Remove the rows that no node needs; one that does empties its caches."""
        client: Any = get_connection(self._name)
        with translate_errors("prune the change log"):
            await client.execute_query(PRUNE)


def reading_of(row: Mapping[str, Any]) -> LogReading:
    """Return a reading from its row."""
    changes = [Change(*each) for each in orjson.loads(row["changes"])]
    return LogReading(row["identity"], row["v"], row["contraction"] or "", changes)
