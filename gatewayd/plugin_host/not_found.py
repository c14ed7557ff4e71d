"""What is not there is None for plugins."""

from collections.abc import Awaitable
from typing import TypeVar

from gatewayd.errors import ErrorKind, GatewayError

Found = TypeVar("Found")


async def none_if_not_found(work: Awaitable[Found]) -> Found | None:
    """Return what work gives, None when it raises not_found."""
    try:
        return await work
    except GatewayError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return None
