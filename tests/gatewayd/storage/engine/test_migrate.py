import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tortoise.connection import get_connection

from gatewayd.accounts.records import MembershipSource, ProviderIdentity
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.records import Node
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation, parse, sqlite
from gatewayd.storage.engine.migrate import (
    COMMAND,
    MigrationStatus,
    check,
    known_migrations,
    migrate,
    migrate_open,
    read_status,
    refuse_contraction,
)
from gatewayd.storage.groups import TortoiseGroups
from gatewayd.storage.keys import TortoiseKeys
from gatewayd.storage.nodes.nodes import TortoiseNodes
from gatewayd.storage.scim.identity_index import keys_of
from gatewayd.storage.users import TortoiseUsers
from tests.fakes.accounts.records import key, user
from tests.fakes.storage.postgres import Postgres

FIRST = "0001_initial"
PRESENT = known_migrations()
LATER_ONES = (*PRESENT[1:], "9999_later")

# What a later version could bring: SQLite has to make the table of the users anew, which keys refer to.
LATER = f"""
from tortoise import migrations
from tortoise.migrations import operations as ops
from gatewayd.storage.engine.fields import NameColumn

class Migration(migrations.Migration):
    dependencies = [("gatewayd", "{PRESENT[-1]}")]
    operations = [
        ops.AlterField(model_name="UserRow", name="username", field=NameColumn(max_length=300, null=True)),
        ops.AddField(model_name="UserRow", name="nickname", field=NameColumn(max_length=10, null=True)),
    ]
"""
# The same, failing at its end.
BROKEN = LATER.replace("    ]\n", '        ops.RunSQL("INSERT INTO nowhere VALUES (1)"),\n    ]\n')


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseLocation:
    """Return the location of a database without tables."""
    if request.param == "sqlite":
        return sqlite(tmp_path / "gatewayd.db")
    postgres: Postgres = request.getfixturevalue("postgres")
    return parse(postgres.create_database())


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the package `later_migrations`: those of this version and one more."""
    folder = tmp_path / "packages" / "later_migrations"
    present = Path(sys.modules["gatewayd.storage.engine.migrate"].__file__ or "").parents[1] / "migrations"
    shutil.copytree(present, folder)
    (folder / "9999_later.py").write_text(LATER)
    monkeypatch.syspath_prepend(folder.parent)
    for name in [name for name in sys.modules if name.startswith("later_migrations")]:
        monkeypatch.delitem(sys.modules, name)
    return folder


async def run_sql(database: Database, *statements: str) -> None:
    for statement in statements:
        await get_connection(database.location.connection).execute_query(statement)


async def refusal(database: Database, package: str = "gatewayd.storage.migrations") -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        check(await read_status(database, package))
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    return caught.value


async def test_an_empty_database_gets_every_table(empty: DatabaseLocation) -> None:
    async with Database.open(empty) as database:
        assert (await read_status(database)).is_fresh
    assert await migrate(empty) == list(known_migrations())
    assert await migrate(empty) == []
    async with Database.open(empty) as database:
        check(await read_status(database))
        await TortoiseUsers().add(user("u1"), None)


async def test_an_open_database_is_migrated_in_place(empty: DatabaseLocation) -> None:
    async with Database.open(empty) as database:
        assert await migrate_open(database) == list(known_migrations())
        check(await read_status(database))


async def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    await migrate(sqlite(tmp_path / "gatewayd.db"))
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


async def test_a_newer_schema_is_refused(database: Database) -> None:
    await run_sql(
        database,
        "INSERT INTO tortoise_migrations (app, name, applied_at) "
        "VALUES ('gatewayd', '9999_new', '2030-01-01')",
    )
    error = await refusal(database)
    assert error.code == "schema_newer"
    assert "9999_new" in error.message
    with pytest.raises(GatewayError, match="newer"):
        await migrate_open(database)


async def test_an_older_schema_is_refused_until_it_is_migrated(database: Database, later: Path) -> None:
    error = await refusal(database, later.name)
    assert error.code == "schema_older"
    assert COMMAND in error.message
    assert await migrate_open(database, later.name) == ["9999_later"]
    check(await read_status(database, later.name))
    assert (await refusal(database)).code == "schema_newer"


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM tortoise_migrations",
        "DROP TABLE tortoise_migrations",
        "ALTER TABLE users DROP COLUMN name_key",
        "DROP TABLE revoked_tokens",
    ],
)
async def test_a_half_migrated_schema_is_refused(database: Database, damage: str) -> None:
    await run_sql(database, damage)
    error = await refusal(database)
    assert error.code == "schema_broken"
    assert COMMAND in error.message
    with pytest.raises(GatewayError, match="half migrated"):
        await migrate_open(database)


async def test_a_database_of_something_else_is_refused(empty: DatabaseLocation) -> None:
    async with Database.open(empty) as database:
        await run_sql(database, "CREATE TABLE recipes (id INTEGER)")
        assert (await refusal(database)).code == "schema_broken"
    with pytest.raises(GatewayError, match="not gatewayd's"):
        await migrate(empty)


async def test_remaking_a_table_keeps_what_refers_to_it(database: Database, later: Path) -> None:
    await TortoiseUsers().add(user("u1", username="n" * 255), "hash")
    await TortoiseKeys().add(key("k1", "u1"))
    await migrate_open(database, later.name)
    assert await TortoiseKeys().find("k1") == key("k1", "u1")
    assert await TortoiseUsers().find_password_hash("u1") == "hash"
    await TortoiseUsers().remove("u1")
    assert await TortoiseKeys().list() == []


async def test_a_migration_that_fails_leaves_nothing(database: Database, later: Path) -> None:
    (later / "9999_later.py").write_text(BROKEN)
    await TortoiseUsers().add(user("u1"), "hash")
    with pytest.raises(GatewayError, match="cannot migrate"):
        await migrate_open(database, later.name)
    check(await read_status(database))
    columns = await database.engine.columns()
    assert "nickname" not in {row["column"] for row in columns}
    assert await TortoiseUsers().count() == 1


async def test_a_first_migration_that_fails_leaves_an_empty_database(
    empty: DatabaseLocation, later: Path
) -> None:
    for name in LATER_ONES:
        (later / f"{name}.py").unlink()
    (later / f"{FIRST}.py").write_text(
        (later / f"{FIRST}.py").read_text().rstrip().removesuffix("]")
        + """
        ops.RunSQL("INSERT INTO nowhere VALUES (1)"),
    ]
"""
    )
    async with Database.open(empty) as database:
        with pytest.raises(GatewayError, match="cannot migrate"):
            await migrate_open(database, later.name)
        assert (await read_status(database)).is_fresh


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_the_file_is_copied_before_it_is_migrated(database: Database, later: Path) -> None:
    await TortoiseUsers().add(user("u1"), "hash")
    await migrate_open(database, later.name)
    path = database.location.path
    assert path is not None
    copy = path.with_name(f"{path.name}.before-9999_later")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not copy.with_name(f"{copy.name}.part").exists()
    connection = sqlite3.connect(copy)
    try:
        assert connection.execute("SELECT id FROM users").fetchall() == [("u1",)]
        assert connection.execute("SELECT name FROM tortoise_migrations").fetchall() == [
            (name,) for name in known_migrations()
        ]
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
async def test_rows_that_would_refer_to_nothing_stop_a_migration(database: Database, later: Path) -> None:
    (later / "9999_later.py").write_text(
        LATER.replace("    ]\n", '        ops.RunSQL("DELETE FROM users"),\n    ]\n')
    )
    await TortoiseUsers().add(user("u1"), None)
    await TortoiseKeys().add(key("k1", "u1"))
    with pytest.raises(GatewayError, match="a foreign key would be violated"):
        await migrate_open(database, later.name)
    assert await TortoiseUsers().count() == 1
    with pytest.raises(GatewayError, match="does not exist"):
        await TortoiseKeys().add(key("k2", "gone"))


async def test_a_database_in_use_is_not_migrated(location: DatabaseLocation) -> None:
    async with Database.open(location) as database:
        await database.own()
        with pytest.raises(GatewayError, match="another gatewayd") as caught:
            await migrate(location)
        assert caught.value.kind is ErrorKind.CONFLICT


async def test_the_schema_contracts_once_every_node_can_do_without(postgres: Postgres) -> None:
    location = parse(postgres.migrated_database())
    known = known_migrations()
    async with Database.open(location) as database:
        nodes = TortoiseNodes()
        await nodes.add(Node("n1", "old", migration="0001_initial"), 30)
        await nodes.add(Node("n2", "dead", migration="0001_initial"), -1)
        await nodes.add(Node("n3", "new", migration="9999_less_contract"), 30)
        status = await read_status(database)
        await refuse_contraction(database, replace(status, known=[*known, "9998_more"]))
        contracted = replace(status, known=[*known, "9999_less_contract"])
        with pytest.raises(GatewayError, match="update and restart old first") as caught:
            await refuse_contraction(database, contracted)
        assert caught.value.kind is ErrorKind.CONFLICT
        await nodes.remove("n1")
        await refuse_contraction(database, contracted)


async def test_nodes_work_on_while_the_schema_is_expanded(postgres: Postgres) -> None:
    location = parse(postgres.migrated_database())
    async with Database.open(location) as database:
        await database.own(shared=True)
        assert list(await migrate(location, shared=True)) == []
        with pytest.raises(GatewayError, match="another gatewayd"):
            await migrate(location)


async def test_of_two_who_migrate_at_once_one_does(postgres: Postgres) -> None:
    location = parse(postgres.create_database())

    async def start() -> list[str]:
        async with Database.open(location) as database:
            await database.own(shared=True)
            return list(await migrate_open(database))

    results = await asyncio.gather(*(start() for _ in range(4)), return_exceptions=True)
    applied = [name for result in results if isinstance(result, list) for name in result]
    assert sorted(applied) == known_migrations()


@pytest.mark.process
def test_looking_at_the_schema_imports_no_migration(migrated_copy: Path) -> None:
    program = f"""
import asyncio, sys
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import parse
from gatewayd.storage.engine.migrate import check, read_status

async def look():
    async with Database.open(parse("sqlite:///{migrated_copy}")) as database:
        check(await read_status(database))

asyncio.run(look())
print([name for name in sys.modules if name.startswith("gatewayd.storage.migrations.")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_gap_in_the_history_is_no_history() -> None:
    with pytest.raises(GatewayError, match="a gap"):
        check(MigrationStatus(["0002_b"], ["0001_a", "0002_b"], frozenset({"users"})))


def test_the_exact_schema_passes() -> None:
    check(MigrationStatus(["0001_a"], ["0001_a"], frozenset({"users"})))


# Users of the first version: every shape that the columns had, and two who share what only one may have.
OLD_USERS = [
    ("u1", "ada@example.org", "Ada  Löve", 5, None, None),
    ("u2", "bob@example.org", "BOB", 3, '{"okta": {"external_id": "0"}}', '{"google": {"sub": "1"}, "x": 1}'),
    (
        *("u3", "cid@example.org", "Cid", 4),
        *('{"okta": {"external_id": "0", "more": "ü"}, "b": {"external_id": 5}}', "[]"),
    ),
    ("u4", "BOB@example.org", "Bob", 4, '{"a": {"external_id": ""}}', '{"google": {"sub": "1"}}'),
]


async def make_first_version(database: Database, later: Path, *users: tuple[object, ...]) -> None:
    """Migrate to the first version alone and put users into it."""
    for name in LATER_ONES:
        (later / f"{name}.py").unlink()
    assert await migrate_open(database, later.name) == [FIRST]
    columns = "id, email, name, created_at, scim, oauth"
    rows = [", ".join("NULL" if value is None else f"'{value}'" for value in values) for values in users]
    await run_sql(
        database,
        f"INSERT INTO users ({columns}, name_key, role, active, profile_image_url, token_version, "
        "profile, last_active_at, updated_at) VALUES "
        + ", ".join(f"({texts}, 'k', 'user', TRUE, '', 0, '{{}}', 0, 7)" for texts in rows),
    )


@pytest.fixture
async def upgraded(empty: DatabaseLocation, later: Path) -> AsyncIterator[Database]:
    """Return a database of the first version that was brought to this one."""
    async with Database.open(empty) as database:
        await make_first_version(database, later, *OLD_USERS)
        await run_sql(
            database,
            "INSERT INTO groups (id, name, name_key, description, permissions, data, meta, updated_at, "
            "created_at) VALUES ('g', 'g', 'g', '', '{}', '{}', '{}', 8, 1)",
            "INSERT INTO group_members (group_id, user_id, source, created_at) "
            "VALUES ('g', 'u1', 'manual', 1), ('g', 'u2', 'scim', 1)",
        )
        assert await migrate_open(database) == list(LATER_ONES[:-1])
        check(await read_status(database))
        yield database


async def test_what_was_there_is_found_and_goes_on(
    upgraded: Database, caplog: pytest.LogCaptureFixture
) -> None:
    await check_what_two_had(upgraded, caplog)
    await check_memberships()
    await check_users(upgraded)
    await check_what_an_older_one_keeps()


async def check_users(upgraded: Database) -> None:
    """Users that were there have keys and are found."""
    users, query = TortoiseUsers(), upgraded.engine.execute_query_dict
    rows = {row["id"]: row for row in await query("SELECT * FROM users")}
    for user_id in ("u1", "u2", "u3"):
        found = await users.find(user_id)
        assert found is not None
        assert (found.identity, found.modified_us) == (ProviderIdentity(), 7_000_000)
        assert keys_of(found).items() <= rows[user_id].items()
        assert await users.change(replace(found, name="New Name"))
    emails = await query("SELECT user_id, value_key, type_key, is_primary FROM user_emails ORDER BY user_id")
    assert [tuple(row.values()) for row in emails] == [
        (user_id, email.lower(), "work", True) for user_id, email, *_ in OLD_USERS
    ]
    with pytest.raises(GatewayError, match="e-mail address is taken"):
        await users.add(user("u5", email="ADA@example.org"), None)


async def check_what_two_had(upgraded: Database, caplog: pytest.LogCaptureFixture) -> None:
    """What two had is kept by the older, and told."""
    query = upgraded.engine.execute_query_dict
    keys = await query("SELECT id, user_name_key FROM users WHERE id IN ('u2', 'u4') ORDER BY id")
    assert [tuple(row.values()) for row in keys] == [("u2", "bob@example.org"), ("u4", "u4")]
    ids = await query("SELECT user_id, provider, external_id FROM user_external_ids")
    assert [tuple(row.values()) for row in ids] == [("u2", "okta", "0")]
    subjects = await query("SELECT user_id, provider, subject FROM user_subjects")
    assert [tuple(row.values()) for row in subjects] == [("u2", "google", "1")]
    told = {
        (record.__dict__["user_id"], record.getMessage())
        for record in caplog.get_records("setup")
        if record.name.endswith("0002_provisioning")
    }
    assert told == {
        ("u4", "a user has the user_name of an older one"),
        ("u3", "a user has the external_id of an older one"),
        ("u4", "a user has the subject of an older one"),
    }


async def check_what_an_older_one_keeps() -> None:
    """What an older user keeps is shown by no other."""
    users = TortoiseUsers()
    found = {user_id: await users.find(user_id) for user_id in ("u2", "u3", "u4")}
    stores = {user_id: each and (each.scim, each.oauth) for user_id, each in found.items()}
    assert stores == {
        "u2": ({"okta": {"external_id": "0"}}, {"google": {"sub": "1"}, "x": 1}),
        "u3": ({"okta": {"more": "ü"}, "b": {"external_id": 5}}, []),
        "u4": ({"a": {"external_id": ""}}, None),
    }
    newer = found["u3"]
    assert newer is not None
    assert await users.change(replace(newer, scim={"okta": {"external_id": "1"}}))


async def check_memberships() -> None:
    """Memberships that were there stay, and others may come."""
    groups = TortoiseGroups()
    group = await groups.find("g")
    assert group is not None
    assert (group.scim, group.modified_us) == (None, 8_000_000)
    assert await groups.count_members(["g"]) == {"g": 2}
    assert await groups.add_members("g", ["u1", "u2"], source=MembershipSource.SCIM, at=2) == 1
    assert await groups.list_sources("g", ["u1", "u2"]) == {
        "u1": [MembershipSource.MANUAL, MembershipSource.SCIM],
        "u2": [MembershipSource.SCIM],
    }


async def test_a_thousand_users_of_one_second_are_all_migrated(empty: DatabaseLocation, later: Path) -> None:
    async with Database.open(empty) as database:
        await make_first_version(
            database, later, *((f"u{n}", f"{n}@x", "N", 1, None, None) for n in range(1001))
        )
        await migrate_open(database)
        counted = await database.engine.execute_query_dict(
            "SELECT COUNT(DISTINCT user_name_key) AS keys, COUNT(*) AS emails FROM users "
            "JOIN user_emails ON user_id = users.id AND value_key = user_name_key"
        )
        assert counted == [{"keys": 1001, "emails": 1001}]
        index = await database.engine.execute_query_dict("SELECT COUNT(*) AS rows FROM user_emails")
        assert index == [{"rows": 1001}]
