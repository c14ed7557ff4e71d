"""Write the scripts beside the migrations, sqlite.sql and postgresql.sql: the schema that they make together.

Run from the top of the repository after a new migration: python -m tests.write_initial_schema
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.initial_schema import PREFIX
from gatewayd.storage.engine.location import DatabaseLocation, parse, sqlite
from gatewayd.storage.engine.migrate import known_migrations, migrate_open
from tests.fakes.storage.postgres import start_postgres
from tests.fakes.storage.schemas import copy_migrations, postgres_script, sqlite_script

TARGET: Final = Path(__file__).resolve().parent.parent / "gatewayd" / "storage" / "migrations"
HEADER: Final = f"{PREFIX} {' '.join(known_migrations())}\n"


async def migrate_stepwise(location: DatabaseLocation, package: str) -> None:
    """Make the schema by the migrations of a package without scripts."""
    async with Database.open(location) as database:
        await migrate_open(database, package)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, copy_migrations(Path(name)) as package:
        location = sqlite(Path(name) / "gatewayd.db")
        asyncio.run(migrate_stepwise(location, package))
        (TARGET / "sqlite.sql").write_text(HEADER + sqlite_script(Path(name) / "gatewayd.db"))
        server = start_postgres(Path(name))
        try:
            url = server.create_database()
            asyncio.run(migrate_stepwise(parse(url), package))
            (TARGET / "postgresql.sql").write_text(HEADER + postgres_script(server, url))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
