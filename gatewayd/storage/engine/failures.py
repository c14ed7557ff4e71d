"""Translation of the database libraries' errors to `GatewayError`.

It compares error codes, never texts. The only part of a driver's text that it uses are the column names of a
violated unique constraint: the rest may contain values, which may be secret. The driver's error is the cause
of the GatewayError, without its detail.
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

from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.storage.engine import damage
from gatewayd.storage.engine.damage import DamageError

BUSY_SECONDS: Final = 2
BROKEN_SECONDS: Final = 10


class FailureReason(NamedTuple):
    """Meaning of an error code: kind, reason in words, and seconds until a retry."""

    kind: ErrorKind
    text: str
    retry_after: int | None = None


LOCKED: Final = FailureReason(ErrorKind.UNAVAILABLE, "the database is locked", BUSY_SECONDS)
TIMED_OUT: Final = FailureReason(ErrorKind.UNAVAILABLE, "the database did not answer in time", BUSY_SECONDS)
UNREACHABLE: Final = FailureReason(ErrorKind.UNAVAILABLE, "the database cannot be reached", BUSY_SECONDS)
CONFLICTING_CHANGE: Final = FailureReason(ErrorKind.UNAVAILABLE, "another change came first", BUSY_SECONDS)
DISK_FULL: Final = FailureReason(ErrorKind.UNAVAILABLE, "the database's disk is full", BROKEN_SECONDS)
DISK_FAILED: Final = FailureReason(ErrorKind.UNAVAILABLE, "the database's disk failed", BROKEN_SECONDS)
ROLLED_BACK: Final = FailureReason(
    ErrorKind.UNAVAILABLE, "the database rolled back the whole change", BUSY_SECONDS
)
MISSING_REFERENCE: Final = FailureReason(ErrorKind.CONFLICT, "a row that it refers to does not exist")
DAMAGED: Final = FailureReason(ErrorKind.INTERNAL, "the database's file is damaged")
NO_DATABASE: Final = FailureReason(ErrorKind.INTERNAL, "the file is no SQLite database")
DAMAGED_FILES: Final = FailureReason(ErrorKind.INTERNAL, "the database's files are damaged")
DAMAGED_INDEX: Final = FailureReason(ErrorKind.INTERNAL, "an index of the database is damaged")
DAMAGE_REASONS: Final = frozenset({DAMAGED, NO_DATABASE, DAMAGED_FILES, DAMAGED_INDEX})
UNSTORABLE: Final = FailureReason(ErrorKind.INVALID_REQUEST, "a value is too long or cannot be stored")

# By the extended result code of SQLite, or its first two words, the primary result code.
SQLITE_REASONS: Final = {
    "SQLITE_CONSTRAINT_FOREIGNKEY": MISSING_REFERENCE,
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_FULL": DISK_FULL,
    "SQLITE_IOERR": DISK_FAILED,
    "SQLITE_NOMEM": FailureReason(ErrorKind.UNAVAILABLE, "there is no memory left", BROKEN_SECONDS),
    "SQLITE_READONLY": FailureReason(
        ErrorKind.UNAVAILABLE, "the database may not be written", BROKEN_SECONDS
    ),
    "SQLITE_CANTOPEN": FailureReason(ErrorKind.INTERNAL, "the database's file cannot be opened"),
    "SQLITE_PERM": FailureReason(ErrorKind.INTERNAL, "the database's file may not be opened"),
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_NOTADB": NO_DATABASE,
    "SQLITE_TOOBIG": UNSTORABLE,
}

# By SQLSTATE, or its first two characters, the class.
SQLSTATE_REASONS: Final = {
    "23503": MISSING_REFERENCE,
    "25006": FailureReason(ErrorKind.UNAVAILABLE, "the database may not be written", BROKEN_SECONDS),
    "40001": CONFLICTING_CHANGE,
    "40P01": CONFLICTING_CHANGE,
    "53100": DISK_FULL,
    "54000": UNSTORABLE,
    "55P03": LOCKED,
    "57014": TIMED_OUT,
    "XX001": DAMAGED_FILES,
    "XX002": DAMAGED_INDEX,
    # PgBouncer says so for a parameter or a mode that it does not support, and when it has too many clients.
    "08P01": FailureReason(
        ErrorKind.UNAVAILABLE,
        "the server, or a pooler in front of it, refuses the connection",
        BROKEN_SECONDS,
    ),
    "08": UNREACHABLE,
    "22": UNSTORABLE,
    "28": FailureReason(ErrorKind.NOT_CONFIGURED, "the database refuses the user name or the password"),
    "3D": FailureReason(ErrorKind.NOT_CONFIGURED, "there is no such database"),
    "53": FailureReason(ErrorKind.UNAVAILABLE, "the database is short of resources", BROKEN_SECONDS),
    "57": FailureReason(ErrorKind.UNAVAILABLE, "the database is starting or stopping", BUSY_SECONDS),
    "58": DISK_FAILED,
}

SEVERAL_ERRORS: Final = re.compile(r"\[Errno (\d+)\]")
"""The error numbers in asyncio's error for a host with several addresses."""

UNIQUE_VIOLATIONS: Final = frozenset({"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"})
FIELD_NAMES: Final = {"email": "e-mail address", "user_name": "user name", "external_id": "external id"}


_server: ContextVar[str | None] = ContextVar("database server", default=None)


def set_server_name(address: str | None) -> None:
    """Set the address of the database server of this context, None for a file."""
    _server.set(address)


@contextmanager
def translate_errors(what: str, missing: GatewayError | None = None) -> Iterator[None]:
    """Translate the errors of the ORM, a driver or the system; `what` completes "cannot ...".

    `missing` is raised instead for a violated foreign key.
    """
    try:
        yield
    except (BaseORMException, sqlite3.Error, OSError) as error:
        raise make_failure(what, error, missing) from error


def make_failure(what: str, error: Exception, missing: GatewayError | None = None) -> GatewayError:
    """Return the GatewayError for a library's error; unknown errors become internal.

    A DamageError is also recorded for the daemon's health.
    """
    inner = error.args[0] if isinstance(error, BaseORMException) and error.args else None
    cause = inner if isinstance(inner, Exception) else error
    if isinstance(cause, DBConnectionError) and isinstance(cause.__cause__, Exception):
        # The ORM wraps the driver's connection error.
        cause = cause.__cause__
    columns = _conflicting_columns(cause)
    if getattr(cause, "detail", None):
        # The detail contains values of rows, and a traceback would show them.
        vars(cause)["detail"] = None
    if columns:
        return _conflict(what, columns)
    reason = _reason(cause)
    if reason is MISSING_REFERENCE and missing is not None:
        return missing
    if reason in DAMAGE_REASONS:
        damage.note(reason.text)
        return DamageError(reason.kind, f"cannot {what}: {reason.text}")
    # The address matters only for errors of the server, not for those of the request.
    place = _server.get() if reason.kind in {ErrorKind.UNAVAILABLE, ErrorKind.NOT_CONFIGURED} else None
    return GatewayError(
        reason.kind, f"cannot {what}: {reason.text}", retry_after=reason.retry_after, place=place
    )


def unstorable_error(field: str, reason: str) -> GatewayError:
    """Return the error for a value that its column cannot store."""
    name = field.removesuffix("_key")
    return invalid(f"cannot store {name}: {reason}", param=name)


def _reason(error: Exception) -> FailureReason:
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", "")
        known = SQLITE_REASONS.get(name) or SQLITE_REASONS.get("_".join(name.split("_")[:2]))
        return known or FailureReason(
            ErrorKind.INTERNAL, f"the database refused ({name or type(error).__name__})"
        )
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        known = SQLSTATE_REASONS.get(state) or SQLSTATE_REASONS.get(state[:2])
        return known or FailureReason(ErrorKind.INTERNAL, f"the database refused (SQLSTATE {state})")
    if getattr(error, "is_rolled_back", False):
        return ROLLED_BACK
    if isinstance(error, TimeoutError):
        return TIMED_OUT
    # Must precede ValueError: the error of a refused certificate is both.
    if isinstance(error, OSError):
        return UNREACHABLE._replace(text=f"{UNREACHABLE.text}{_system_cause(error)}")
    if isinstance(error, ValueError):
        return UNSTORABLE
    if getattr(error, "is_lost_connection", False):
        return UNREACHABLE
    return FailureReason(ErrorKind.INTERNAL, f"the database refused ({type(error).__name__})")


def _system_cause(error: OSError) -> str:
    """Return the system's reason for a failed connection in brackets, for the first of several addresses."""
    if isinstance(error, ssl.SSLError):
        return f" (TLS: {(getattr(error, 'reason', None) or 'failed').replace('_', ' ').lower()})"
    if isinstance(error, socket.gaierror):
        return f" ({(error.strerror or 'the name cannot be resolved').lower()})"
    numbers = [error.errno] if error.errno else [int(found) for found in SEVERAL_ERRORS.findall(str(error))]
    return f" ({os.strerror(numbers[0]).lower()})" if numbers else ""


def _conflicting_columns(error: Exception) -> Sequence[str]:
    if getattr(error, "sqlite_errorname", "") in UNIQUE_VIOLATIONS:
        # The text ends with the columns, each with its table.
        return [path.rpartition(".")[2] for path in str(error).partition(": ")[2].split(", ")]
    if getattr(error, "sqlstate", None) == "23505":
        # The detail begins with "Key" and the columns in brackets.
        found = re.match(r"Key \(([^)]+)\)=", getattr(error, "detail", None) or "")
        return found[1].split(", ") if found else ["id"]
    return ()


def _conflict(what: str, columns: Sequence[str]) -> GatewayError:
    field = columns[-1].removesuffix("_key")
    return GatewayError(
        ErrorKind.CONFLICT,
        f"cannot {what}: the {FIELD_NAMES.get(field, field)} is taken",
        param=field,
        code="taken",
    )
