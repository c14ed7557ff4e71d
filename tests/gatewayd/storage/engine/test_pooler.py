"""A connection pooler between the gateway and PostgreSQL, here PgBouncer."""

import getpass
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, cast
from unittest.mock import AsyncMock

import asyncpg
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation
from gatewayd.storage.engine.postgres import PostgresEngine
from tests.conftest import missing
from tests.fakes.daemons.daemon import await_port, free_port

pytestmark = pytest.mark.parametrize("location", ["postgres"], indirect=True)

CONFIGURATION: Final = """
[databases]
{database} = host={host} user={user}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
server_round_robin = {is_fair:d}
ignore_startup_parameters = {ignored}
"""


@contextmanager
def pooled(
    folder: Path, location: DatabaseLocation, mode: str, *, is_fair: bool = False, takes_all: bool = True
) -> Iterator[DatabaseLocation]:
    """Run PgBouncer in front of a database, and yield the location of the database behind it."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
    if program is None:
        missing("pgbouncer", "Debian: apt-get install pgbouncer")
    port = free_port()
    known = location.credentials
    ignored = ",".join(known["server_settings"]) if takes_all else ""
    text = CONFIGURATION.format(**known | {"port": port}, mode=mode, is_fair=is_fair, ignored=ignored)
    file = folder / "pgbouncer.ini"
    file.write_text(text)
    # It refuses to run as root.
    user = ["-u", "pgserver"] if getpass.getuser() == "root" else []
    log = folder / "pgbouncer.log"
    with log.open("wb") as output:
        command = [str(program), *user, str(file)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        await_port(process, port, log)
        yield replace(location, credentials={**known, "host": "127.0.0.1", "port": port})
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("is_fair", [False, True])
async def test_a_pooler_in_transaction_mode_is_refused(
    location: DatabaseLocation, tmp_path: Path, is_fair: bool
) -> None:
    """The claim of the database would be another connection's after its first transaction."""
    with pooled(tmp_path, location, "transaction", is_fair=is_fair) as behind:
        async with Database.open(behind) as database:
            for shared in (False, True):
                with pytest.raises(GatewayError, match="set the pooler to session mode") as caught:
                    await database.own(shared=shared)
                assert caught.value.kind is ErrorKind.NOT_CONFIGURED
                assert caught.value.param == "database_url"


async def test_a_pooler_that_refuses_the_limits_of_a_connection_is_told(
    location: DatabaseLocation, tmp_path: Path
) -> None:
    with pooled(tmp_path, location, "session", takes_all=False) as behind:
        with pytest.raises(GatewayError, match="a pooler in front of it, refuses the connection") as caught:
            async with Database.open(behind) as database:
                await database.own()
        # A full pooler says the same: it is no reason to stop.
        assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_a_pooler_with_idle_sessions_is_refused(location: DatabaseLocation, tmp_path: Path) -> None:
    with pooled(tmp_path, location, "transaction", is_fair=True) as behind:
        known = behind.credentials
        address = {name: known[name] for name in ("host", "port", "user", "database")}
        busy = [await asyncpg.connect(**address, statement_cache_size=0) for _ in range(8)]
        for connection in busy:
            await connection.execute("BEGIN")
        for connection in busy:
            await connection.execute("ROLLBACK")
        async with Database.open(behind) as database:
            with pytest.raises(GatewayError, match="set the pooler to session mode"):
                await database.own()
        for connection in busy:
            await connection.close()


async def test_a_claim_is_renewed_without_further_connections(
    location: DatabaseLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Database.open(location) as database:
        await database.own()
        engine = cast(PostgresEngine, database.engine)
        monkeypatch.setattr(engine, "reserve", AsyncMock(side_effect=AssertionError("no connection is left")))
        engine._claim.terminate()
        await database.ping()
        assert engine._claim is not None


async def test_a_pooler_in_session_mode_is_used(location: DatabaseLocation, tmp_path: Path) -> None:
    with pooled(tmp_path, location, "session") as behind:
        async with Database.open(behind) as first, Database.open(behind) as second:
            await first.own()
            with pytest.raises(GatewayError, match="another gatewayd"):
                await second.own()
