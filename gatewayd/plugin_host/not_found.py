"""What is not there is None for plugins."""

from collections.abc import Awaitable
from typing import TypeVar

from gatewayd.errors import GatewayError, Kind

Found = TypeVar("Found")


async def or_none(work: Awaitable[Found]) -> Found | None:
    """Return what work gives, None when it raises not_found."""
    try:
        return await work
    except GatewayError as error:
        if error.kind is not Kind.NOT_FOUND:
            raise
        return None
