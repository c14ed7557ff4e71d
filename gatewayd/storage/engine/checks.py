"""Check of the database for damage, on demand and with a time limit."""

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tortoise.transactions import in_transaction

from gatewayd.deadlines import TimeLimit
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.damage import DamageError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.readers import SqliteReader, open_reader

ACTION: Final = "check the database"
MAX_PROBLEMS: Final = 20
INTERRUPTED: Final = "SQLITE_INTERRUPT"
PROGRESS_STEPS: Final = 100_000
"""Virtual machine steps of SQLite between two checks of the time limit."""
NO_DAMAGE: Final = "ok"

READ_ALL: Final = """
SET LOCAL enable_indexscan = off;
SET LOCAL enable_indexonlyscan = off;
SET LOCAL enable_bitmapscan = off
"""


class DatabaseCheck:
    """Reads the whole database.

    On SQLite it runs PRAGMA quick_check over pages and indexes. On PostgreSQL it reads every value of every
    table, which finds damaged pages and, with checksums, every changed bit.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running = asyncio.Lock()

    async def run(self, seconds: float) -> Sequence[str]:
        """Return a sentence for each damage; known damage is cleared when none is found.

        Raises timeout after `seconds`, conflict while another check runs, and unavailable.
        """
        if self._running.locked():
            raise GatewayError(ErrorKind.CONFLICT, f"cannot {ACTION}: another check runs")
        async with self._running:
            try:
                if self._database.location.path is not None:
                    problems = await self._check_file(seconds)
                else:
                    async with TimeLimit(seconds):
                        problems = await self._read_tables()
            except TimeoutError as error:
                raise GatewayError(ErrorKind.TIMEOUT, f"cannot {ACTION} within {seconds:g} s") from error
        damage = self._database.damage
        damage.clear()
        for problem in problems:
            damage.note(problem)
        return problems

    async def _check_file(self, seconds: float) -> Sequence[str]:
        """Check the file through a separate connection with an empty cache."""
        clock = _Deadline(time.monotonic() + seconds)
        async with open_reader(self._database.location) as reader:
            if not isinstance(reader, SqliteReader):
                raise RuntimeError("a database with a path is a file")
            try:
                with translate_errors(ACTION):
                    found = await reader.run(lambda connection: _quick_check(connection, clock))
            except DamageError as error:
                return [error.message]
            except _TimeLimitError as error:
                raise TimeoutError from error
            finally:
                # A cancelled check (at a stop of the daemon) ends at the next progress callback.
                clock.due = 0.0
        return [] if found == [NO_DAMAGE] else [f"the database's file is damaged: {text}" for text in found]

    async def _read_tables(self) -> Sequence[str]:
        problems = []
        for table in sorted({table for table, _ in self._database.expected_columns()}):
            try:
                with translate_errors(f"read the table {table}"):
                    await _read_table(table)
            except DamageError as error:
                problems.append(error.message)
        return problems[:MAX_PROBLEMS]


def _quick_check(connection: sqlite3.Connection, clock: "_Deadline") -> list[str]:
    """Return the findings of SQLite, only NO_DAMAGE without any; raises _TimeLimitError at the time limit."""
    connection.set_progress_handler(lambda: time.monotonic() >= clock.due, PROGRESS_STEPS)
    try:
        return [
            " ".join(str(row[0]).split()) for row in connection.execute(f"PRAGMA quick_check({MAX_PROBLEMS})")
        ]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname == INTERRUPTED:
            raise _TimeLimitError from error
        raise
    finally:
        connection.set_progress_handler(None, 0)


async def _read_table(table: str) -> None:
    async with in_transaction() as client:
        connection: Any = client
        await connection.lift_limits()
        await connection.execute_script(READ_ALL)
        # record_send reads the values that PostgreSQL stores outside of the row (TOAST), which count(*) does
        # not.
        await connection.execute_query_dict(f'SELECT count(record_send(t)) FROM "{table}" AS t')  # noqa: S608


@dataclass
class _Deadline:
    """Deadline of a check, in monotonic time."""

    due: float


class _TimeLimitError(Exception):
    """The check reached its time limit."""
