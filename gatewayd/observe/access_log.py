"""The access log: one line for each request, formatted and written in batches by a thread.

The event loop only queues the facts. Lines never have bodies, queries or values of paths. If the writer is
slow or the disk full, requests over a limit get no line, and one line tells their number.
"""

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError, system_reason
from gatewayd.measurement.request_notes import RequestNotes, ServedRequest
from gatewayd.observe.journal import IDENTIFIER, JournalHandler, encode_entry
from gatewayd.observe.logs import format_value

LOGGER_NAME: Final = "gatewayd.access"
MAX_QUEUED_REQUESTS: Final = 20_000
"""Maximum number of requests that wait for the writer."""

BATCH_SECONDS: Final = 0.2
"""Pause between two batches of lines."""

MAX_BATCH_REQUESTS: Final = 1000
MAX_VALUE_CHARACTERS: Final = 256
"""Maximum number of characters of a value from outside; the rest is cut off."""

log = logging.getLogger(__name__)


class AccessFormat(StrEnum):
    """Formats of the access log; the setting `access_log`."""

    OFF = "off"
    # `name=value` fields, as in the other lines of the log.
    TEXT = "text"
    # One JSON object a line.
    JSON = "json"


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """Format, the file (None for the output of the log), and whether lines have e-mail addresses."""

    format: AccessFormat = AccessFormat.OFF
    path: Path | None = None
    has_emails: bool = False


class LineWriter(Protocol):
    """Writes lines; called in the thread of the access log only."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines that end with a line end; raises OSError."""
        ...

    def close(self) -> None:
        """Release the output."""
        ...


class FileWriter:
    """Appends to a file, which is opened anew after `reopen`, for rotation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def open(self) -> None:
        """Open the file; raises OSError."""
        if self._descriptor is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(self._path, flags, 0o640)

    def write(self, lines: Sequence[bytes]) -> None:
        """Append lines."""
        self.open()
        left = memoryview(b"".join(lines))
        while left and self._descriptor is not None:
            left = left[os.write(self._descriptor, left) :]

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class LogWriter:
    """Writes to the output of the log, which has a queue of its own: the journal, or standard error."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines; entries of the journal have no time and level, which the journal keeps itself."""
        handlers = logging.getLogger().handlers
        journal = next((each.journal for each in handlers if isinstance(each, JournalHandler)), None)
        if journal is not None:
            for line in lines:
                journal.put(journal_entry(line))
            return
        output = getattr(sys.stderr, "buffer", None)
        if output is not None:
            for line in lines:
                output.write(line)
            output.flush()

    def close(self) -> None:
        """Do nothing: the output belongs to the log."""


class AccessLog:
    """A `http.observation.RequestWatcher` that writes the access log.

    `lost` counts the requests without a line. Output and format change with `configure`; `reopen` makes the
    thread open the file anew.
    """

    def __init__(self, output: Callable[[], LineWriter] = LogWriter) -> None:
        self.lost = 0
        self._output = output
        self._told = 0
        self._queue: deque[tuple[float, ServedRequest]] = deque()
        self._options = AccessOptions()
        self._writer: LineWriter | None = None
        self._logger = logging.getLogger(LOGGER_NAME)
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._is_stale = False
        self._is_broken = False

    @property
    def is_on(self) -> bool:
        """Whether requests get a line."""
        return self._thread is not None and self._logger.isEnabledFor(logging.INFO)

    @property
    def watches_begin(self) -> bool:
        """False: a request gets its line at its end."""
        return False

    def configure(self, options: AccessOptions) -> None:
        """Use other options; not_configured if the file cannot be opened, and the former ones stay."""
        if options.format is not AccessFormat.OFF and options.path is not None:
            check_file(options.path)
        before, self._options = self._options, options
        self._is_stale = self._is_stale or before.path != options.path
        if options.format is AccessFormat.OFF:
            self._stop()
        elif self._thread is None:
            self._logger.setLevel(logging.INFO)
            self._is_over = False
            self._thread = threading.Thread(target=self._run, name="access log", daemon=True)
            self._thread.start()

    def reopen(self) -> None:
        """Open the file anew before the next line, because it was renamed."""
        self._is_stale = True

    def begun(self, notes: RequestNotes, request: object) -> None:
        """Do nothing: a request gets its line at its end."""

    def served(self, served: ServedRequest) -> None:
        """Queue the line of a request."""
        if len(self._queue) >= MAX_QUEUED_REQUESTS:
            self.lost += 1
            return
        self._queue.append((ids.timestamp(), served))

    def close(self) -> None:
        """Write what is queued, for at most two seconds, and end the thread."""
        self._stop()

    def _stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._is_over = True
            self._wake.set()
            thread.join(2.0)

    # The thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_over:
            self._wake.wait(BATCH_SECONDS)
            self._wake.clear()
            while self._queue:
                self._write_batch()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _write_batch(self) -> None:
        options = self._options
        render = render_json if options.format is AccessFormat.JSON else render_text
        lines: list[bytes] = []
        if self.lost != self._told:
            lines.append(lost_line(self.lost - self._told, options.format))
            self._told = self.lost
        batch = min(len(self._queue), MAX_BATCH_REQUESTS)
        for _ in range(batch):
            at, served = self._queue.popleft()
            lines.append(render(at, served, served.email if options.has_emails else served.user_id))
        try:
            self._open().write(lines)
            self._is_broken = False
        except OSError as error:
            self.lost += batch
            if not self._is_broken:
                log.error(
                    "cannot write the access log: %s", error.strerror, extra={"path": str(options.path)}
                )
            self._is_broken = True

    def _open(self) -> LineWriter:
        """Return the writer of the present options; a renamed or replaced file is opened anew."""
        if self._is_stale and self._writer is not None:
            self._writer.close()
            self._writer = None
        self._is_stale = False
        if self._writer is None:
            path = self._options.path
            self._writer = self._output() if path is None else FileWriter(path)
        return self._writer


def check_file(path: Path) -> None:
    """Raise not_configured if a file cannot be opened for the access log."""
    writer = FileWriter(path)
    try:
        writer.open()
    except OSError as error:
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            f"cannot open access_log_path {path}: {system_reason(error)}",
            param="access_log_path",
        ) from error
    finally:
        writer.close()


def facts_of(served: ServedRequest, user: str) -> dict[str, Any]:
    """Return the fields of a line; those without a value are left out, times are in milliseconds."""
    notes = served.notes
    facts: dict[str, Any] = {
        "request_id": served.request_id,
        "client": served.client[:MAX_VALUE_CHARACTERS],
        "method": served.method,
        "route": served.route,
        "status": served.status,
        "ms": round(served.seconds * 1000, 1),
    }
    if served.size >= 0:
        facts["bytes"] = served.size
    if user:
        facts["user"] = user[:MAX_VALUE_CHARACTERS]
    if served.key:
        facts["key"] = served.key
    if notes.model:
        facts["model"] = notes.model[:MAX_VALUE_CHARACTERS]
        facts["provider"] = notes.provider
        if notes.first_seconds:
            facts["first_ms"] = round(notes.first_seconds * 1000, 1)
        facts["prompt_tokens"] = notes.prompt
        facts["cached_tokens"] = notes.cached
        facts["completion_tokens"] = notes.completion
    return facts


def render_text(at: float, served: ServedRequest, user: str) -> bytes:
    """Return a line of `name=value` fields, as `logs.TextFormatter` writes them."""
    notes = served.notes
    line = (
        f"{_time_of(at)} info {LOGGER_NAME}: request request_id={_value(served.request_id)}"
        f" client={_value(served.client)} method={served.method} route={_value(served.route)}"
        f" status={served.status} ms={served.seconds * 1000:.1f}"
    )
    if served.size >= 0:
        line = f"{line} bytes={served.size}"
    if user:
        line = f"{line} user={_value(user)}"
    if served.key:
        line = f"{line} key={_value(served.key)}"
    if notes.model:
        first = f" first_ms={notes.first_seconds * 1000:.1f}" if notes.first_seconds else ""
        line = (
            f"{line} model={_value(notes.model)} provider={_value(notes.provider)}{first}"
            f" prompt_tokens={notes.prompt} cached_tokens={notes.cached} completion_tokens={notes.completion}"
        )
    return f"{line}\n".encode("utf-8", "backslashreplace")


def render_json(at: float, served: ServedRequest, user: str) -> bytes:
    """Return a line with one JSON object."""
    entry = {"time": _time_of(at), "level": "info", "logger": LOGGER_NAME, "message": "request"}
    try:
        return orjson.dumps(entry | facts_of(served, user), option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:  # an unpaired surrogate
        cleaned = {name: _clean(value) for name, value in facts_of(served, user).items()}
        return orjson.dumps(entry | cleaned, option=orjson.OPT_APPEND_NEWLINE)


def lost_line(count: int, form: AccessFormat) -> bytes:
    """Return the line that tells how many requests have none."""
    text = "lines of the access log were dropped: the writer is too slow"
    now = _time_of(ids.timestamp())
    if form is AccessFormat.JSON:
        entry = {"time": now, "level": "warning", "logger": LOGGER_NAME, "message": text, "requests": count}
        return orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE)
    return f"{now} warning {LOGGER_NAME}: {text} requests={count}\n".encode()


def journal_entry(line: bytes) -> bytes:
    """Return the entry of the journal for a line."""
    text = line.decode().rstrip("\n")
    if not text.startswith("{"):
        text = text.split(" ", 2)[2]
    fields = [
        ("MESSAGE", text),
        ("PRIORITY", "6"),
        ("SYSLOG_IDENTIFIER", IDENTIFIER),
        ("LOGGER", LOGGER_NAME),
    ]
    return encode_entry(fields)


def _clean(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _time_of(at: float) -> str:
    whole = int(at)
    return f"{_second_of(whole)}.{int((at - whole) * 1000):03d}Z"


@lru_cache(maxsize=8)
def _second_of(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@lru_cache(maxsize=1024)
def _value(text: str) -> str:
    """Return a value as a field of a line; routes, users and models come again and again."""
    return format_value(text[:MAX_VALUE_CHARACTERS])
