"""Logging: setup and formatters; one line a record, without secrets and control characters.

The formats are entries of the journal or lines with `<N>` priorities for it, plain lines for a terminal or a
file, and JSON lines. Fields given as `extra=` follow the message. The formatters remove secrets, not a
filter, because tracebacks contain them too.
"""

import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from gatewayd.log_levels import LibraryDebug
from gatewayd.observe.journal import JOURNAL_SOCKET, JournalHandler, JournalSocket, text_of
from gatewayd.observe.outputs import QueuedOutput
from gatewayd.observe.redact import CONTROLS, escape, quote, redact, redact_value

MAX_MESSAGE_CHARACTERS = 8192
"""Maximum number of characters of a message, field or traceback."""

_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_AMBIGUOUS_VALUE = re.compile(rf'[\s"=\\{CONTROLS}]|^$')
# A message ends where the first field begins, ` name=`.
_AMBIGUOUS_MESSAGE = re.compile(rf'["=\\{CONTROLS}]|^$')

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    """Format of log records; the setting `log_format`."""

    # Lines for people, with priorities when standard error goes to the journal.
    TEXT = "text"
    # One JSON object a line.
    JSON = "json"


class TextFormatter(logging.Formatter):
    """Formatter for `time level logger: message name=value`; traceback lines follow, which begin with `  | `.

    Each field can be parsed back, as in logfmt: `redact.quote` quotes a message or value with a quote, an
    equals sign, a backslash or an escaped character, a value with white space, and an empty one; in a name
    every character outside of `A-Za-z0-9_.-` becomes `_`.

    With `journal`, lines have no time and level (the journal stores them) and begin with `<N>`; with `native`
    they have neither, as the text of an entry.
    """

    def __init__(self, *, journal: bool = False, native: bool = False) -> None:
        super().__init__()
        self._journal = journal
        self._native = native

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as lines without a final newline."""
        fields = "".join(f" {_key(name)}={format_value(value)}" for name, value in fields_of(record).items())
        message = _message(record)
        lines = [
            f"{record.name}: {quote(message) if _AMBIGUOUS_MESSAGE.search(message) else message}{fields}"
        ]
        lines += [f"  | {escape(line)}" for line in _traceback(record).splitlines()]
        if self._native:
            return "\n".join(lines)
        if self._journal:
            return "\n".join(f"<{syslog_priority(record.levelno)}>{line}" for line in lines)
        return f"{_timestamp(record)} {record.levelname.lower()} " + "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """Formatter for one JSON object a line: time, level, logger, message, the fields, `exception`.

    A field with a name that is already used gets a trailing underscore. With `journal` each line begins with
    `<N>`, which the journal removes.
    """

    def __init__(self, *, journal: bool = False) -> None:
        super().__init__()
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        entry: dict[str, object] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        for name, value in fields_of(record).items():
            entry[f"{name}_" if name in entry else name] = value
        if trace := _traceback(record):
            entry["exception"] = trace
        line = json.dumps(entry, ensure_ascii=True, allow_nan=True)
        return f"<{syslog_priority(record.levelno)}>{line}" if self._journal else line


class ServerNoise(logging.Filter):
    """Replaces the error of the HTTP server for a malformed request by one debug line of this program.

    The server logs such a request as an error with a traceback and the header bytes at fault, which may hold
    tokens; any client could fill the log.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged; other records are unchanged."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None or not _is_protocol_error(error):
            return True
        record.name, record.levelno, record.levelname = __name__, logging.DEBUG, "DEBUG"
        record.msg, record.args = "malformed request", ()
        record.exc_info = record.exc_text = None
        vars(record)["error"] = type(error).__name__
        return logging.getLogger(record.name).isEnabledFor(logging.DEBUG)


def configure_logging(
    level: str,
    log_format: LogFormat,
    stream: TextIO,
    environ: Mapping[str, str],
    debug_loggers: Iterable[str] = (),
    journal_socket: Path = JOURNAL_SOCKET,
) -> logging.Handler:
    """Send records of at least `level` (`debug` ... `critical`) to `stream`; return the handler.

    Records of libraries start at INFO, those of the loggers named in `debug_loggers` at DEBUG. `environ` is
    read for JOURNAL_STREAM only: if it names the stream, records go to `journal_socket` by the protocol of
    the journal, and to the stream if there is no such socket. Raises ValueError for an unknown level. A
    further call replaces the earlier setup.
    """
    journal = writes_to_journal(stream, environ)
    made = JsonFormatter if log_format is LogFormat.JSON else TextFormatter
    formatter = made(journal=journal)
    output = getattr(stream, "buffer", None)
    if isinstance(output, QueuedOutput):
        output.report = lambda lost: f"{formatter.format(_lost_record(lost))}\n"
    handler: logging.Handler
    if journal and journal_socket.is_socket():
        handler = _journal_handler(journal_socket, stream, log_format)
    else:
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
    handler.set_name("gatewayd")
    root, own = logging.getLogger(), logging.getLogger("gatewayd")
    own.setLevel(level.upper())
    # An empty name would match every logger.
    named = tuple(name for name in debug_loggers if name)
    root.setLevel(logging.DEBUG if named else max(own.level, logging.INFO))
    handler.addFilter(LibraryDebug(own.level, named))
    for former in [known for known in root.handlers if known.get_name() == "gatewayd"]:
        root.removeHandler(former)
        if not _shares_journal(former, handler):
            former.close()
    root.addHandler(handler)
    server = logging.getLogger("aiohttp.server")
    if not any(isinstance(known, ServerNoise) for known in server.filters):
        server.addFilter(ServerNoise())
    return handler


def _journal_handler(path: Path, stream: TextIO, log_format: LogFormat) -> JournalHandler:
    """Return the handler for a journal; a former handler for the same one hands its queue over."""
    known = [each.journal for each in logging.getLogger().handlers if isinstance(each, JournalHandler)]
    journal = next((each for each in known if each.path == path), None) or JournalSocket(path)
    output = getattr(stream, "buffer", None)
    if output is not None:
        journal.fallback = lambda entry: _write_entry(output, entry)
    handler = JournalHandler(journal, lambda record: fields_of(record).items(), syslog_priority)
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter(native=True))
    return handler


def _write_entry(output: BinaryIO, entry: bytes) -> None:
    output.write(text_of(entry))
    output.flush()


def _shares_journal(former: logging.Handler, handler: logging.Handler) -> bool:
    both = isinstance(former, JournalHandler) and isinstance(handler, JournalHandler)
    return both and former.journal is handler.journal  # type: ignore[attr-defined]


def writes_to_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether JOURNAL_STREAM (`device:inode`) in `environ` names `stream`."""
    expected = environ.get("JOURNAL_STREAM", "")
    if not expected:
        return False
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):  # closed, or a stream without a descriptor
        return False
    return expected == f"{found.st_dev}:{found.st_ino}"


def syslog_priority(level: int) -> int:
    """Return the syslog priority (3 error ... 7 debug) of a logging level."""
    thresholds = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
    return next((number for limit, number in thresholds if level >= limit), 7)


def _lost_record(lost: int) -> logging.LogRecord:
    """Return the record that reports dropped records."""
    fields: dict[str, Any] = {
        "name": __name__,
        "levelno": logging.WARNING,
        "levelname": "WARNING",
        "msg": "log records were dropped: the reader of the log is too slow",
        "records": lost,
    }
    return logging.makeLogRecord(fields)


def _is_protocol_error(error: BaseException) -> bool:
    # Compared by module name: the HTTP library itself is imported by the edge only.
    return any(cls.__module__ == "aiohttp.http_exceptions" for cls in type(error).__mro__)


def _message(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except (TypeError, ValueError):  # a format string that does not fit its arguments
        text = f"{record.msg} {record.args}"
    return redact(_cut(text))


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields of a record without secrets."""
    found = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {
        name: redact_value(name, _cut(value) if isinstance(value, str) else value)
        for name, value in found.items()
        if value is not None
    }


def format_value(value: object) -> str:
    """Return the value of a field of a line, in quotes if it could be read in another way."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return quote(text) if _AMBIGUOUS_VALUE.search(text) else text


def _key(name: str) -> str:
    return _NO_NAME.sub("_", name) or "_"


def _traceback(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    trace = logging.Formatter().formatException(record.exc_info)
    if len(trace) > MAX_MESSAGE_CHARACTERS:  # the end says what happened
        left_out = len(trace) - MAX_MESSAGE_CHARACTERS
        trace = f"... ({left_out} characters left out) {trace[-MAX_MESSAGE_CHARACTERS:]}"
    return redact(trace)


def _cut(text: str) -> str:
    if len(text) <= MAX_MESSAGE_CHARACTERS:
        return text
    return f"{text[:MAX_MESSAGE_CHARACTERS]} ... ({len(text) - MAX_MESSAGE_CHARACTERS} characters left out)"


def _timestamp(record: logging.LogRecord) -> str:
    whole = datetime.fromtimestamp(int(record.created), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{int(record.msecs):03d}Z"
