"""Tests for gatewayd.pipeline.tools.arguments."""

from typing import Any

import pytest

from gatewayd.errors import GatewayError
from gatewayd.pipeline.tools.arguments import read_arguments, to_json_object
from tests.fakes.providers.tool_calls import make_spec

SPEC = make_spec(
    "f", n="integer", x="number", s="string", o={"anyOf": [{"type": "integer"}, {"type": "null"}]}
)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"n": 1}', {"n": 1}),
        ('{"n": "12", "x": "1.5", "s": 7}', {"n": 12, "x": 1.5, "s": "7"}),
        ('{"n": 2.0, "o": "3"}', {"n": 2, "o": 3}),
        ('{"n": "many", "o": null, "s": true}', {"n": "many", "o": None, "s": True}),
        ("{'n': 1, 's': None, 'z': True}", {"n": 1, "s": None}),
        ("", {}),
        ("  ", {}),
        ("{}", {}),
    ],
)
def test_arguments(arguments: str, expected: dict[str, Any]) -> None:
    assert read_arguments(arguments, SPEC) == expected


@pytest.mark.parametrize("arguments", ["[1]", "null", "text", "{", "__import__('os')", "(" * 50_000, "{1}"])
def test_arguments_that_are_no_object_are_refused(arguments: str) -> None:
    with pytest.raises(GatewayError, match="not a JSON object"):
        read_arguments(arguments, SPEC)


def test_a_literal_that_is_too_long_is_not_tried() -> None:
    with pytest.raises(GatewayError):
        read_arguments("{'s': '" + "x" * 70_000 + "'}", SPEC)


def test_arguments_that_hold_too_much_are_not_read() -> None:
    much = '{"o":[' + "[]," * 250_000 + "[]]}"
    assert to_json_object(much) == "{}"
    with pytest.raises(GatewayError, match="not a JSON object"):
        read_arguments(much, SPEC)


def test_without_parameters_nothing_is_passed() -> None:
    assert read_arguments('{"a": 1}', {"name": "f"}) == {}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"a":  1}', '{"a":  1}'),
        ("{'a': None}", '{"a": null}'),
        ("{'a': {1}}", '{"a": "{1}"}'),
        ("{(1, 2): 3}", "{}"),
        ("[1]", "{}"),
        ("text", "{}"),
        ("", "{}"),
    ],
)
def test_arguments_that_a_provider_takes(arguments: str, expected: str) -> None:
    assert to_json_object(arguments) == expected
