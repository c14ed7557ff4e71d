"""Tests for gatewayd.pipeline.tools.prompt."""

from typing import Any

import orjson
import pytest

from gatewayd.pipeline.tools.prompt import parse_tool_choice, tool_choice_request
from tests.fakes.providers.tool_calls import make_spec


def test_the_model_is_told_the_functions_and_the_last_messages() -> None:
    said = [{"role": "user" if n % 2 else "assistant", "content": f"said {n}."} for n in range(1, 8)]
    system, user = tool_choice_request(
        [make_spec("clock", zone="string")], [{"role": "system", "content": "S"}, *said]
    )
    assert '"clock"' in system["content"]
    assert '{"tool_calls": [{"name"' in system["content"]
    assert [f"said {n}." in user["content"] for n in (3, 4, 7)] == [False, True, True]
    assert user["content"].endswith("Query: said 7.")


def names(answer: str) -> list[tuple[str, Any]]:
    calls = parse_tool_choice(answer, {"clock": 1, "sum": 1})
    return [(call["function"]["name"], orjson.loads(call["function"]["arguments"])) for call in calls]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"tool_calls": [{"name": "clock", "parameters": {"zone": "UTC"}}]}', [("clock", {"zone": "UTC"})]),
        ('```json\n{"tool_calls": [{"name": "sum"}, {"name": "clock"}]}\n```', [("sum", {}), ("clock", {})]),
        ('Yes: {"name": "sum", "parameters": {"a": 1}} !', [("sum", {"a": 1})]),
        ('<think>{"a"} or {"name": "clock"}</think>{"name": "sum"}', [("sum", {})]),
        ('As {said}: {"name": "sum"}', [("sum", {})]),
        ('{"tool_calls": []}', []),
        ('{"tool_calls": [{"name": "unknown"}, 3, null]}', []),
        ('{"tool_calls": {"name": "sum"}}', []),
        ('{"name": 3}', []),
        ("none", []),
        ("} {", []),
        ("{not json}", []),
        ("", []),
    ],
)
def test_what_is_chosen(answer: str, expected: list[Any]) -> None:
    assert names(answer) == expected


def test_each_call_has_an_id_of_its_own() -> None:
    first, second = parse_tool_choice('{"tool_calls": [{"name": "sum"}, {"name": "sum"}]}', {"sum": 1})
    assert first["id"] != second["id"]
