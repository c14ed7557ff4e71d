"""Capture of the output of plugins as log lines, and protection of the logging setup of the gateway."""

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
"""Maximum length of a line; a longer line is split."""

_is_logging: ContextVar[bool] = ContextVar("gatewayd_plugin_output_is_logged", default=False)


class PluginOutput:
    """Replacement of stdout or stderr: logs the lines of plugins, and writes other output to the stream."""

    def __init__(self, stream: TextIO, level: int) -> None:
        self._stream = stream
        self._level = level
        self._lock = threading.Lock()
        self._partial_lines: dict[str, str] = {}

    def write(self, text: str) -> int:
        """Write a text, or log its lines when code of a plugin writes it."""
        call = current_call.get()
        if call is None:
            return self._stream.write(text)
        if _is_logging.get():
            # A handler that a plugin added to the root logger writes the line that is being logged.
            return len(text)
        token = _is_logging.set(True)
        try:
            for line in self._lines(call, str(text)):
                fields = {**log_fields(call.family, call.plugin_id), "text": line}
                log.log(self._level, "plugin output", extra=fields)
        finally:
            _is_logging.reset(token)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _lines(self, call: CallInfo, text: str) -> list[str]:
        owner = f"{call.family.value} {call.plugin_id}"
        with self._lock:
            *whole, rest = (self._partial_lines.pop(owner, "") + text).split("\n")
            if cut := len(rest) - len(rest) % MAX_LINE_CHARACTERS:
                whole.append(rest[:cut])
                rest = rest[cut:]
            if rest:
                self._partial_lines[owner] = rest
        return [
            line[start : start + MAX_LINE_CHARACTERS]
            for line in whole
            for start in range(0, len(line), MAX_LINE_CHARACTERS)
        ]


@contextmanager
def capture_output() -> Iterator[None]:
    """Log the output of plugins within the block, and ignore their calls of `logging.basicConfig`."""
    before = sys.stdout, sys.stderr
    basic_config = logging.basicConfig
    sys.stdout = output = PluginOutput(before[0], logging.INFO)
    sys.stderr = error = PluginOutput(before[1], logging.WARNING)

    def guarded_basic_config(**options: Any) -> None:
        if current_call.get() is None:
            basic_config(**options)

    logging.basicConfig = guarded_basic_config
    try:
        yield
    finally:
        if logging.basicConfig is guarded_basic_config:
            logging.basicConfig = basic_config
        # Leave streams alone that other code has installed meanwhile.
        if sys.stdout is output:
            sys.stdout = before[0]
        if sys.stderr is error:
            sys.stderr = before[1]


@dataclass(frozen=True, slots=True)
class _Logging:
    handlers: tuple[logging.Handler, ...]
    level: int
    disabled_level: int
    enabled: tuple[logging.Logger, ...]


class LoggingGuard:
    """Restores the root logger, and loggers that were disabled, after plugins were loaded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: _Logging | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Restore the logging setup after the block; overlapping blocks share the setup before the first."""
        with self._lock:
            if self._inside == 0:
                self._before = _current_logging()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._before is not None:
                    _restore(self._before)


def _current_logging() -> _Logging:
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
    root.manager.disable = before.disabled_level
    for logger in before.enabled:
        logger.disabled = False
