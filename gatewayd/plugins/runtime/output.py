"""What plugins print becomes log lines with their name; the gateway's logging stays as it was set up."""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TextIO

from gatewayd.plugins.records import log_fields
from gatewayd.plugins.runtime.call_context import CallInfo, current_call

log = logging.getLogger(__name__)

MAX_LINE_CHARACTERS: Final = 8192
"""Characters of one line; a longer one becomes several."""

_is_logging: ContextVar[bool] = ContextVar("gatewayd_plugin_output_is_logged", default=False)


class PluginOutput:
    """Stands in for standard output or error: lines of plugins are logged, the rest is written as ever."""

    def __init__(self, stream: TextIO, level: int) -> None:
        self._stream = stream
        self._level = level
        self._lock = threading.Lock()
        self._begun: dict[str, str] = {}

    def write(self, text: str) -> int:
        """Write a text, in the name of the plugin whose code runs here."""
        now = current_call.get()
        if now is None:
            return self._stream.write(text)
        if _is_logging.get():
            # A handler that the plugin put on the root logger writes here what is being logged.
            return len(text)
        token = _is_logging.set(True)
        try:
            for line in self._lines(now, str(text)):
                told = {**log_fields(now.family, now.plugin_id), "text": line}
                log.log(self._level, "plugin output", extra=told)
        finally:
            _is_logging.reset(token)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _lines(self, now: CallInfo, text: str) -> list[str]:
        whose = f"{now.family.value} {now.plugin_id}"
        with self._lock:
            *whole, rest = (self._begun.pop(whose, "") + text).split("\n")
            if cut := len(rest) - len(rest) % MAX_LINE_CHARACTERS:
                whole.append(rest[:cut])
                rest = rest[cut:]
            if rest:
                self._begun[whose] = rest
        return [
            line[start : start + MAX_LINE_CHARACTERS]
            for line in whole
            for start in range(0, len(line), MAX_LINE_CHARACTERS)
        ]


@contextmanager
def capture_output() -> Iterator[None]:
    """Log what plugins print, and let their `logging.basicConfig` do nothing, while inside."""
    before = sys.stdout, sys.stderr
    set_up = logging.basicConfig
    sys.stdout = mine = PluginOutput(before[0], logging.INFO)
    sys.stderr = error = PluginOutput(before[1], logging.WARNING)

    def others_set_up(**options: Any) -> None:
        if current_call.get() is None:
            set_up(**options)

    logging.basicConfig = others_set_up
    try:
        yield
    finally:
        if logging.basicConfig is others_set_up:
            logging.basicConfig = set_up
        # Somebody who put their own streams over these keeps them.
        if sys.stdout is mine:
            sys.stdout = before[0]
        if sys.stderr is error:
            sys.stderr = before[1]


@dataclass(frozen=True, slots=True)
class _Logging:
    handlers: tuple[logging.Handler, ...]
    level: int
    least: int
    enabled: tuple[logging.Logger, ...]


class LoggingGuard:
    """Puts the root logger back as it was before plugins were loaded, and loggers that they disabled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: _Logging | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Guard what runs inside; loads that overlap share what was there before the first."""
        with self._lock:
            if self._inside == 0:
                self._before = _present()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._before is not None:
                    _restore(self._before)


def _present() -> _Logging:
    root = logging.getLogger()
    known = list(root.manager.loggerDict.values())
    enabled = tuple(one for one in known if isinstance(one, logging.Logger) and not one.disabled)
    return _Logging(tuple(root.handlers), root.level, root.manager.disable, enabled)


def _restore(before: _Logging) -> None:
    root = logging.getLogger()
    for handler in [one for one in root.handlers if one not in before.handlers]:
        root.removeHandler(handler)
    for handler in before.handlers:
        if handler not in root.handlers:
            root.addHandler(handler)
    root.setLevel(before.level)
    root.manager.disable = before.least
    for logger in before.enabled:
        logger.disabled = False
