"""Status, plan, migration and return of a schema, on both engines."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayd.backup.places import GatewayPlace
from gatewayd.backup.schema_changes import SchemaWork
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import parse, sqlite
from gatewayd.storage.engine.lock import JOURNAL, lock_folder
from gatewayd.storage.engine.migrate import apply_migrations, known_migrations
from gatewayd.storage.transfer.engine_copy import fill_postgres
from gatewayd.storage.transfer.sqlite_files import applied_migrations
from tests.fakes.storage.gateway_place import add_user, make_place, rows, run
from tests.fakes.storage.postgres import Postgres

KNOWN = list(known_migrations())
OLDER = KNOWN[:16]
PENDING = KNOWN[16:]


def silent(words: str) -> None:
    pass


async def make_older(path: Path) -> None:
    async with Database.open(sqlite(path)) as database:
        await apply_migrations(database, OLDER)


@pytest.fixture(scope="module")
def older_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("older") / "older.db"
    asyncio.run(make_older(path))
    add_user(path, "ann")
    return path


@pytest.fixture
def place(tmp_path: Path, older_file: Path) -> GatewayPlace:
    place = make_place(tmp_path, is_migrated=False)
    path_of(place).write_bytes(older_file.read_bytes())
    return place


def path_of(place: GatewayPlace) -> Path:
    assert place.location.path is not None
    return place.location.path


async def test_an_upgrade_and_the_way_back(place: GatewayPlace) -> None:
    work = SchemaWork(place, silent)
    before = await work.status()
    assert (list(before.applied), list(before.pending)) == (OLDER, PENDING)
    assert "run gatewayctl database migrate" in before.problem
    plan = await work.plan()
    assert [name for name, _ in plan] == PENDING
    assert any("CREATE TABLE" in statement for _, sql in plan for statement in sql)
    assert (await work.status()).pending == before.pending

    assert list(await work.migrate()) == PENDING
    after = await work.status()
    assert (after.problem, list(after.pending)) == ("", [])
    assert [each.label for each in after.copies] == [PENDING[0]]
    assert await work.migrate() == []

    add_user(path_of(place), "bob")
    copy = await work.rollback("")
    assert copy.label == PENDING[0]
    assert applied_migrations(path_of(place)) == OLDER
    assert rows(path_of(place), "SELECT id FROM users") == [("ann",)]
    [kept] = place.data_dir.glob("gatewayd.db.replaced-*")
    assert rows(kept, "SELECT id FROM users ORDER BY id") == [("ann",), ("bob",)]
    assert list(await work.migrate()) == PENDING


async def test_what_cannot_be_done_changes_nothing(place: GatewayPlace) -> None:
    work = SchemaWork(place, silent)
    with lock_folder(place.data_dir):
        for refused in (work.migrate, lambda: work.rollback("")):
            with pytest.raises(GatewayError) as refusal:
                await refused()
            assert refusal.value.kind is ErrorKind.CONFLICT
    with pytest.raises(GatewayError, match="there is no copy") as refusal:
        await work.rollback("0001_none")
    assert refusal.value.kind is ErrorKind.NOT_FOUND
    path_of(place).with_name("gatewayd.db.before-0099").write_bytes(path_of(place).read_bytes()[:9000])
    with pytest.raises(GatewayError):
        await work.rollback("0099")
    (place.data_dir / JOURNAL).write_text("{}")
    for refused in (work.migrate, lambda: work.rollback("")):
        with pytest.raises(GatewayError, match="a restore was interrupted"):
            await refused()
    assert applied_migrations(path_of(place)) == OLDER


async def test_a_newer_schema_is_told(place: GatewayPlace) -> None:
    run(
        path_of(place),
        "INSERT INTO tortoise_migrations (app, name, applied_at) VALUES ('gatewayd', '99_x', 1)",
    )
    state = await SchemaWork(place, silent).status()
    assert "schema is newer" in state.problem
    assert "gatewayctl database rollback" in state.problem


@pytest.mark.slow
@pytest.mark.real("PostgreSQL")
async def test_postgresql_is_kept_before_and_comes_back(
    tmp_path: Path, older_file: Path, postgres: Postgres
) -> None:
    location = parse(postgres.create_database())
    await fill_postgres(older_file, location, replace=False, progress=silent)
    place = replace(make_place(tmp_path, is_migrated=False), location=location)
    work = SchemaWork(place, silent)
    assert list(await work.migrate()) == PENDING
    [copy] = work.copies()
    assert applied_migrations(copy.path) == OLDER
    await work.rollback("")
    state = await work.status()
    assert list(state.applied) == OLDER
    assert rows(copy.path, "SELECT id FROM users") == [("ann",)]
