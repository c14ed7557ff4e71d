"""Tests for gatewayd.pipeline.responses.references."""

from typing import Any

import pytest

from gatewayd.errors import GatewayError
from gatewayd.pipeline.responses.references import ResponseReference, ids_in, references_in


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"previous_response_id": "r"}, [("r", "previous_response_id", "response")]),
        ({"conversation": "c"}, [("c", "conversation", "conversation")]),
        ({"conversation": {"id": "c"}}, [("c", "conversation", "conversation")]),
        ({"input": [{"type": "item_reference", "id": "i"}]}, [("i", "input", "item")]),
        ({"input": [{"id": "i"}]}, [("i", "input", "item")]),
        ({"input": [{"type": None, "id": "i"}]}, [("i", "input", "item")]),
        ({"input": [{"type": "image_generation_call", "id": "i"}]}, [("i", "input", "item")]),
        ({"input": [{"type": "reasoning", "id": "i", "summary": []}]}, [("i", "input", "item")]),
        ({"input": [{"type": "message", "container_id": "k"}]}, [("k", "input", "container")]),
        ({"tools": [{"type": "code_interpreter", "container": "k"}]}, [("k", "tools", "container")]),
        ({"tools": [{"type": "namespace", "tools": [{"container": "k"}]}]}, [("k", "tools", "container")]),
        ({"input": [{"type": "additional_tools", "id": "i"}]}, [("i", "input", "item")]),
        (
            {"input": [{"type": "additional_tools", "id": "i", "tools": [{"container": "k"}]}]},
            [("k", "input", "container")],
        ),
        (
            {"tools": [{"tools": [{"tools": [{"container": "k"}, {"container": "l"}]}]}]},
            [("k", "tools", "container"), ("l", "tools", "container")],
        ),
        (
            {"input": [{"type": "additional_tools", "id": "i", "tools": [{"tools": [{"container": "k"}]}]}]},
            [("k", "input", "container")],
        ),
    ],
)
def test_what_a_provider_keeps_is_found(body: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    assert list(references_in(body)) == [ResponseReference(*each) for each in expected]


@pytest.mark.parametrize(
    "body",
    [
        {"input": "a", "previous_response_id": None, "conversation": None},
        {"input": [{"role": "user", "content": "a", "id": "i"}, {"type": "message", "id": "i"}, "odd", 1]},
        {"input": [{"type": "function_call", "id": "i"}, {"type": "function_call_output", "id": "i"}]},
        {"input": [{"type": "reasoning", "id": "i", "encrypted_content": "x"}]},
        {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}], "previous_response_id": 1},
    ],
)
def test_what_a_client_writes_itself_names_nothing(body: dict[str, Any]) -> None:
    assert list(references_in(body)) == []


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": [{"Type": "item_reference", "role": "user", "id": "i"}]}, "input"),
        ({"conversation": {"ID": "c"}}, "conversation"),
        ({"tools": [{"Container": "k"}]}, "tools"),
        ({"input": [{"type": "additional_tools", "tools": [], "Tools": [{"container": "k"}]}]}, "input"),
        ({"tools": [{"Tools": [{"container": "k"}]}]}, "tools"),
    ],
)
def test_names_in_another_case_are_refused(body: dict[str, Any], param: str) -> None:
    with pytest.raises(GatewayError, match="must be written in lower case") as caught:
        list(references_in(body))
    assert caught.value.param == param


def test_the_ids_of_answers_and_events() -> None:
    items = [{"id": "i"}, {"id": "k", "container_id": "c"}, {"id": 1}, "odd"]
    assert list(ids_in({"id": "r", "output": items})) == ["r", "i", "k", "c"]
    assert list(ids_in({"type": "response.completed", "response": {"id": "r", "output": items}})) == [
        *("r", "i", "k", "c")
    ]
    assert list(ids_in({"type": "response.output_item.done", "id": "x", "item": {"id": "i"}})) == ["i"]
    assert list(ids_in({})) == []
