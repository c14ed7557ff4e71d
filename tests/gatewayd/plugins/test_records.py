"""Tests for gatewayd.plugins.records."""

from dataclasses import replace

from gatewayd.plugins.records import SWITCHES_KEY, Plugin, PluginFamily, PluginKind, render_plugin
from tests.fakes.plugins.memory import readable_by

FILTER = Plugin(
    "shout",
    PluginFamily.FUNCTION,
    PluginKind.FILTER,
    "ann",
    "Shout",
    "class Filter: pass",
    description="loud",
    manifest={"title": "Shout"},
    meta={"toggle": True},
    valves={"secret": 1},
    is_active=True,
    updated_at=2,
    created_at=1,
)


def test_a_function() -> None:
    shown = render_plugin(FILTER)
    assert len(shown.pop("revision")) == 32
    assert shown == {
        "id": "shout",
        "user_id": "ann",
        "name": "Shout",
        "content": "class Filter: pass",
        "meta": {"toggle": True, "description": "loud", "manifest": {"title": "Shout"}},
        "type": "filter",
        "is_active": True,
        "is_global": False,
        "updated_at": 2,
        "created_at": 1,
    }
    assert "content" not in render_plugin(FILTER, has_source=False)


def test_a_tool() -> None:
    tool = replace(
        FILTER,
        family=PluginFamily.TOOL,
        kind=PluginKind.TOOL,
        specs=[{"name": "add"}],
        grants=readable_by("*"),
    )
    shown = render_plugin(tool)
    assert shown["specs"] == [{"name": "add"}]
    assert shown["access_grants"] == [{"principal_type": "user", "principal_id": "*", "permission": "read"}]
    assert not {"type", "is_active", "is_global"} & set(shown)


def test_what_was_switched_by_hand_is_the_gateways_own() -> None:
    kept = replace(FILTER, meta={SWITCHES_KEY: {"is_active": True}, "toggle": True})
    assert render_plugin(kept) == render_plugin(FILTER)
