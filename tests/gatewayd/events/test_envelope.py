"""Tests for gatewayd.events.envelope."""

from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from gatewayd.events.envelope import parse_event


class Status(BaseModel):
    type: str = "status"
    data: dict[str, Any] = {"done": True}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"type": "x", "data": {"a": 1}}, {"type": "x", "data": {"a": 1}}),
        ({"type": "x", "data": None, "more": 1}, {"type": "x", "data": None, "more": 1}),
        ({"type": "chat:tasks:cancel"}, {"type": "chat:tasks:cancel", "data": {}}),
        (MappingProxyType({"type": "x"}), {"type": "x", "data": {}}),
        (Status(), {"type": "status", "data": {"done": True}}),
        ({}, None),
        ({"data": {}}, None),
        ({"type": ""}, None),
        ({"type": 5}, None),
        ({"type": None}, None),
        (None, None),
        ("status", None),
        ([{"type": "x"}], None),
        (object(), None),
    ],
)
def test_reading(value: Any, expected: Any) -> None:
    assert parse_event(value) == expected


def test_what_nests_too_deep_is_dropped() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert parse_event({"type": "x", "data": circle}) is None


def test_what_was_read_is_a_copy() -> None:
    data: dict[str, Any] = {"list": []}
    event = parse_event({"type": "x", "data": data})
    data["list"].append(1)
    assert event == {"type": "x", "data": {"list": []}}
