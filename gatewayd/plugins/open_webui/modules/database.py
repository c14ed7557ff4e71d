"""Implementation of `open_webui.internal.db`: placeholders for database sessions.

Plugins pass a session on, as in `Users.get_user_by_id(id, db=db)`, which ignores it.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.placeholders import raise_not_provided


class PlaceholderSession:
    """Placeholder for a database session; any use other than passing it on raises NotProvidedError."""

    def __getattr__(self, attribute: str) -> Any:
        raise_not_provided(f"the database session of open_webui.internal.db ({attribute})")


@contextmanager
def get_db_context(db: Any = None) -> Iterator[Any]:
    """Yield the given session or a placeholder."""
    yield db or PlaceholderSession()


@asynccontextmanager
async def get_async_db_context(db: Any = None) -> AsyncIterator[Any]:
    """Yield the given session or a placeholder."""
    yield db or PlaceholderSession()


def make_database(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.internal.db`."""
    return {
        "get_db": get_db_context,
        "get_db_context": get_db_context,
        "get_async_db": get_async_db_context,
        "get_async_db_context": get_async_db_context,
    }
