"""Tests for gatewayd.pipeline.documents.model_info."""

from typing import Any

import pytest

from gatewayd.catalog.records import Grant, ModelRecord
from gatewayd.pipeline.documents.model_info import assigned_ids, describe_model, render_model
from tests.fakes.providers.models import make_model


def test_a_model_without_a_record_has_no_info() -> None:
    described = describe_model(make_model("m", detail={"openai": {"id": "m"}}), None)
    assert described["id"] == "m"
    assert described["openai"] == {"id": "m"}
    assert "info" not in described


def test_the_record_names_the_model_and_is_shown_whole() -> None:
    record = ModelRecord("m", "u1", "Mine", params={"a": 1}, grants=(Grant("user", "*", "read"),))
    described = describe_model(make_model("m"), record)
    assert described["name"] == "Mine"
    assert described["info"]["params"] == {"a": 1}
    grant = {"principal_type": "user", "principal_id": "*", "permission": "read"}
    assert described["info"]["access_grants"] == [grant]


META = {
    "description": "Helps",
    "capabilities": {"vision": True},
    "suggestion_prompts": [{"content": "Hello"}],
    "tags": [{"name": "new"}],
    "profile_image_url": "/i.png",
    "hidden": False,
    "defaultFilterIds": ["f"],
    "knowledge": [{"id": "k", "name": "Salaries"}],
    "toolIds": ["t"],
    "filterIds": ["f"],
    "actionIds": ["a"],
    "skillIds": ["s"],
    "note": "for administrators",
}
FOR_EDITORS = {"knowledge", "toolIds", "filterIds", "actionIds", "skillIds", "note"}
BASE = {"id": "up-base", "root": "up-base", "max_input_tokens": 9, "capabilities": {"vision": True}}
PRESET = {"openai": BASE, "ollama": {"digest": "d"}, "urlIdx": 3, "pipe": {"type": "pipe"}, "preset": True}


def test_users_read_what_a_client_shows_of_a_record() -> None:
    grants = (Grant("user", "ann", "read"),)
    record = ModelRecord("m", "u1", "Mine", "base", {"system": "secret"}, META, grants=grants)
    whole = render_model(make_model("m"), record, is_whole=True)
    assert whole == describe_model(make_model("m"), record)
    info = render_model(make_model("m"), record, is_whole=False)["info"]
    assert info["meta"] == {name: value for name, value in META.items() if name not in FOR_EDITORS}
    left_out = {"params", "base_model_id", "user_id", "access_grants"}
    assert info == {
        **{name: value for name, value in whole["info"].items() if name not in left_out},
        "meta": info["meta"],
    }
    assert "info" not in render_model(make_model("m"), None, is_whole=False)


@pytest.mark.parametrize(
    ("detail", "shown"),
    [
        (
            PRESET,
            {
                "preset": True,
                "pipe": {"type": "pipe"},
                "context_length": 9,
                "openai": {"max_input_tokens": 9, "capabilities": {"vision": True}},
            },
        ),
        ({"openai": {"id": "up-base"}, "preset": True}, {"preset": True}),
        ({"openai": "up-base", "preset": True}, {"preset": True}),
        ({"openai": BASE, "urlIdx": 3}, {"openai": BASE, "urlIdx": 3, "context_length": 9}),
    ],
    ids=["preset", "nothing to tell", "no object", "own"],
)
def test_users_read_of_a_base_only_what_does_not_name_it(detail: Any, shown: Any) -> None:
    model, record = make_model("m", detail=detail), ModelRecord("m", "u1", "Mine", "base")
    plain = render_model(make_model("m"), record, is_whole=False)
    assert render_model(model, record, is_whole=False) == {**plain, **shown}
    assert render_model(model, record, is_whole=True) == describe_model(model, record)


@pytest.mark.parametrize("given", [None, "f1", {"f1": True}, 7])
def test_what_is_no_list_assigns_nothing(given: Any) -> None:
    assert assigned_ids(ModelRecord("m", "u1", "M", meta={"filterIds": given}), "filterIds") == []


def test_ids_of_a_list_are_assigned_and_other_values_are_not() -> None:
    record = ModelRecord("m", "u1", "M", meta={"filterIds": ["f1", 2, None, "f2"]})
    assert assigned_ids(record, "filterIds") == ["f1", "f2"]
    assert assigned_ids(None, "filterIds") == []
