"""Which records of libraries are written, in the gateway as in the processes of plugins."""

import logging
from collections.abc import Iterable

# While the server is away, the pool would write a traceback every second; whoever needs it says so.
_LIBRARY_LEVELS = {"asyncpg.pool": logging.ERROR}


class LibraryDebug(logging.Filter):
    """Drops records below INFO of every program but this one, unless their logger is named.

    A library knows no secrets: at DEBUG the SQLite driver writes each statement with all its values, which
    are messages, password hashes and digests of keys. `level` holds for all records.
    """

    def __init__(self, level: int, debug_loggers: Iterable[str]) -> None:
        super().__init__()
        self._level = level
        self._own = logging.Filter("gatewayd")
        self._named = [logging.Filter(name) for name in debug_loggers]

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the record is written."""
        if any(named.filter(record) for named in self._named):
            return True
        least = logging.NOTSET if self._own.filter(record) else _LIBRARY_LEVELS.get(record.name, logging.INFO)
        return record.levelno >= max(self._level, least)
