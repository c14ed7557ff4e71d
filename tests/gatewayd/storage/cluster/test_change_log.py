"""The change log on a real PostgreSQL: numbers in the order of commits, and what is logged."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg
import pytest

from gatewayd.cluster.records import ChangeKind, LogReading
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.cluster import change_log
from gatewayd.storage.cluster.change_log import PostgresChangeLog, reading_of
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.location import DatabaseLocation, parse
from tests.fakes.cluster.history import Seen, check_order
from tests.fakes.storage.postgres import Postgres

USER = (
    "INSERT INTO users (id, email, name, name_key, role, active, profile_image_url, token_version, profile,"
    " last_active_at, updated_at, created_at, user_name_key)"
    " SELECT 'u' || n, 'u' || n || '@example.org', 'u', 'u', 'user', true, '', 0, '{}', 0, 0, 0, 'u' || n"
    " FROM generate_series($1::int, $2::int) AS n"
)
WRITERS = 8
CHANGES = 25


@pytest.fixture
def location(postgres: Postgres) -> DatabaseLocation:
    return parse(postgres.migrated_database(), pool_size=5)


@pytest.fixture
async def database(location: DatabaseLocation) -> AsyncIterator[Database]:
    async with Database.open(location) as opened:
        yield opened


async def connect(location: DatabaseLocation) -> Any:
    wanted = {name: location.credentials[name] for name in ("host", "port", "user", "password", "database")}
    return await asyncpg.connect(**wanted)


@pytest.fixture
async def connection(location: DatabaseLocation, database: Database) -> AsyncIterator[Any]:
    """Return a connection of somebody else, such as a person with psql, with the users u1 to u3."""
    opened = await connect(location)
    await opened.execute(USER.replace("$1::int", "1").replace("$2::int", "3"))
    yield opened
    await opened.close()


def kinds(reading: LogReading) -> list[tuple[str, str]]:
    return [(change.kind, change.subject) for change in reading.changes]


async def logged(database: Database, connection: Any, *statements: str) -> list[tuple[str, str]]:
    """Return what a transaction with these statements logs."""
    log = PostgresChangeLog(database)
    before = await log.read(0)
    async with connection.transaction():
        for statement in statements:
            await connection.execute(statement)
    after = await log.read(before.version)
    assert [each.version for each in after.changes] == list(range(before.version + 1, after.version + 1))
    return kinds(after)


async def test_a_fresh_log_is_empty_and_names_the_database(database: Database) -> None:
    reading = await PostgresChangeLog(database).read(0)
    assert (reading.version, list(reading.changes)) == (0, [])
    system, timeline, number = reading.identity.split("/")
    assert int(system)
    assert timeline == "00000001"
    assert int(number)
    assert reading.contraction == ""


async def test_only_a_migration_that_contracts_is_told(database: Database, connection: Any) -> None:
    insert = "INSERT INTO tortoise_migrations (app, name, applied_at) VALUES ('gatewayd', $1, now())"
    for name, told in (
        ("0098_wider", ""),
        ("0098_xcontract", ""),
        ("0099_narrower_contract", "0099_narrower_contract"),
        ("0100_wider", "0099_narrower_contract"),
    ):
        await connection.execute(insert, name)
        assert (await PostgresChangeLog(database).read(0)).contraction == told


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("UPDATE users SET name = 'new' WHERE id = 'u1'", [("user", "u1")]),
        (
            "UPDATE users SET active = false, token_version = 1 WHERE id = 'u1'",
            [("user", "u1"), ("user_out", "u1"), ("user_signed_out", "u1")],
        ),
        ("UPDATE users SET role = 'pending' WHERE id = 'u1'", [("user", "u1"), ("user_out", "u1")]),
        ("DELETE FROM users WHERE id = 'u1'", [("user_removed", "u1")]),
        ("TRUNCATE users CASCADE", [("key", ""), ("member", ""), ("user", ""), ("user_removed", "")]),
        ("INSERT INTO revoked_tokens VALUES ('j1', 'u1', 9)", [("session", "u1/j1")]),
        (
            "INSERT INTO stored_values VALUES ('ENABLE_SIGNUP', 'true', 0, 'me')",
            [("setting", "ENABLE_SIGNUP")],
        ),
        (
            "INSERT INTO models VALUES ('a/b', 'u1', 'n', NULL, '{}', '{}', true, 0, 0)",
            [("model", "a/b")],
        ),
        (
            "INSERT INTO access_grants (resource_type, resource_id, principal_type, principal_id, permission)"
            " VALUES ('knowledge', 'k', 'user', '*', 'read'), ('model', 'a/b', 'user', '*', 'read')",
            [("grant", "knowledge/k"), ("grant", "model/a/b")],
        ),
        (
            "INSERT INTO plugins (family, id, kind, user_id, name, content, description, manifest, meta,"
            " specs, valves, is_active, is_global, origin, missing, updated_at, created_at)"
            " VALUES ('function', 'f', 'filter', 'u1', '', '', '', '{}', '{}', '[]', '{}', true, true,"
            " 'database', '[]', 0, 0)",
            [("plugin", "function/f")],
        ),
        (
            "INSERT INTO tool_servers VALUES ('s', '', '', 'openapi', '', '', '', '{}', NULL, '[]', NULL,"
            " true, 0, 0)",
            [("tool_server", "s")],
        ),
        (
            "INSERT INTO limits VALUES ('l', 'user', 'u1', '', '', 1, NULL, NULL, '[]', NULL, 0, 0)",
            [("limit", "l")],
        ),
        (
            "INSERT INTO scim_tokens (id, digest, created_at) VALUES (7, 'd', 0), (8, 'e', 0)",
            [("scim_token", "7"), ("scim_token", "8")],
        ),
        ("TRUNCATE scim_tokens", [("scim_token", "")]),
    ],
)
async def test_a_change_is_logged(
    database: Database, connection: Any, statement: str, changes: Sequence[tuple[str, str]]
) -> None:
    assert await logged(database, connection, statement) == changes
    assert {kind for kind, _ in changes} <= set(ChangeKind)


async def test_a_retired_or_removed_scim_token_is_logged(database: Database, connection: Any) -> None:
    await logged(database, connection, "INSERT INTO scim_tokens (id, digest, created_at) VALUES (7, 'd', 0)")
    retired = "UPDATE scim_tokens SET retired_at = 1 WHERE digest = 'd'"
    assert await logged(database, connection, retired) == [("scim_token", "7")]
    assert await logged(database, connection, retired) == []
    assert await logged(database, connection, "DELETE FROM scim_tokens") == [("scim_token", "7")]


async def test_memberships_groups_and_keys_are_logged(database: Database, connection: Any) -> None:
    group = "INSERT INTO groups VALUES ('g', 'g', 'g', '', NULL, '{}', '{}', '{}', 0, 0)"
    member = (
        "INSERT INTO group_members (group_id, user_id, source, created_at)"
        " VALUES ('g', 'u1', 'manual', 0), ('g', 'u2', 'manual', 0)"
    )
    key = "INSERT INTO api_keys VALUES ('k', 'n', 'n', 'd', 'p', NULL, NULL, 0, 'u1')"
    assert await logged(database, connection, group, key) == []
    assert await logged(database, connection, member) == [("member", "u1"), ("member", "u2")]
    assert await logged(database, connection, """UPDATE groups SET permissions = '{"a": {}}'""") == [
        ("group", "g")
    ]
    moved = "UPDATE group_members SET user_id = 'u3' WHERE user_id = 'u1'"
    assert await logged(database, connection, moved) == [("member", "u1"), ("member", "u3")]
    assert await logged(database, connection, "DELETE FROM groups") == [
        ("group", "g"),
        ("member", "u2"),
        ("member", "u3"),
    ]
    assert await logged(database, connection, "UPDATE api_keys SET expires_at = 7") == [("key", "u1")]
    assert await logged(database, connection, "DELETE FROM api_keys") == [("key", "u1")]


async def test_what_nobody_remembers_is_not_logged(database: Database, connection: Any) -> None:
    await connection.execute("INSERT INTO api_keys VALUES ('k', 'n', 'n', 'd', 'p', NULL, NULL, 0, 'u1')")
    await connection.execute("INSERT INTO revoked_tokens VALUES ('j1', 'u1', 9)")
    unchanged = "UPDATE users SET name = name, settings = settings"
    assert (
        await logged(
            database,
            connection,
            "UPDATE users SET last_active_at = 5, updated_at = 5, modified_us = 5",
            "UPDATE api_keys SET last_used_at = 5",
            "UPDATE groups SET updated_at = 5",
            "DELETE FROM revoked_tokens",
            "UPDATE plugins SET problem = NULL",
            unchanged,
        )
        == []
    )


async def test_equal_changes_of_a_transaction_are_one_and_a_savepoint_takes_its_own_back(
    database: Database, connection: Any
) -> None:
    log = PostgresChangeLog(database)
    async with connection.transaction():
        await connection.execute("UPDATE users SET name = 'a' WHERE id = 'u1'")
        await connection.execute("UPDATE users SET name = 'b' WHERE id = 'u1'")
        nested = connection.transaction()
        await nested.start()
        await connection.execute("UPDATE users SET name = 'c' WHERE id = 'u2'")
        await nested.rollback()
        assert (await log.read(0)).version == 0
    assert kinds(await log.read(0)) == [("user", "u1")]
    with pytest.raises(RuntimeError):
        async with connection.transaction():
            await connection.execute("UPDATE users SET name = 'd'")
            raise RuntimeError
    assert (await log.read(0)).version == 1
    assert await connection.fetchval("SELECT count(*) FROM cluster_pending") == 0


@pytest.mark.parametrize(("count", "rows"), [(100, 100), (101, 1)])
async def test_many_subjects_are_one_row(database: Database, connection: Any, count: int, rows: int) -> None:
    await connection.execute(USER.replace("$1::int", "1001").replace("$2::int", "2000"))
    by_statement = f"UPDATE users SET name = 'n' WHERE id IN (SELECT id FROM users ORDER BY id LIMIT {count})"
    found = await logged(database, connection, by_statement)
    assert len(found) == rows
    assert (("user", "") in found) is (rows == 1)
    one_by_one = [f"DELETE FROM users WHERE id = 'u{1001 + number}'" for number in range(count)]
    found = await logged(database, connection, *one_by_one, "UPDATE users SET name = 'x' WHERE id = 'u1'")
    assert len(found) == rows + 1
    assert (("user_removed", "") in found) is (rows == 1)
    assert ("user", "u1") in found


async def test_a_bulk_insert_notes_one_row(database: Database, connection: Any) -> None:
    members = (
        "INSERT INTO group_members (group_id, user_id, source, created_at)"
        " SELECT 'g', id, 'scim', 0 FROM users"
    )
    await connection.execute("INSERT INTO groups VALUES ('g', 'g', 'g', '', NULL, '{}', '{}', '{}', 0, 0)")
    await connection.execute(USER.replace("$1::int", "1001").replace("$2::int", "3000"))
    async with connection.transaction():
        await connection.execute(members)
        assert await connection.fetchval("SELECT count(*) FROM cluster_pending") == 1
    assert kinds(await PostgresChangeLog(database).read(0)) == [("member", "")]


async def test_the_first_to_change_does_not_hold_up_the_first_to_commit(
    database: Database, location: DatabaseLocation, connection: Any
) -> None:
    other = await connect(location)
    try:
        slow, quick = connection.transaction(), other.transaction()
        await slow.start()
        await connection.execute("UPDATE users SET name = 'slow' WHERE id = 'u1'")
        await quick.start()
        await other.execute("UPDATE users SET name = 'quick' WHERE id = 'u2'")
        await asyncio.wait_for(quick.commit(), 5)
        await slow.commit()
    finally:
        await other.close()
    assert kinds(await PostgresChangeLog(database).read(0)) == [("user", "u2"), ("user", "u1")]


async def write(location: DatabaseLocation, number: int) -> list[str]:
    """Change a user of one's own many times, roll every third change back; return the committed names."""
    connection = await connect(location)
    done = []
    try:
        for round_number in range(CHANGES):
            transaction = connection.transaction()
            await transaction.start()
            name = f"w{number}-{round_number}"
            await connection.execute("INSERT INTO stored_values VALUES ($1, '1', 0, 'w')", name)
            await asyncio.sleep((number * 7 + round_number * 3) % 5 / 1000)
            if (round_number + number) % 3 == 0:
                await transaction.rollback()
            else:
                await transaction.commit()
                done.append(name)
    finally:
        await connection.close()
    return done


async def follow(database: Database, seen: list[Seen], name: str, ended: asyncio.Event) -> None:
    log, known = PostgresChangeLog(database), 0
    while True:
        is_last = ended.is_set()
        reading = await log.read(known)
        seen += [Seen(name, each.version, each.subject) for each in reading.changes]
        known = reading.version
        if is_last:
            return
        await asyncio.sleep(0)


async def test_readers_see_every_commit_of_eight_writers_in_one_order(
    database: Database, location: DatabaseLocation
) -> None:
    ended, seen = asyncio.Event(), list[Seen]()
    readers = [asyncio.ensure_future(follow(database, seen, name, ended)) for name in ("a", "b")]
    written = await asyncio.gather(*(write(location, number) for number in range(WRITERS)))
    ended.set()
    await asyncio.gather(*readers)
    assert check_order(seen) == []
    committed = sorted(name for names in written for name in names)
    assert sorted(each.subject for each in seen if each.node == "a") == committed
    assert 0 < len(committed) < WRITERS * CHANGES


async def test_a_version_that_is_taken_before_the_commit_loses_changes(
    database: Database, location: DatabaseLocation
) -> None:
    """The mutant of the log: a sequence in place of the row that is raised at the commit."""
    connection = await connect(location)
    await connection.execute("CREATE SEQUENCE early")
    await connection.execute(
        "CREATE OR REPLACE FUNCTION cluster_note_rows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO cluster_changes SELECT nextval('early'), TG_ARGV[0], name, now() FROM changed;"
        " UPDATE cluster_version SET v = 0 WHERE false; RETURN NULL; END $$"
    )
    other = await connect(location)
    seen: list[Seen] = []
    known = 0

    async def look() -> None:
        nonlocal known
        rows = await connection.fetch(
            "SELECT version, subject FROM cluster_changes WHERE version > $1 ORDER BY version", known
        )
        seen.extend(Seen("a", row["version"], row["subject"]) for row in rows)
        known = max([known, *(row["version"] for row in rows)])

    slow = other.transaction()
    await slow.start()
    await other.execute("INSERT INTO stored_values VALUES ('first', '1', 0, 'w')")
    await connection.execute("INSERT INTO stored_values VALUES ('second', '1', 0, 'w')")
    await look()
    await slow.commit()
    await look()
    await other.close()
    await connection.close()
    assert [each.subject for each in seen] == ["second"]
    assert check_order(seen) == ["a: version 2 follows 0"]


async def test_a_listener_hears_of_commits_only(database: Database, connection: Any) -> None:
    heard = asyncio.Event()
    log = PostgresChangeLog(database)
    async with log.listen(heard.set) as link:
        async with connection.transaction():
            await connection.execute("UPDATE users SET name = 'a'")
            # Whoever is told before the commit reads what was there before.
            await asyncio.sleep(0.05)
            assert not heard.is_set()
        await asyncio.wait_for(heard.wait(), 5)
        assert kinds(await link.read(0)) == [("user", "u1"), ("user", "u2"), ("user", "u3")]


async def test_a_listener_that_is_ended_says_so(database: Database, connection: Any) -> None:
    heard = asyncio.Event()
    async with PostgresChangeLog(database).listen(heard.set) as link:
        await link.read(0)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()"
        )
        await asyncio.wait_for(heard.wait(), 5)
        with pytest.raises(GatewayError) as caught:
            await link.read(0)
        assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_old_rows_are_pruned_but_for_the_last(
    database: Database, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "PRUNE", change_log.PRUNE.replace("10000", "2"))
    log = PostgresChangeLog(database)
    for number in range(5):
        await connection.execute(f"UPDATE users SET name = 'n{number}' WHERE id = 'u1'")
    await log.prune()
    assert len((await log.read(0)).changes) == 5
    await connection.execute(
        "UPDATE cluster_changes SET at = now() - interval '61 minutes' WHERE version <= 4"
    )
    await log.prune()
    reading = await log.read(0)
    assert [each.version for each in reading.changes] == [4, 5]
    assert reading.version == 5


async def test_a_reading_has_a_bound(database: Database, connection: Any) -> None:
    await connection.execute(
        "INSERT INTO cluster_changes SELECT n, 'user', 'u1', now() FROM generate_series(1, 1500) AS n"
    )
    await connection.execute("UPDATE cluster_version SET v = 1500")
    reading = await PostgresChangeLog(database).read(100)
    assert (reading.changes[0].version, len(reading.changes)) == (101, change_log.MAX_CHANGES)


async def test_an_ordinary_role_may_read_the_log(location: DatabaseLocation, connection: Any) -> None:
    await connection.execute("CREATE ROLE plain_reader")
    try:
        await connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO plain_reader")
        await connection.execute("SET ROLE plain_reader")
        row = await connection.fetchrow(change_log.READ, 0)
        assert reading_of(dict(row)).version == 0
    finally:
        await connection.execute("RESET ROLE")
        await connection.execute("DROP OWNED BY plain_reader")
        await connection.execute("DROP ROLE plain_reader")
