"""A process that is killed at one of the statements of a migration.

Run as `python killing_migration.py DATABASE_URL`. Each number on standard input starts a round: a fork of
this process (whose imports are done) migrates the database and kills itself before that statement; when it
has ended, this process writes a line with its exit status.
"""

import asyncio
import itertools
import os
import signal
import sys
from typing import Any

from gatewayd.storage.engine import postgres, sqlite
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import parse
from gatewayd.storage.engine.migrate import migrate_open


def die_at(last: int) -> None:
    """Have this process killed before a statement."""
    statements = itertools.count(1)
    for kind in (sqlite.SqliteTransaction, postgres.PostgresTransaction):
        acquire = kind.acquire_connection

        def counted(self: Any, acquire: Any = acquire) -> Any:
            if next(statements) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return acquire(self)

        setattr(kind, "acquire_connection", counted)  # noqa: B010 - a method is not to be assigned to


async def migrate() -> None:
    async with Database.open(parse(sys.argv[1])) as database:
        await migrate_open(database)


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            die_at(int(line))
            asyncio.run(migrate())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
