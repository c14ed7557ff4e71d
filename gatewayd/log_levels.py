"""Log levels of libraries, in the gateway and in plugin processes."""

import logging
from collections.abc import Iterable, Mapping

# While the database server is down, the pool would log a traceback every second.
_LIBRARY_LEVELS = {"asyncpg.pool": logging.ERROR}


class LibraryDebug(logging.Filter):
    """Drops records of libraries below INFO unless their logger is named.

    Libraries do not recognise secrets: at DEBUG the SQLite driver logs each statement with all its values,
    which are messages, password hashes and digests of keys. `level` applies to all records.
    """

    def __init__(self, level: int, debug_loggers: Iterable[str]) -> None:
        super().__init__()
        self._level = level
        self._own = logging.Filter("gatewayd")
        self._named = [logging.Filter(name) for name in debug_loggers]
        self._changed: list[tuple[logging.Filter, int]] = []

    def change(self, levels: Mapping[str, int]) -> None:
        """Use these levels for the named loggers and those below; the longest name that fits counts."""
        names = sorted(levels, key=len, reverse=True)
        self._changed = [(logging.Filter(name), levels[name]) for name in names]

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is written."""
        for changed, least in self._changed:
            if changed.filter(record):
                return record.levelno >= least
        if any(named.filter(record) for named in self._named):
            return True
        minimum = (
            logging.NOTSET if self._own.filter(record) else _LIBRARY_LEVELS.get(record.name, logging.INFO)
        )
        return record.levelno >= max(self._level, minimum)
