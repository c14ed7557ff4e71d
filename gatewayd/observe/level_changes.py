"""Levels of loggers that change while the daemon runs, until it ends."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.log_levels import LibraryDebug

LEVELS: Final = ("debug", "info", "warning", "error", "critical")
DEFAULT: Final = "default"
"""Word that takes a change back."""

OWN_LOGGER: Final = "gatewayd"
LOGGER_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
MAX_NAME_CHARACTERS: Final = 200
MAX_CHANGES: Final = 100
"""Maximum number of loggers whose level is changed."""


@dataclass(frozen=True, slots=True)
class LoggerLevel:
    """The level of a logger, a word of `LEVELS`; one that `is_changed` differs from the settings."""

    name: str
    level: str
    is_changed: bool


class LevelChanges:
    """Changes levels of loggers; each change counts for the loggers below, unless they have one of their own.

    The settings are applied by `logs.configure_logging`, which forgets the changes: `apply` follows it.
    """

    def __init__(self) -> None:
        self._changes: dict[str, int] = {}
        self._before: dict[str, int] = {}

    def list(self) -> Sequence[LoggerLevel]:
        """Return the level of the gateway's loggers, and the changed ones, sorted by name."""
        names = sorted({OWN_LOGGER, *self._changes})
        return [
            LoggerLevel(
                name,
                logging.getLevelName(logging.getLogger(name).getEffectiveLevel()).lower(),
                name in self._changes,
            )
            for name in names
        ]

    def change(self, name: str, level: str) -> LoggerLevel:
        """Set a level, or take a change back with `DEFAULT`; raises invalid_request and conflict."""
        if len(name) > MAX_NAME_CHARACTERS or LOGGER_NAME.fullmatch(name) is None:
            raise invalid("cannot accept logger: expected a name such as gatewayd.http", param="logger")
        if level != DEFAULT and level not in LEVELS:
            words = ", ".join((*LEVELS, DEFAULT))
            raise invalid(f"cannot accept level: expected one of {words}", param="level")
        logger = logging.getLogger(name)
        if level == DEFAULT:
            if self._changes.pop(name, None) is not None:
                logger.setLevel(self._before.pop(name))
        else:
            self._keep(name, logger, logging.getLevelNamesMapping()[level.upper()])
        self._filter()
        found = logging.getLevelName(logger.getEffectiveLevel()).lower()
        return LoggerLevel(name, found, name in self._changes)

    def apply(self) -> None:
        """Apply the changes again, after the settings were applied."""
        for name, level in self._changes.items():
            logger = logging.getLogger(name)
            if name == OWN_LOGGER:
                self._before[name] = logger.level
            logger.setLevel(level)
        self._filter()

    def _keep(self, name: str, logger: logging.Logger, level: int) -> None:
        if name not in self._changes:
            if len(self._changes) >= MAX_CHANGES:
                raise GatewayError(
                    ErrorKind.CONFLICT,
                    f"cannot change the level of {name}: {MAX_CHANGES} loggers are changed",
                )
            self._before[name] = logger.level
        self._changes[name] = level
        logger.setLevel(level)

    def _filter(self) -> None:
        for handler in logging.getLogger().handlers:
            for each in handler.filters:
                if isinstance(each, LibraryDebug):
                    each.change(self._changes)
