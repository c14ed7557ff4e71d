"""The change log of the database, and whether this process follows it."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from gatewayd.cluster.freshness import ALWAYS_FRESH
from gatewayd.cluster.interfaces import Freshness
from gatewayd.cluster.invalidation import InvalidationMap
from gatewayd.cluster.reader import ChangeReader
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings import Settings
from gatewayd.storage.cluster.change_log import PostgresChangeLog
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.migrate import known_migrations


@dataclass(slots=True)
class ChangeServices:
    """What this process knows of the changes of others.

    Without the cluster profile there is no reader. `log` is that of a PostgreSQL database, which grows in any
    profile.
    """

    caches: InvalidationMap
    freshness: Freshness = ALWAYS_FRESH
    reader: ChangeReader | None = None
    log: PostgresChangeLog | None = None
    running: Callable[[], Mapping[str, Set[str]]] = field(default=dict)
    """Returns the accounts with running requests, each with the sessions of these requests."""


async def open_changes(settings: Settings, database: Database) -> ChangeServices:
    """Return the services at the present version of the log; what is read from now on may be remembered.

    Raises not_configured for the cluster profile on SQLite.
    """
    caches = InvalidationMap()
    if database.location.is_sqlite:
        if settings.cluster:
            raise GatewayError(
                ErrorKind.NOT_CONFIGURED,
                "cannot use the cluster profile: it needs PostgreSQL, and database_url names a SQLite file",
                param="cluster",
            )
        return ChangeServices(caches)
    log = PostgresChangeLog(database)
    if not settings.cluster:
        return ChangeServices(caches, log=log)
    reader = ChangeReader(log, caches, known_migrations()[-1])
    await reader.open()
    return ChangeServices(caches, reader, reader, log)
