"""An empty SQLite database with this version's schema, made once in a process, to be copied."""

import asyncio
import atexit
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from gatewayd.storage.engine.location import DatabaseLocation, sqlite
from gatewayd.storage.engine.migrate import migrate

NAME = "gatewayd.db"


@cache
def migrated_file() -> Path:
    """Return the database; nobody may change it."""
    folder = Path(tempfile.mkdtemp(prefix="gatewayd-migrated-"))
    atexit.register(shutil.rmtree, folder)
    migrate_beside(sqlite(folder / NAME))
    return folder / NAME


def migrate_beside(location: DatabaseLocation) -> None:
    """Migrate in a thread of its own, as the caller's may have a running loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(migrate(location))).result()


def migrated_copy(folder: Path) -> Path:
    """Return a copy below a folder, private as the daemon's own would be."""
    path = Path(shutil.copyfile(migrated_file(), folder / NAME))
    path.chmod(0o600)
    return path
