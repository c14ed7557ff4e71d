"""Tests for gatewayd.pipeline.functions.model_actions."""

import sys
import threading
from typing import Any

import pytest

from gatewayd.catalog.records import ModelRecord
from gatewayd.pipeline.functions.model_actions import ModelActions
from gatewayd.plugins.records import Plugin
from tests.fakes.providers.function_models import function, function_world

ACTION = """
\"\"\"
title: Action
icon_url: i
\"\"\"
from pydantic import BaseModel

class Action:
    {actions}
    class Valves(BaseModel):
        priority: int = {priority}
    def __init__(self):
        self.valves = self.Valves()
    def action(self, body): pass
"""
FILTER = """
class Filter:
    class UserValves:
        pass
    def __init__(self):
        self.toggle = {toggle}
        self.icon = "{icon}"
"""


def action(plugin_id: str, actions: str = "", priority: int = 0, **changes: Any) -> Plugin:
    return function(plugin_id, ACTION.format(actions=actions, priority=priority), **changes)


def toggled(plugin_id: str, *, toggle: bool = True, icon: str = "", **changes: Any) -> Plugin:
    return function(plugin_id, FILTER.format(toggle=toggle, icon=icon), **changes)


async def shown(*plugins: Plugin, **meta: Any) -> Any:
    async with function_world(*plugins) as world:
        found = await ModelActions(world.registry).read()
        return found.of(ModelRecord("m", "u", "M", meta=meta) if meta else None)


async def test_actions_are_shown_by_priority_where_they_are_on() -> None:
    plugins = [
        action("late", priority=5, name="Late", description="d"),
        action("early", priority=-1),
        action("attached", is_global=False),
        action("off", is_active=False),
        function("broken", "class Action(\n"),
    ]
    everywhere = await shown(*plugins)
    assert [button["id"] for button in everywhere["actions"]] == ["early", "late"]
    assert everywhere["actions"][1] == {"id": "late", "name": "Late", "description": "d", "icon": "i"}
    here = await shown(*plugins, actionIds=["attached", "off"])
    assert [button["id"] for button in here["actions"]] == ["early", "attached", "late"]


async def test_sub_actions_are_buttons_of_their_own() -> None:
    parts = "actions = [{'id': 'one', 'name': 'One', 'icon_url': 'own'}, {'id': 'two'}, {'name': 'no id'}, 7]"
    found = await shown(action("a", parts))
    assert [(one["id"], one["name"], one["icon"]) for one in found["actions"]] == [
        ("a.one", "One", "own"),
        ("a.two", "two", "i"),
    ]


async def test_icons_that_lead_elsewhere_are_left_out() -> None:
    bad = "{'id': 'bad', 'icon_url': 'javascript:alert(1)'}"
    parts = f"actions = [{bad}, {{'id': 'svg', 'icon_url': 'data:image/svg+xml,x'}}]"
    found = await shown(action("a", parts))
    assert [one["icon"] for one in found["actions"]] == [None, "data:image/svg+xml,x"]


async def test_only_filters_with_a_toggle_are_shown() -> None:
    plugins = [toggled("a", icon="i"), toggled("b", toggle=False), toggled("c", is_global=False)]
    [button] = (await shown(*plugins))["filters"]
    assert button == {"id": "a", "name": "A", "description": "", "icon": "i", "has_user_valves": True}
    found = await shown(*plugins, filterIds=["c"])
    assert [button["id"] for button in found["filters"]] == ["a", "c"]


async def test_in_safe_mode_there_are_none() -> None:
    async with function_world(action("a"), is_safe=True) as world:
        found = await ModelActions(world.registry).read()
        assert found.of(None) == {"actions": [], "filters": []}


async def test_what_takes_long_to_load_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayd.pipeline.functions.model_actions.MAX_LOADING_SECONDS", 0.01)
    may_load = threading.Event()
    monkeypatch.setattr(sys, "may_load", may_load, raising=False)
    source = "import sys\nsys.may_load.wait(20)\nclass Action:\n    def action(self): pass\n"
    async with function_world(function("slow", source)) as world:
        found = await ModelActions(world.registry).read()
        may_load.set()
    assert found.of(None)["actions"] == []


async def test_a_switch_that_does_not_tell_is_none() -> None:
    undecided = "type('Undecided', (), {'__bool__': lambda self: 1 / 0})()"
    source = FILTER.format(toggle=undecided, icon="")
    assert (await shown(function("a", source, is_global=True)))["filters"] == []
