"""Levels that change while the daemon runs."""

import io
import logging
from collections.abc import Iterator

import pytest

from gatewayd.errors import GatewayError
from gatewayd.observe.level_changes import MAX_CHANGES, LevelChanges
from gatewayd.observe.logs import LogFormat, configure_logging

NAMES = ("gatewayd", "gatewayd.http", "gatewayd.http.errors", "gatewayd.pipeline", "library", "library.part")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    before, levels = list(root.handlers), {name: logging.getLogger(name).level for name in ("", *NAMES)}
    yield
    root.handlers[:] = before
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def written(stream: io.StringIO) -> list[str]:
    """Log at debug and info with each logger, and return which lines are written."""
    stream.truncate(0)
    stream.seek(0)
    for name in NAMES:
        logging.getLogger(name).debug("debug")
        logging.getLogger(name).info("info")
    return [" ".join(line.split()[2:]) for line in stream.getvalue().splitlines()]


def test_a_level_counts_for_the_loggers_below_and_survives_a_reload() -> None:
    changes, stream = LevelChanges(), io.StringIO()
    for _ in range(2):
        configure_logging("info", LogFormat.TEXT, stream, {})
        changes.apply()
        plain = [f"{name}: info" for name in NAMES]
        assert written(stream) == plain
    changes.change("gatewayd.http", "debug")
    changes.change("gatewayd.http.errors", "warning")
    changes.change("library", "debug")
    changes.change("gatewayd", "warning")
    expected = [
        *("gatewayd.http: debug", "gatewayd.http: info"),
        *("library: debug", "library: info", "library.part: debug", "library.part: info"),
    ]
    assert written(stream) == expected
    configure_logging("info", LogFormat.TEXT, stream, {})
    changes.apply()
    assert written(stream) == expected
    assert [(each.name, each.level, each.is_changed) for each in changes.list()] == [
        ("gatewayd", "warning", True),
        ("gatewayd.http", "debug", True),
        ("gatewayd.http.errors", "warning", True),
        ("library", "debug", True),
    ]
    for name in ("gatewayd", "gatewayd.http", "gatewayd.http.errors", "library", "library"):
        assert not changes.change(name, "default").is_changed
    assert written(stream) == plain
    assert [each.name for each in changes.list()] == ["gatewayd"]


@pytest.mark.parametrize(
    ("name", "level", "field"),
    [
        ("", "debug", "logger"),
        ("a b", "debug", "logger"),
        ("gatewayd\n", "debug", "logger"),
        ("a" * 201, "debug", "logger"),
        (".a", "debug", "logger"),
        ("gatewayd", "loud", "level"),
        ("gatewayd", "", "level"),
        ("gatewayd", "10", "level"),
    ],
)
def test_what_is_no_logger_or_level_is_refused(name: str, level: str, field: str) -> None:
    with pytest.raises(GatewayError, match=f"cannot accept {field}") as refused:
        LevelChanges().change(name, level)
    assert refused.value.param == field


def test_the_number_of_changes_is_limited() -> None:
    changes = LevelChanges()
    for number in range(MAX_CHANGES):
        changes.change(f"library.n{number}", "error")
    with pytest.raises(GatewayError, match="100 loggers are changed"):
        changes.change("library.more", "error")
    changes.change("library.n0", "default")
    changes.change("library.more", "error")
