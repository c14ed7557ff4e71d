import asyncio
import io
import json
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayd.observe.logs import (
    MAX_MESSAGE_CHARACTERS,
    JsonFormatter,
    LogFormat,
    TextFormatter,
    configure_logging,
    syslog_priority,
    writes_to_journal,
)
from gatewayd.observe.redact import redact

KEY = "sk-" + "0123456789abcdef" * 4
log = logging.getLogger("gatewayd.test")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Leave logging as it was."""
    root, server = logging.getLogger(), logging.getLogger("aiohttp.server")
    before, level, filters = list(root.handlers), root.level, list(server.filters)
    own = logging.getLogger("gatewayd")
    own_level = own.level
    yield
    own.setLevel(own_level)
    root.handlers[:], server.filters[:] = before, filters
    root.setLevel(level)


def text_lines(level: str = "info") -> Callable[[], list[str]]:
    stream = io.StringIO()
    configure_logging(level, LogFormat.TEXT, stream, {})
    return lambda: stream.getvalue().splitlines()


def json_lines(level: str = "info") -> Callable[[], list[dict[str, Any]]]:
    stream = io.StringIO()
    configure_logging(level, LogFormat.JSON, stream, {})
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def journal_lines(tmp_path: Path, log_format: LogFormat, write: Callable[[], None]) -> list[str]:
    """Log with a file for standard error that JOURNAL_STREAM names."""
    with (tmp_path / "journal").open("w+") as stream:
        found = os.fstat(stream.fileno())
        configure_logging("debug", log_format, stream, {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"})
        write()
        stream.seek(0)
        return stream.read().splitlines()


def named(name: str) -> logging.Handler:
    return next(handler for handler in logging.getLogger().handlers if handler.get_name() == name)


def test_a_plain_line_has_time_level_logger_message_and_fields() -> None:
    lines = text_lines()
    log.info("request %s", "done", extra={"status": 200, "model": "a b", "nothing": None, "tags": ["x"]})
    (line,) = lines()
    stamp, _, rest = line.partition(" ")
    assert stamp.endswith("Z")
    assert len(stamp) == len("2026-01-01T00:00:00.000Z")
    assert rest == 'info gatewayd.test: request done status=200 model="a b" tags="[\\"x\\"]"'


def test_a_line_cannot_be_forged() -> None:
    lines = text_lines()
    log.info("unknown path %s", "/x\nforged line\x1b[2J", extra={"agent": "curl\r\nforged"})
    (line,) = lines()
    assert line.endswith('"unknown path /x\\nforged line\\x1b[2J" agent="curl\\r\\nforged"')


FIELD = re.compile(r' ([A-Za-z0-9_.-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s"=\\]+))')
ESCAPE = re.compile(r"\\(?:x(..)|u(.{4})|U(.{8})|(.))")
SHORT = {"n": "\n", "r": "\r", "t": "\t"}


def unquoted(text: str) -> str:
    """Return what `quote` was given."""
    return ESCAPE.sub(
        lambda found: (
            SHORT.get(found[4], found[4]) if found[4] else chr(int(found[1] or found[2] or found[3], 16))
        ),
        text,
    )


def read_back(rest: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the message and the fields of what follows the name of the logger in a line of text."""
    quoted = re.match(r'"((?:[^"\\]|\\.)*)"', rest)
    if quoted is None:
        message = re.split(r" [A-Za-z0-9_.-]+=", rest, maxsplit=1)[0]
        fields = rest[len(message) :]
    else:
        message, fields = unquoted(quoted[1]), rest[quoted.end() :]
    assert FIELD.sub("", fields) == ""
    found = [(name, plain or unquoted(text)) for name, text, plain in FIELD.findall(fields)]
    return message, found


TEXTS = st.one_of(
    st.text(),
    st.text(alphabet='ab =_"\\\n\r\t\x1b\x85\u2028\u202e\u200b'),
    st.sampled_from(['x\\" by=admin', '" by="admin', "a by=admin", "\\", '"', "", "by=", "\\n", " ", "a\\"]),
)


@settings(deadline=None)
@given(message=TEXTS, values=st.lists(TEXTS, max_size=3), journal=st.booleans())
@example(message='made "x" by=admin', values=['Ada" by=admin x="', "a\\"], journal=False)
def test_what_is_in_a_line_is_read_back(message: str, values: list[str], journal: bool) -> None:
    sent = {f"field_{place}": value for place, value in enumerate(values)}
    entry = {"name": "gatewayd.test", "levelno": 20, "levelname": "INFO", "msg": "%s", "args": (message,)}
    record = logging.makeLogRecord({**entry, **sent})
    line = TextFormatter(journal=journal).format(record)
    assert len(line.splitlines()) == 1
    line.encode()
    expected = redact(message), [(name, redact(value)) for name, value in sent.items()]
    assert read_back(line.partition("gatewayd.test: ")[2]) == expected
    told = json.loads(JsonFormatter().format(record))
    assert (told["message"], [(name, told[name]) for name in sent]) == expected


def test_the_name_of_a_field_is_no_text() -> None:
    record = logging.makeLogRecord({"name": "x", "levelno": 20, "msg": "m", "a b=c\n": 1, "": 2})
    assert TextFormatter(journal=True).format(record) == "<6>x: m a_b_c_=1 _=2"


def test_a_traceback_follows_on_marked_lines_without_secrets() -> None:
    lines = text_lines()
    try:
        raise ValueError(f"bad header {KEY}\n2026 info forged: line\x00")
    except ValueError:
        log.exception("cannot handle")
    first, *rest = lines()
    assert first.endswith("gatewayd.test: cannot handle")
    assert all(line.startswith("  | ") for line in rest)
    assert rest[-1] == "  | 2026 info forged: line\\x00"
    assert KEY[3:] not in "".join(rest)


def test_journal_lines_begin_with_the_priority(tmp_path: Path) -> None:
    def write() -> None:
        log.debug("one")
        log.warning("two", extra={"n": 2})
        log.error("three", exc_info=ValueError("why"))

    assert journal_lines(tmp_path, LogFormat.TEXT, write) == [
        "<7>gatewayd.test: one",
        "<4>gatewayd.test: two n=2",
        "<3>gatewayd.test: three",
        "<3>  | ValueError: why",
    ]


def test_json_in_the_journal_keeps_the_priority(tmp_path: Path) -> None:
    (line,) = journal_lines(tmp_path, LogFormat.JSON, lambda: log.warning("two"))
    assert line.startswith("<4>{")
    assert json.loads(line[3:])["message"] == "two"


@pytest.mark.parametrize("value", ["", "1:1", "junk"])
def test_another_stream_is_not_the_journal(value: str, tmp_path: Path) -> None:
    with (tmp_path / "other").open("w") as stream:
        assert not writes_to_journal(stream, {"JOURNAL_STREAM": value})
    assert not writes_to_journal(stream, {"JOURNAL_STREAM": "1:1"})
    assert not writes_to_journal(io.StringIO(), {"JOURNAL_STREAM": "1:1"})


def test_json_lines_hold_fields_and_exception() -> None:
    lines = json_lines()
    log.error("cannot %s", "start", extra={"level": 3, "user": {"token": "x"}}, exc_info=OSError(KEY))
    (entry,) = lines()
    assert entry["level"] == "error"
    assert entry["level_"] == 3
    assert entry["logger"] == "gatewayd.test"
    assert entry["message"] == "cannot start"
    assert entry["user"] == {"token": "[redacted]"}
    assert entry["exception"] == "OSError: sk-[redacted]"


@pytest.mark.parametrize("make", [text_lines, json_lines])
def test_secrets_never_reach_a_line(make: Callable[[], Callable[[], list[Any]]]) -> None:
    lines = make()
    log.info("key %s", KEY, extra={"password": "hunter2", "header": f"Bearer {KEY}", "a": {"b": [KEY]}})
    written = str(lines())
    assert KEY[3:] not in written
    assert "hunter2" not in written
    assert written.count("[redacted]") == 4


def test_an_object_is_an_object_in_json_and_readable_in_text() -> None:
    before = {"displayName": "José\u202e 🙂", "emails": [{"value": "a@b.org", "primary": True}], "note": KEY}
    lines = text_lines()
    log.info("changed", extra={"before": before})
    (text,) = lines()
    assert "José\\u202e 🙂" in text
    assert "a@b.org" in text
    assert KEY not in text
    entries = json_lines()
    log.info("changed", extra={"before": before})
    (entry,) = entries()
    assert entry["before"] == {**before, "note": "sk-[redacted]"}


def test_a_long_message_is_cut() -> None:
    lines = json_lines()
    log.info("x" * (MAX_MESSAGE_CHARACTERS + 5), extra={"field": "y" * (MAX_MESSAGE_CHARACTERS + 6)})
    (entry,) = lines()
    assert entry["message"].endswith("x ... (5 characters left out)")
    assert entry["field"].endswith("y ... (6 characters left out)")


def test_a_long_traceback_keeps_its_end() -> None:
    lines = json_lines()
    log.error("cannot", exc_info=ValueError("x" * 2 * MAX_MESSAGE_CHARACTERS + "the end"))
    assert lines()[0]["exception"].endswith("the end")
    assert len(lines()[0]["exception"]) < MAX_MESSAGE_CHARACTERS + 100


def test_a_format_that_does_not_fit_is_still_logged() -> None:
    lines = json_lines()
    record = logging.makeLogRecord({"name": "x", "levelno": 20, "msg": "%d models", "args": ("many",)})
    named("gatewayd").handle(record)
    assert lines()[0]["message"] == "%d models ('many',)"


def test_configuring_again_replaces() -> None:
    first = text_lines()
    second = text_lines("warning")
    log.info("quiet")
    log.warning("loud")
    assert first() == []
    assert len(second()) == 1


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="Unknown level"):
        configure_logging("loud", LogFormat.TEXT, io.StringIO(), {})


@pytest.mark.parametrize(
    ("level", "expected"), [(10, 7), (20, 6), (30, 4), (40, 3), (50, 2), (5, 7), (45, 3)]
)
def test_priorities(level: int, expected: int) -> None:
    assert syslog_priority(level) == expected


# The HTTP server's own log ------------------------------------------------------------------------------

MALFORMED = b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + KEY.encode() + b"\x00\r\n\r\n"


async def exchange(request: bytes) -> bytes:
    """Send raw bytes to a real server and return its answer."""

    async def broken(_: web.Request) -> web.Response:
        raise LookupError("a bug")

    app = web.Application()
    app.router.add_get("/broken", broken)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return await _converse(runner.addresses[0], request)
    finally:
        await runner.cleanup()


async def _converse(address: Any, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(address[0], address[1])
    writer.write(request)
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize("level", ["info", "debug"])
async def test_a_malformed_request_is_at_most_one_debug_line(level: str) -> None:
    lines = json_lines(level)
    assert b" 400 " in await exchange(MALFORMED)
    assert [entry for entry in lines() if entry["logger"] == "aiohttp.server"] == []
    entries = [entry for entry in lines() if entry["message"] == "malformed request"]
    if level == "info":
        assert entries == []
        return
    (entry,) = entries
    assert (entry["level"], entry["message"], entry["error"]) == (
        "debug",
        "malformed request",
        "BadHttpMessage",
    )
    assert "exception" not in entry
    assert KEY[3:] not in str(lines())


async def test_a_bug_in_a_handler_keeps_its_traceback() -> None:
    lines = json_lines()
    assert b" 500 " in await exchange(b"GET /broken HTTP/1.1\r\nHost: x\r\n\r\n")
    entry = next(entry for entry in lines() if entry["logger"] == "aiohttp.server")
    assert entry["level"] == "error"
    assert entry["exception"].endswith("LookupError: a bug")


def test_the_filter_is_added_once() -> None:
    text_lines()
    text_lines()
    names = [type(known).__name__ for known in logging.getLogger("aiohttp.server").filters]
    assert names == ["ServerNoise"]


def test_a_closed_socket_is_no_journal() -> None:
    left, right = socket.socketpair()
    stream = left.makefile("w")
    for end in (left, right):
        end.close()
    stream.close()
    assert not writes_to_journal(stream, {"JOURNAL_STREAM": "1:1"})


def lines_of_libraries(level: str, *debug_loggers: str) -> list[str]:
    """Return what two libraries, a plugin and the gateway log, as `logger level`."""
    stream = io.StringIO()
    configure_logging(level, LogFormat.JSON, stream, {}, debug_loggers)
    for name in ("aiosqlite", "tortoise.db_client", "function_echo", "gatewayd.test", "gatewaydlike"):
        logger = logging.getLogger(name)
        logger.debug("executing %s", ("INSERT ...", "$argon2id$"))
        logger.info("told")
    return [f"{one['logger']} {one['level']}" for one in map(json.loads, stream.getvalue().splitlines())]


INFORMED = ["aiosqlite info", "tortoise.db_client info", "function_echo info"]


def test_libraries_do_not_log_what_they_store() -> None:
    assert lines_of_libraries("debug") == [
        *INFORMED,
        "gatewayd.test debug",
        "gatewayd.test info",
        "gatewaydlike info",
    ]


def test_a_logger_without_a_name_is_no_name_of_every_logger() -> None:
    assert lines_of_libraries("info", "") == lines_of_libraries("info")


def test_a_library_that_sets_its_own_level_stays_quiet() -> None:
    logger = logging.getLogger("aiosqlite")
    logger.setLevel(logging.DEBUG)
    try:
        assert "aiosqlite debug" not in lines_of_libraries("debug")
    finally:
        logger.setLevel(logging.NOTSET)


def test_a_library_that_is_named_logs_all_it_has() -> None:
    named = ["tortoise.db_client debug", "tortoise.db_client info"]
    assert lines_of_libraries("info", "tortoise") == [
        "aiosqlite info",
        *named,
        "function_echo info",
        "gatewayd.test info",
        "gatewaydlike info",
    ]
    assert lines_of_libraries("error", "tortoise.db_client", "nothing") == named
    assert lines_of_libraries("error") == []
