"""`open_webui.internal.db`: database sessions that plugins pass on to methods.

`Users.get_user_by_id(id, db=db)` takes one and leaves it aside.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.placeholders import raise_not_provided


class PlaceholderSession:
    """Stands where a database session would; using it raises NotProvidedError, passing it on does not."""

    def __getattr__(self, attribute: str) -> Any:
        raise_not_provided(f"the database session of open_webui.internal.db ({attribute})")


@contextmanager
def get_db_context(db: Any = None) -> Iterator[Any]:
    """Give a session to pass on."""
    yield db or PlaceholderSession()


@asynccontextmanager
async def get_async_db_context(db: Any = None) -> AsyncIterator[Any]:
    """Give a session to pass on."""
    yield db or PlaceholderSession()


def make_database(_gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.internal.db`."""
    return {
        "get_db": get_db_context,
        "get_db_context": get_db_context,
        "get_async_db": get_async_db_context,
        "get_async_db_context": get_async_db_context,
    }
