"""Where the errors of the database libraries end: each becomes a `GatewayError`.

Codes are compared, never texts. Of a driver's text only the names of the columns in a broken unique
constraint are taken: the rest may hold values, and values may be secret. The driver's error stays the cause,
without its detail.
"""

import os
import re
import socket
import sqlite3
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from tortoise.exceptions import BaseORMException, DBConnectionError

from gatewayd.errors import GatewayError, Kind, invalid
from gatewayd.storage.engine import damage
from gatewayd.storage.engine.damage import DamageError

BUSY_SECONDS: Final = 2
BROKEN_SECONDS: Final = 10


class Reason(NamedTuple):
    """What a code means for the caller."""

    kind: Kind
    text: str
    retry_after: int | None = None


LOCKED: Final = Reason(Kind.UNAVAILABLE, "the database is locked", BUSY_SECONDS)
LATE: Final = Reason(Kind.UNAVAILABLE, "the database did not answer in time", BUSY_SECONDS)
LOST: Final = Reason(Kind.UNAVAILABLE, "the database cannot be reached", BUSY_SECONDS)
RACED: Final = Reason(Kind.UNAVAILABLE, "another change came first", BUSY_SECONDS)
FULL: Final = Reason(Kind.UNAVAILABLE, "the database's disk is full", BROKEN_SECONDS)
BROKEN: Final = Reason(Kind.UNAVAILABLE, "the database's disk failed", BROKEN_SECONDS)
GIVEN_UP: Final = Reason(Kind.UNAVAILABLE, "the database gave up the whole change", BUSY_SECONDS)
DANGLING: Final = Reason(Kind.CONFLICT, "what it refers to does not exist")
DAMAGED: Final = Reason(Kind.INTERNAL, "the database's file is damaged")
NO_DATABASE: Final = Reason(Kind.INTERNAL, "the file is no SQLite database")
DAMAGED_FILES: Final = Reason(Kind.INTERNAL, "the database's files are damaged")
DAMAGED_INDEX: Final = Reason(Kind.INTERNAL, "an index of the database is damaged")
DAMAGES: Final = frozenset({DAMAGED, NO_DATABASE, DAMAGED_FILES, DAMAGED_INDEX})
UNSTORABLE: Final = Reason(Kind.INVALID_REQUEST, "a value is too long or cannot be stored")

# The result code of SQLite, or the primary code in it, which is the first two words.
SQLITE: Final = {
    "SQLITE_CONSTRAINT_FOREIGNKEY": DANGLING,
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_FULL": FULL,
    "SQLITE_IOERR": BROKEN,
    "SQLITE_NOMEM": Reason(Kind.UNAVAILABLE, "there is no memory left", BROKEN_SECONDS),
    "SQLITE_READONLY": Reason(Kind.UNAVAILABLE, "the database may not be written", BROKEN_SECONDS),
    "SQLITE_CANTOPEN": Reason(Kind.INTERNAL, "the database's file cannot be opened"),
    "SQLITE_PERM": Reason(Kind.INTERNAL, "the database's file may not be opened"),
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_NOTADB": NO_DATABASE,
    "SQLITE_TOOBIG": UNSTORABLE,
}

# SQLSTATE, or the class that its first two characters are.
SQLSTATES: Final = {
    "23503": DANGLING,
    "25006": Reason(Kind.UNAVAILABLE, "the database may not be written", BROKEN_SECONDS),
    "40001": RACED,
    "40P01": RACED,
    "53100": FULL,
    "54000": UNSTORABLE,
    "55P03": LOCKED,
    "57014": LATE,
    "XX001": DAMAGED_FILES,
    "XX002": DAMAGED_INDEX,
    "08": LOST,
    "22": UNSTORABLE,
    "28": Reason(Kind.NOT_CONFIGURED, "the database refuses the user name or the password"),
    "3D": Reason(Kind.NOT_CONFIGURED, "there is no such database"),
    "53": Reason(Kind.UNAVAILABLE, "the database is short of resources", BROKEN_SECONDS),
    "57": Reason(Kind.UNAVAILABLE, "the database is starting or stopping", BUSY_SECONDS),
    "58": BROKEN,
}

SEVERAL_ERRORS: Final = re.compile(r"\[Errno (\d+)\]")
"""The numbers in the error of asyncio for a host that has several addresses."""

UNIQUE: Final = frozenset({"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"})
FIELDS: Final = {"email": "e-mail address", "user_name": "user name", "external_id": "external id"}


_server: ContextVar[str | None] = ContextVar("database server", default=None)


def name_server(address: str | None) -> None:
    """Say where the server is whose database this context opens; None for a file."""
    _server.set(address)


@contextmanager
def translated(what: str, missing: GatewayError | None = None) -> Iterator[None]:
    """Translate what the ORM, a driver or the system raises inside; `what` completes "cannot ...".

    `missing` is raised instead when a row would refer to one that does not exist.
    """
    try:
        yield
    except (BaseORMException, sqlite3.Error, OSError) as error:
        raise failure(what, error, missing) from error


def failure(what: str, error: Exception, missing: GatewayError | None = None) -> GatewayError:
    """Return the error to raise for a foreign one; none is ever taken for success.

    A DamageError is noted, so that the health of the daemon tells it.
    """
    inner = error.args[0] if isinstance(error, BaseORMException) and error.args else None
    cause = inner if isinstance(inner, Exception) else error
    if isinstance(cause, DBConnectionError) and isinstance(cause.__cause__, Exception):
        # The ORM's own words for a database that is not there.
        cause = cause.__cause__
    columns = _taken_columns(cause)
    if getattr(cause, "detail", None):
        # It holds values of rows, and a traceback would show them.
        vars(cause)["detail"] = None
    if columns:
        return _taken(what, columns)
    reason = _reason(cause)
    if reason is DANGLING and missing is not None:
        return missing
    if reason in DAMAGES:
        damage.note(reason.text)
        return DamageError(reason.kind, f"cannot {what}: {reason.text}")
    # A request that is wrong is so at any server: its sentence needs no place.
    place = _server.get() if reason.kind in {Kind.UNAVAILABLE, Kind.NOT_CONFIGURED} else None
    return GatewayError(
        reason.kind, f"cannot {what}: {reason.text}", retry_after=reason.retry_after, place=place
    )


def unstorable(field: str, reason: str) -> GatewayError:
    """Return the error for a value that its column cannot hold."""
    name = field.removesuffix("_key")
    return invalid(f"cannot store {name}: {reason}", param=name)


def _reason(error: Exception) -> Reason:
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", "")
        known = SQLITE.get(name) or SQLITE.get("_".join(name.split("_")[:2]))
        return known or Reason(Kind.INTERNAL, f"the database refused ({name or type(error).__name__})")
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        known = SQLSTATES.get(state) or SQLSTATES.get(state[:2])
        return known or Reason(Kind.INTERNAL, f"the database refused (SQLSTATE {state})")
    if getattr(error, "is_given_up", False):
        return GIVEN_UP
    if isinstance(error, TimeoutError):
        return LATE
    # Before ValueError: a certificate that is refused is both.
    if isinstance(error, OSError):
        return LOST._replace(text=f"{LOST.text}{_system_cause(error)}")
    if isinstance(error, ValueError):
        return UNSTORABLE
    if getattr(error, "is_lost_connection", False):
        return LOST
    return Reason(Kind.INTERNAL, f"the database refused ({type(error).__name__})")


def _system_cause(error: OSError) -> str:
    """Return why the system could not connect, in brackets: of several addresses, the reason of the first."""
    if isinstance(error, ssl.SSLError):
        return f" (TLS: {(getattr(error, 'reason', None) or 'failed').replace('_', ' ').lower()})"
    if isinstance(error, socket.gaierror):
        return f" ({(error.strerror or 'the name cannot be resolved').lower()})"
    numbers = [error.errno] if error.errno else [int(found) for found in SEVERAL_ERRORS.findall(str(error))]
    return f" ({os.strerror(numbers[0]).lower()})" if numbers else ""


def _taken_columns(error: Exception) -> Sequence[str]:
    if getattr(error, "sqlite_errorname", "") in UNIQUE:
        # The text ends with the columns, each with its table.
        return [path.rpartition(".")[2] for path in str(error).partition(": ")[2].split(", ")]
    if getattr(error, "sqlstate", None) == "23505":
        # The detail begins with "Key" and the columns in brackets.
        found = re.match(r"Key \(([^)]+)\)=", getattr(error, "detail", None) or "")
        return found[1].split(", ") if found else ["id"]
    return ()


def _taken(what: str, columns: Sequence[str]) -> GatewayError:
    field = columns[-1].removesuffix("_key")
    return GatewayError(
        Kind.CONFLICT, f"cannot {what}: the {FIELDS.get(field, field)} is taken", param=field, code="taken"
    )
