"""Copies of JSON values."""

from typing import Any

from gatewayd.completions.copies import copy_json


def test_a_copy_is_equal_and_shares_nothing() -> None:
    value: dict[str, Any] = {"a": [1, {"b": [None, True, 1.5, "x"]}], "c": {}}
    made = copy_json(value)
    assert made == value
    made["a"][1]["b"].append(2)
    made["c"]["d"] = 1
    assert value == {"a": [1, {"b": [None, True, 1.5, "x"]}], "c": {}}


def test_what_is_not_json_is_copied_too() -> None:
    class Own(dict[str, Any]):
        pass

    value = {"own": Own(x=[1]), "set": {1}, "tuple": ([1],)}
    made = copy_json(value)
    assert made == value
    assert type(made["own"]) is Own
    assert made["own"]["x"] is not value["own"]["x"]
    assert made["tuple"][0] is not value["tuple"][0]
