"""Tests for gatewayd.chat.modelfacts."""

from typing import Any

import pytest

from gatewayd.catalog.records import Grant, ModelRecord
from gatewayd.chat.modelfacts import assigned, describe_model, show_model
from tests.fakes.models import make_model


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


def test_only_who_keeps_a_model_sees_how_it_is_prompted() -> None:
    record = ModelRecord("m", "u1", "Mine", params={"system": "secret"})
    assert "params" not in show_model(make_model("m"), record, is_whole=False)["info"]
    assert show_model(make_model("m"), record, is_whole=True) == describe_model(make_model("m"), record)
    assert "info" not in show_model(make_model("m"), None, is_whole=False)


@pytest.mark.parametrize("given", [None, "f1", {"f1": True}, 7])
def test_what_is_no_list_assigns_nothing(given: Any) -> None:
    assert assigned(ModelRecord("m", "u1", "M", meta={"filterIds": given}), "filterIds") == []


def test_ids_of_a_list_are_assigned_and_other_values_are_not() -> None:
    record = ModelRecord("m", "u1", "M", meta={"filterIds": ["f1", 2, None, "f2"]})
    assert assigned(record, "filterIds") == ["f1", "f2"]
    assert assigned(None, "filterIds") == []
