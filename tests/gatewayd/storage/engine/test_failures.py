import contextvars
import socket
import sqlite3
import ssl
import traceback
from pathlib import Path

import pytest
from tortoise.exceptions import FieldError, IntegrityError, OperationalError, TransactionManagementError

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine import damage
from gatewayd.storage.engine.damage import DamageError
from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.failures import make_failure, set_server_name, translate_errors, unstorable_error
from gatewayd.storage.engine.location import parse
from tests.fakes.storage.postgres import Postgres


class ServerError(Exception):
    """What asyncpg raises for the server's errors, as far as it matters."""

    def __init__(self, sqlstate: str, detail: str | None = None) -> None:
        super().__init__("secret values")
        self.sqlstate = sqlstate
        self.detail = detail


def sqlite_error(*statements: str, pages: int | None = None) -> sqlite3.Error:
    """Return what SQLite really raises."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        if pages:
            connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(sqlite3.Error) as caught:
            for statement in statements:
                connection.execute(statement)
        return caught.value
    finally:
        connection.close()


TABLE = "CREATE TABLE t (user_id, name_key, e TEXT UNIQUE, UNIQUE (user_id, name_key))"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (sqlite_error("SELEKT 1"), ErrorKind.INTERNAL, "SQLITE_ERROR"),
        (
            sqlite_error("CREATE TABLE t (x)", "INSERT INTO t VALUES (zeroblob(1000000))", pages=4),
            ErrorKind.UNAVAILABLE,
            "disk is full",
        ),
        (
            sqlite_error(
                "PRAGMA foreign_keys=ON",
                "CREATE TABLE a (x PRIMARY KEY)",
                "CREATE TABLE b (x REFERENCES a (x))",
                "INSERT INTO b VALUES (1)",
            ),
            ErrorKind.CONFLICT,
            "does not exist",
        ),
        (sqlite_error("SELECT zeroblob(2000000000)"), ErrorKind.INVALID_REQUEST, "too long"),
        (ServerError("40001"), ErrorKind.UNAVAILABLE, "came first"),
        (ServerError("40P01"), ErrorKind.UNAVAILABLE, "came first"),
        (ServerError("55P03"), ErrorKind.UNAVAILABLE, "locked"),
        (ServerError("57014"), ErrorKind.UNAVAILABLE, "in time"),
        (ServerError("57P01"), ErrorKind.UNAVAILABLE, "stopping"),
        (ServerError("53100"), ErrorKind.UNAVAILABLE, "disk is full"),
        (ServerError("53300"), ErrorKind.UNAVAILABLE, "resources"),
        (ServerError("58030"), ErrorKind.UNAVAILABLE, "disk failed"),
        (ServerError("08006"), ErrorKind.UNAVAILABLE, "reached"),
        (ServerError("22021"), ErrorKind.INVALID_REQUEST, "cannot be stored"),
        (ServerError("23503"), ErrorKind.CONFLICT, "does not exist"),
        (ServerError("28P01"), ErrorKind.NOT_CONFIGURED, "password"),
        (ServerError("3D000"), ErrorKind.NOT_CONFIGURED, "no such database"),
        (ServerError("42601"), ErrorKind.INTERNAL, "42601"),
        (ServerError("XX001"), ErrorKind.INTERNAL, "files are damaged"),
        (ServerError("XX002"), ErrorKind.INTERNAL, "index of the database is damaged"),
        (TimeoutError(), ErrorKind.UNAVAILABLE, "in time"),
        (ConnectionRefusedError(), ErrorKind.UNAVAILABLE, "reached"),
        (TransactionManagementError("x"), ErrorKind.INTERNAL, "TransactionManagementError"),
        (FieldError("x"), ErrorKind.INTERNAL, "FieldError"),
    ],
)
def test_every_failure_has_a_kind(error: Exception, kind: ErrorKind, words: str) -> None:
    for each in (error, OperationalError(error)):
        found = make_failure("do this", each)
        assert found.kind is kind
        assert words in found.message
        assert found.message.startswith("cannot do this: ")
        assert "secret" not in found.message
        assert (found.retry_after is not None) == (kind is ErrorKind.UNAVAILABLE)


@pytest.mark.parametrize(
    ("error", "field"),
    [
        (sqlite_error(TABLE, *["INSERT INTO t VALUES (1, 2, NULL)"] * 2), "name"),
        (sqlite_error(TABLE, *["INSERT INTO t VALUES (NULL, NULL, 'x')"] * 2), "e"),
        (sqlite_error("CREATE TABLE t (id PRIMARY KEY)", *["INSERT INTO t VALUES (1)"] * 2), "id"),
        (ServerError("23505", "Key (user_id, name_key)=(1, 2) already exists."), "name"),
        (ServerError("23505", "Key (e)=(secret) already exists."), "e"),
        (ServerError("23505"), "id"),
    ],
)
def test_a_broken_unique_constraint_names_the_field(error: Exception, field: str) -> None:
    found = make_failure("do this", IntegrityError(error))
    assert (found.kind, found.param, found.code) == (ErrorKind.CONFLICT, field, "taken")
    assert found.message == f"cannot do this: the {field} is taken"


@pytest.mark.parametrize("state", ["XX001", "XX002"])
def test_damage_is_noted_and_other_failures_are_not(state: str) -> None:
    known = damage.begin()
    assert not isinstance(make_failure("do this", OperationalError(ServerError("XX000"))), DamageError)
    assert known.sentence is None
    found = make_failure("do this", OperationalError(ServerError(state)))
    assert isinstance(found, DamageError)
    assert known.sentence is not None
    assert found.message == f"cannot do this: {known.sentence}"


def test_a_locked_file_is_worth_another_try(tmp_path: Path) -> None:
    connections = [sqlite3.connect(tmp_path / "x", isolation_level=None, timeout=0) for _ in range(2)]
    try:
        connections[0].execute("BEGIN EXCLUSIVE")
        with pytest.raises(GatewayError, match="locked") as caught, translate_errors("do this"):
            connections[1].execute("BEGIN IMMEDIATE")
    finally:
        for connection in connections:
            connection.close()
    assert (caught.value.kind, caught.value.retry_after) == (ErrorKind.UNAVAILABLE, 2)
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)


@pytest.mark.parametrize("error", [GatewayError(ErrorKind.CONFLICT, "x"), ZeroDivisionError(), KeyError("x")])
def test_errors_of_our_own_and_defects_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, translate_errors("do this"):
        raise error
    assert caught.value is error


def test_the_field_of_a_key_column_is_what_it_is_made_from() -> None:
    assert unstorable_error("name_key", "it is bad").message == "cannot store name: it is bad"


async def test_a_traceback_shows_no_values_of_a_row(migrated_postgres: str, postgres: Postgres) -> None:
    location = parse(postgres.create_database(migrated_postgres))
    async with Database.open(location) as database:
        with pytest.raises(GatewayError) as caught, translate_errors("write"):
            await database.engine.execute_query_dict(
                "INSERT INTO stored_values (name, value, updated_at) VALUES ('secret', '1', 0)"
            )
    assert caught.value.kind is ErrorKind.INTERNAL
    shown = "".join(traceback.format_exception(caught.value))
    assert "NotNullViolationError" in shown
    assert "(secret" not in shown


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('10.0.0.1', 5432)"), " (connection refused)"),
        (OSError("Multiple exceptions: [Errno 113] x ('::1'), [Errno 111] y"), " (no route to host)"),
        (socket.gaierror(-2, "Name or service not known"), " (name or service not known)"),
        (ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] x"), " (TLS: failed)"),
        (ConnectionResetError(), ""),
    ],
)
def test_a_lost_connection_tells_its_cause_and_no_address(error: OSError, cause: str) -> None:
    assert make_failure("save", error).message == f"cannot save: the database cannot be reached{cause}"


def test_those_who_run_the_gateway_are_told_which_server_it_is() -> None:
    def told() -> list[str]:
        set_server_name("db.example.org:5432/gatewayd")
        return [
            make_failure("save", error).full_message
            for error in (ConnectionRefusedError(111, "x"), ServerError("22021"))
        ]

    lost, refused = contextvars.copy_context().run(told)
    assert lost == (
        "cannot save: the database cannot be reached (connection refused) at db.example.org:5432/gatewayd"
    )
    assert refused == "cannot save: a value is too long or cannot be stored"
