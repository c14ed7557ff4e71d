"""Where the exceptions of the database libraries end: each becomes a GatewayError or passes as a defect."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tortoise.exceptions import (
    BaseORMException,
    DBConnectionError,
    IntegrityError,
    OperationalError,
    TransactionManagementError,
    ValidationError,
)

from gatewayd.errors import GatewayError, Kind, invalid

BUSY_SECONDS: Final = 2
BUSY: Final = re.compile(r"locked|busy|deadlock|could not serialize|too many (clients|connections)", re.I)
FULL: Final = re.compile(r"disk is full|no space left|disk i/o error|read-?only", re.I)
UNSTORABLE: Final = re.compile(
    r"invalid byte sequence|null character|\\u0000|out of range|too long|surrogate", re.I
)


@asynccontextmanager
async def translated(what: str, taken: str = "") -> AsyncIterator[None]:
    """Translate failures of the block.

    `what` completes "cannot ..."; `taken` says which field is taken when a unique value is there already.
    """
    try:
        yield
    except IntegrityError as error:
        raise GatewayError(
            Kind.CONFLICT, f"cannot {what}: {taken or 'it conflicts with what is stored'}"
        ) from error
    except (ValidationError, UnicodeEncodeError) as error:
        raise invalid(f"cannot {what}: a value is too long or cannot be stored") from error
    except (BaseORMException, OSError) as error:
        raise failure(what, error) from error


def failure(what: str, error: Exception) -> GatewayError:
    """Return the failure that says what a sysadmin can do; none of them is ever acknowledged as success."""
    text = str(error)
    if UNSTORABLE.search(text):
        return invalid(f"cannot {what}: a value is too long or cannot be stored")
    if BUSY.search(text):
        return GatewayError(
            Kind.UNAVAILABLE, f"cannot {what}: the database is busy", retry_after=BUSY_SECONDS
        )
    if FULL.search(text):
        return GatewayError(Kind.UNAVAILABLE, f"cannot {what}: the database cannot write ({text})")
    if isinstance(error, OperationalError | DBConnectionError | TransactionManagementError | OSError):
        return GatewayError(
            Kind.UNAVAILABLE, f"cannot {what}: the database failed ({text})", retry_after=BUSY_SECONDS
        )
    return GatewayError(Kind.INTERNAL, f"cannot {what}: the database refused ({text})")
