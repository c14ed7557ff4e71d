"""A process that is killed at a random moment of its changes loses none that it acknowledged."""

import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gatewayd.ingest.records import ScopeKind, SearchScope
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation, parse, sqlite
from gatewayd.storage.engine.migrate import check, known_migrations, migrate, read_status
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.stored_settings import TortoiseValues
from gatewayd.storage.tables.documents import PassageRow
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import user
from tests.fakes.storage.former_words import MIGRATION, find_former, make_former, write_package
from tests.fakes.storage.passages import open_shelf
from tests.fakes.storage.postgres import Postgres

SCRIPT = Path(__file__).with_name("killing.py")
MIGRATION_SCRIPT = Path(__file__).with_name("killing_migration.py")
ROOT = Path(__file__).parents[3]
SQLITE_ROUNDS = 25
POSTGRES_ROUNDS = 15


@dataclass
class Ledger:
    """What was acknowledged so far."""

    added: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    stored: list[int] = field(default_factory=list)
    acknowledged: int = 0

    def write(self, line: dict[str, Any]) -> None:
        self.acknowledged += 1
        match line:
            case {"added": name}:
                self.added.add(name)
            case {"removed": name}:
                self.removed.add(name)
            case {"stored": pair}:
                self.stored = pair


@contextmanager
def changing(url: str, script: Path = SCRIPT) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, str(script), url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.communicate()


def kill_in(process: subprocess.Popen[bytes], number: int, ledger: Ledger, dice: random.Random) -> None:
    """Run one round: kill the process somewhere between two of its acknowledgements."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"%d\n" % number)
    process.stdin.flush()
    pid = json.loads(process.stdout.readline())["pid"]
    for _ in range(dice.randrange(12)):
        ledger.write(json.loads(process.stdout.readline()))
    # The moment is meant to be any: this is no waiting for something.
    time.sleep(dice.random() * 0.004)
    os.kill(pid, signal.SIGKILL)
    for text in process.stdout:
        line = json.loads(text)
        if line is None:
            return
        ledger.write(line)
    raise AssertionError("the process ended by itself")


async def compare(location: DatabaseLocation, ledger: Ledger) -> None:
    """Find every acknowledged change, and of those under way all or nothing."""
    async with Database.open(location) as database:
        check(await read_status(database))
        users = {user.id for user in (await TortoiseUsers().list())[0]}
        keys = {key.id for key in await TortoiseKeys().list()}
        values = await TortoiseValues().load()
    # Gone without an acknowledgement may only be the one user whose removal was under way.
    gone = ledger.added - ledger.removed - users
    assert len(gone) <= 1, f"lost {sorted(gone)}"
    assert all(int(name.partition("-")[2]) % 3 == 2 for name in gone), f"lost {sorted(gone)}"
    assert not users & ledger.removed
    assert users == keys
    assert values.get("LEFT") == values.get("RIGHT")
    assert values.get("LEFT", []) >= ledger.stored
    # What was in flight and is settled now is known from here on.
    ledger.removed |= gone
    ledger.added |= users


async def run_rounds(location: DatabaseLocation, url: str, rounds: int, path: Path | None = None) -> Ledger:
    ledger, dice = Ledger(), random.Random(20260101)
    with changing(url) as process:
        for number in range(rounds):
            kill_in(process, number, ledger, dice)
            if path is not None:
                with closing(sqlite3.connect(path)) as connection:
                    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            await compare(location, ledger)
    return ledger


async def test_sqlite_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    location = sqlite(tmp_path / "gatewayd.db")
    await migrate(location)
    path = location.path
    ledger = await run_rounds(location, f"sqlite:///{path}", SQLITE_ROUNDS, path)
    assert ledger.acknowledged > SQLITE_ROUNDS


async def test_postgres_keeps_what_it_acknowledged(postgres: Postgres) -> None:
    url = postgres.create_database()
    await migrate(parse(url))
    ledger = await run_rounds(parse(url), url, POSTGRES_ROUNDS)
    assert ledger.acknowledged > POSTGRES_ROUNDS


async def test_a_loss_would_be_found(migrated_copy: Path) -> None:
    for added in ({"0-1"}, {"0-2", "0-5"}):
        with pytest.raises(AssertionError, match="lost"):
            await compare(sqlite(migrated_copy), Ledger(added=added))


# A migration that kills its process when it has changed a table.
DEADLY = f"""
import os, signal
from tortoise import migrations
from tortoise.migrations import operations as ops
from gatewayd.storage.engine.fields import NameColumn

async def die(apps, editor):
    os.kill(os.getpid(), signal.SIGKILL)

class Migration(migrations.Migration):
    dependencies = [("gatewayd", "{known_migrations()[-1]}")]
    operations = [
        ops.AddField(model_name="UserRow", name="nickname", field=NameColumn(max_length=10, null=True)),
        ops.RunPython(die),
    ]
"""
MIGRATE = """
import asyncio, sys
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import parse
from gatewayd.storage.engine.migrate import migrate_open

async def run():
    async with Database.open(parse(sys.argv[1])) as database:
        await migrate_open(database, "deadly")

asyncio.run(run())
"""


@pytest.fixture
def deadly(tmp_path: Path) -> Path:
    """Return the directory of the package `deadly`: this version's migrations and one that kills."""
    package = tmp_path / "packages" / "deadly"
    shutil.copytree(ROOT / "gatewayd" / "storage" / "migrations", package)
    (package / "9999_deadly.py").write_text(DEADLY)
    return package.parent


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_migration_that_is_killed_has_changed_nothing(
    engine: str, deadly: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/gatewayd.db"
    if engine == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.create_database()
    location = parse(url)
    await migrate(location)
    async with Database.open(location):
        await TortoiseUsers().add(user("a"), None)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{deadly}"}
    for _ in range(2):
        died = subprocess.run([sys.executable, "-c", MIGRATE, url], env=environment, cwd=ROOT, check=False)
        assert died.returncode == -signal.SIGKILL
        async with Database.open(location) as database:
            status = await read_status(database)
            assert ("users", "nickname") not in {
                (row["table"], row["column"]) for row in await database.engine.columns()
            }
            check(status)
            assert await TortoiseUsers().find("a") == user("a")
    if engine == "sqlite":
        with closing(sqlite3.connect(tmp_path / "gatewayd.db.before-9999_deadly")) as copy:
            assert copy.execute("SELECT id FROM users").fetchall() == [("a",)]


FORMER = {
    "f": ["a fox", "本章介绍机器学习的基本概念", "one wolf"],
    "g": ["another fox", "วิธีการตั้งค่าฐานข้อมูล"],
}
FOXES = [1, 4]
ALL_STATEMENTS = 1_000_000


def statements_until_done(process: subprocess.Popen[bytes]) -> Iterator[int]:
    """Yield, after each round that was killed, before which statement that was."""
    for number in itertools.count(1, 3):
        status = run_until(process, number)
        if status == 0:
            return
        assert status == -signal.SIGKILL
        yield number


def run_until(process: subprocess.Popen[bytes], number: int) -> int:
    """Run one round that is killed before this statement, and return its exit status."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"%d\n" % number)
    process.stdin.flush()
    return int(process.stdout.readline())


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_the_words_are_made_anew_wholly_or_not_at_all(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/gatewayd.db"
    if engine == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.create_database()
    write_package(tmp_path / "packages")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    location = parse(url)
    await make_former(location, FORMER)
    killed: list[int] = []
    with changing(url, MIGRATION_SCRIPT) as process:
        for number in statements_until_done(process):
            async with Database.open(location) as database:
                pending = (await read_status(database)).pending
                if pending[0] != MIGRATION:
                    # It was killed in a later one: nothing of this one can be lost any more.
                    break
                killed.append(number)
                assert ("passages", "segmented") not in {
                    (row["table"], row["column"]) for row in await database.engine.columns()
                }
                assert await find_former(database, "foxes") == FOXES
                assert await find_former(database, "机器学习") == []
        assert run_until(process, ALL_STATEMENTS) == 0
    # It was killed within each of its parts, and not only before the first one.
    assert killed[-1] > 10
    async with Database.open(location) as database, open_shelf(database) as shelf:
        check(await read_status(database))
        scope = SearchScope(ScopeKind.COLLECTION, "a")
        assert await shelf.words.check(scope) == []
        assert len(await shelf.find(scope, "foxes")) == len(FOXES)
        assert await shelf.find(scope, "机器学习") == [FORMER["f"][1]]
        assert await shelf.find(scope, "ฐานข้อมูล") == [FORMER["g"][1]]
        assert await PassageRow.filter(segmented__isnull=True).count() == 3
