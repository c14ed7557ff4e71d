"""Tests for gatewayd.events.event_types: the rows of gatewayd-plugins(7), EVENTS, line by line."""

from typing import Any

import pytest

from gatewayd.events.event_types import EVENT_TYPES, PayloadFault, external_names, find_type, names_of
from gatewayd.events.records import Effect, EventHelper

IN_ORDER = [
    ("status",),
    ("chat:completion",),
    ("chat:message:delta", "message"),
    ("chat:message", "replace"),
    ("chat:message:files", "files"),
    ("chat:title",),
    ("chat:tags",),
    ("source", "citation"),
    ("notification",),
    ("chat:message:favorite",),
    ("chat:message:embeds", "embeds"),
    ("chat:message:error",),
    ("chat:message:follow_ups",),
    ("chat:active",),
    ("chat:list",),
    ("chat:reload",),
    ("chat:outlet",),
    ("chat:tasks:cancel",),
    ("confirmation",),
    ("input",),
    ("execute",),
]

# The effect of each stored name.
STORED = {
    "status": Effect.APPEND_STATUS,
    "message": Effect.APPEND_CONTENT,
    "replace": Effect.REPLACE_CONTENT,
    "embeds": Effect.APPEND_EMBEDS,
    "files": Effect.APPEND_FILES,
    "source": Effect.APPEND_SOURCES,
    "citation": Effect.APPEND_SOURCES,
}

NAMES = [name for row in IN_ORDER for name in row]


def test_the_rows_stand_in_the_order_of_the_manual() -> None:
    assert [row.names for row in EVENT_TYPES] == IN_ORDER


@pytest.mark.parametrize("name", NAMES)
def test_short_names_are_stored_and_no_other_is(name: str) -> None:
    row = find_type(name)
    assert row is not None
    assert row.effect_of(name) is STORED.get(name, Effect.NONE)


def test_calls_are_the_three_of_the_manual() -> None:
    assert names_of(EventHelper.CALL) == ("confirmation", "input", "execute")


def test_what_may_come_from_outside_is_the_list_of_the_manual() -> None:
    expected = {"status", "notification", "chat:message:delta", "message", "chat:message", "replace"}
    expected |= {"files", "chat:message:files", "source", "citation"}
    assert set(external_names()) == expected


@pytest.mark.parametrize("name", ["", "own:type", "Status", "chat:"])
def test_other_types_are_not_known(name: str) -> None:
    assert find_type(name) is None


TEXT, LIST, OBJECT = "a string", "a list", "an object"


@pytest.mark.parametrize(
    ("name", "data", "fault"),
    [
        ("status", {"description": "x"}, None),
        ("status", "x", PayloadFault("data", OBJECT)),
        ("message", {"content": ""}, None),
        ("message", {"content": None}, PayloadFault("data.content", TEXT)),
        ("message", {}, PayloadFault("data.content", TEXT)),
        ("message", None, PayloadFault("data", OBJECT)),
        ("replace", {"content": 1}, PayloadFault("data.content", TEXT)),
        ("files", {"files": []}, None),
        ("files", {"files": {}}, PayloadFault("data.files", LIST)),
        ("files", [], PayloadFault("data", OBJECT)),
        ("embeds", {"embeds": ["x"]}, None),
        ("embeds", {"embeds": "x"}, PayloadFault("data.embeds", LIST)),
        ("source", {}, None),
        ("citation", [], PayloadFault("data", OBJECT)),
        ("notification", {"content": "x"}, None),
        ("notification", 1, PayloadFault("data", OBJECT)),
        ("chat:title", "Bare", None),
        ("chat:title", {"title": "x"}, None),
        ("chat:title", 1, PayloadFault("data", "an object or a string")),
        ("chat:tags", ["a"], None),
        ("chat:tags", {"tags": ["a"]}, None),
        ("chat:tags", "a", PayloadFault("data", "an object or a list")),
        ("execute", {"code": "return 1"}, None),
        ("execute", {}, PayloadFault("data.code", TEXT)),
        ("confirmation", {}, None),
        ("input", "x", PayloadFault("data", OBJECT)),
    ],
)
def test_payloads(name: str, data: Any, fault: PayloadFault | None) -> None:
    row = find_type(name)
    assert row is not None
    assert row.check(data) == fault
