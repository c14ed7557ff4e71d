"""The script makes the schema that the migrations make, and takes their place in an empty database alone."""

import subprocess
import sys
from pathlib import Path

import pytest
from tortoise.connection import get_connection

from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.initial_schema import PREFIX, read_initial_schema
from gatewayd.storage.engine.location import MIGRATIONS, parse, sqlite
from gatewayd.storage.engine.migrate import check, known_migrations, migrate_open, read_status
from tests.fakes.storage.postgres import Postgres
from tests.fakes.storage.schemas import copy_migrations, postgres_script, sqlite_script
from tests.write_initial_schema import migrate_stepwise

ENGINES = ["sqlite", "postgresql"]
# Another module, so that a test of this migration on top is one of a whole package.
ADDED = """
from tortoise import migrations
from tortoise.migrations import operations as ops

class Migration(migrations.Migration):
    dependencies = [("gatewayd", "{before}")]
    operations = [ops.RunSQL("CREATE TABLE added (id INTEGER)")]
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_no_migration_is_missing(engine: str) -> None:
    schema = read_initial_schema(MIGRATIONS, engine, known_migrations())
    assert schema is not None
    assert schema.migrations == known_migrations(), "run: python -m tests.write_initial_schema"


async def test_the_script_for_sqlite_makes_what_the_migrations_make(tmp_path: Path) -> None:
    at_once, stepwise = tmp_path / "at_once.db", tmp_path / "stepwise.db"
    async with Database.open(sqlite(at_once)) as database:
        assert await migrate_open(database) == known_migrations()
        check(await read_status(database))
    with copy_migrations(tmp_path) as package:
        await migrate_stepwise(sqlite(stepwise), package)
    assert sorted(sqlite_script(at_once).split(";\n")) == sorted(sqlite_script(stepwise).split(";\n"))


async def test_the_script_for_postgresql_makes_what_the_migrations_make(
    postgres: Postgres, tmp_path: Path
) -> None:
    """Also in a schema of its own, which the account of the gateway has for its search path."""
    at_once, stepwise = postgres.create_database(), postgres.create_database()
    name = str(parse(at_once).credentials["database"])
    async with Database.open(parse(at_once)) as database:
        await get_connection(database.location.connection).execute_script("CREATE SCHEMA own")
    postgres.psql(f"ALTER DATABASE {name} SET search_path = own")
    async with Database.open(parse(at_once)) as database:
        assert await migrate_open(database) == known_migrations()
        check(await read_status(database))
    with copy_migrations(tmp_path) as package:
        await migrate_stepwise(parse(stepwise), package)
    assert postgres_script(postgres, at_once, "own") == postgres_script(postgres, stepwise)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/gatewayd.db"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.create_database()


async def test_a_later_migration_goes_on_top(url: str, tmp_path: Path) -> None:
    with copy_migrations(tmp_path) as package:
        folder = tmp_path / package
        for engine in ENGINES:
            script = f"{PREFIX} 0001_first 0002_second\nCREATE TABLE first (id INTEGER);\n"
            (folder / f"{engine}.sql").write_text(script)
        for path in folder.glob("0*.py"):
            path.unlink()
        for name in ("0001_first", "0002_second"):
            (folder / f"{name}.py").write_text(ADDED.format(before="").replace("added", "unseen"))
        (folder / "0003_added.py").write_text(ADDED.format(before="0002_second"))
        async with Database.open(parse(url)) as database:
            assert await migrate_open(database, package) == ["0001_first", "0002_second", "0003_added"]
            status = await read_status(database, package)
    assert status.applied == ["0001_first", "0002_second", "0003_added"]
    assert {"first", "added"} <= status.tables
    assert "unseen" not in status.tables


def test_a_script_of_other_migrations_is_not_used(tmp_path: Path) -> None:
    with copy_migrations(tmp_path) as package:
        path = tmp_path / package / "sqlite.sql"
        assert read_initial_schema(package, "sqlite", ["0001_first"]) is None
        path.write_text(f"{PREFIX} 0001_first 0002_gone\nCREATE TABLE first (id INTEGER);\n")
        assert read_initial_schema(package, "sqlite", ["0001_first", "0003_added"]) is None
        path.write_text(f"{PREFIX}\nCREATE TABLE first (id INTEGER);\n")
        assert read_initial_schema(package, "sqlite", ["0001_first"]) is None


@pytest.mark.process
def test_an_empty_database_needs_no_migration(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
from gatewayd.storage.engine.location import parse
from gatewayd.storage.engine.migrate import migrate

asyncio.run(migrate(parse("sqlite:///{tmp_path}/gatewayd.db")))
print([name for name in sys.modules if name.startswith("gatewayd.storage.migrations.")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
