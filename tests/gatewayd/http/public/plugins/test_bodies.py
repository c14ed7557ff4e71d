"""Tests for gatewayd.http.public.plugins.bodies."""

from typing import Any

import pytest

from gatewayd.catalog.records import Grant
from gatewayd.http.public.plugins.bodies import (
    FunctionBody,
    FunctionChangeBody,
    SyncBody,
    ToolBody,
    ToolChangeBody,
)
from gatewayd.plugins.function_sync import WantedFunction
from gatewayd.plugins.service import NewPlugin, PluginChange

ROW = {"principal_type": "user", "principal_id": "*", "permission": "read"}
GRANT = Grant("user", "*", "read")


def test_a_new_function_has_no_access_list() -> None:
    body = FunctionBody.model_validate({"id": "f", "content": "c", "type": "pipe", "access_grants": [ROW]})
    assert body.new() == NewPlugin("f", "c")


def test_meta_is_divided_into_description_and_rest() -> None:
    meta = {"description": "d", "manifest": {}, "more": [1]}
    body = FunctionBody.model_validate({"id": "f", "name": "n", "content": "c", "meta": meta})
    assert body.new() == NewPlugin("f", "c", "n", "d", {"manifest": {}, "more": [1]})
    nameless = FunctionBody.model_validate({"id": "f", "content": "c", "meta": {"description": None}})
    assert nameless.new() == NewPlugin("f", "c")


@pytest.mark.parametrize(
    ("access", "grants"),
    [({}, ()), ({"access_grants": [ROW]}, (GRANT,)), ({"access_control": None}, (GRANT,))],
)
def test_a_new_tool_is_private_unless_told_otherwise(access: dict[str, Any], grants: tuple[Grant]) -> None:
    body = ToolBody.model_validate({"id": "t", "content": "c", **access})
    assert body.new() == NewPlugin("t", "c", grants=grants)


def test_what_is_absent_stays() -> None:
    assert FunctionChangeBody.model_validate({}).change() == PluginChange()
    assert ToolChangeBody.model_validate({}).change() == PluginChange()
    assert FunctionChangeBody.model_validate({"id": "x", "access_grants": [ROW]}).change() == PluginChange()
    meta = {"meta": {"more": 1}}
    assert FunctionChangeBody.model_validate(meta).change() == PluginChange(meta={"more": 1})
    assert FunctionChangeBody.model_validate({"revision": "r"}).change() == PluginChange(revision="r")
    whole = {"name": "n", "content": "c", "meta": {"description": "d"}, "access_grants": []}
    assert ToolChangeBody.model_validate(whole).change() == PluginChange("c", "n", "d", {}, ())


def test_synced_functions_are_off_and_keep_their_valves_unless_told_otherwise() -> None:
    wanted = {"id": "f", "content": "c", "is_active": True, "is_global": True, "valves": {"a": 1}}
    body = SyncBody.model_validate({"functions": [{"id": "e", "content": "c"}, wanted]})
    assert [one.wanted() for one in body.functions] == [
        WantedFunction(NewPlugin("e", "c")),
        WantedFunction(NewPlugin("f", "c"), is_active=True, is_global=True, valves={"a": 1}),
    ]
