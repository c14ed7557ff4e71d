"""Tests for gatewayd.log_levels; what a whole log shows is in the tests of gatewayd.observe.logs."""

import logging

import pytest

from gatewayd.log_levels import LibraryDebug


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("gatewayd.pipeline", logging.DEBUG),
        ("library", logging.INFO),
        ("named.part", 1),
        # While the server is away, it would write a traceback every second.
        ("asyncpg.pool", logging.ERROR),
        ("asyncpg", logging.INFO),
    ],
)
def test_the_name_of_a_logger_decides_what_is_written(name: str, least: int) -> None:
    written = LibraryDebug(logging.DEBUG, ["named"])
    levels = (1, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
    records = [logging.makeLogRecord({"name": name, "levelno": level}) for level in levels]
    assert [record.levelno for record in records if written.filter(record)] == [
        level for level in levels if level >= least
    ]
