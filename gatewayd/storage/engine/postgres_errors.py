"""Errors of PostgreSQL's driver and of the network, as errors of the ORM."""

from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
from tortoise.exceptions import IntegrityError, OperationalError

FOREIGN_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


class LostConnectionError(OperationalError):
    """The driver has lost its connection, without an SQLSTATE."""

    is_lost_connection = True


def is_lost(connection: Any) -> bool:
    """Return whether a connection is closed; the pool has then taken it back, and it raises on every call."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


async def wrap_errors(function: Callable[..., Awaitable[Any]], *args: Any, **named: Any) -> Any:
    """Call a function, and wrap the errors of asyncpg and the network in the ORM's errors."""
    try:
        return await function(*args, **named)
    except asyncpg.IntegrityConstraintViolationError as error:
        raise IntegrityError(error) from error
    except asyncpg.InterfaceError as error:
        raise (OperationalError(error) if isinstance(error, ValueError) else LostConnectionError()) from error
    except asyncpg.InternalClientError as error:
        # The server has closed the connection, which the driver has not noticed yet.
        raise LostConnectionError() from error
    except FOREIGN_ERRORS as error:
        raise OperationalError(error) from error
