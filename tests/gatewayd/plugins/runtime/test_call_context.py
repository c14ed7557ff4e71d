"""Whose code runs."""

import contextvars

from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.call_context import CallInfo, current_call, plugin_context


def test_a_context_names_the_plugin_and_leaves_the_present_one() -> None:
    mine = CallInfo(PluginFamily.TOOL, "t")
    other: contextvars.ContextVar[int] = contextvars.ContextVar("other", default=0)
    base = contextvars.copy_context()
    base.run(other.set, 5)
    context = plugin_context(mine, base)
    assert context.run(current_call.get) is mine
    assert context.run(other.get) == 5
    assert base.run(current_call.get) is None
    assert plugin_context(mine).run(other.get) == 0
    assert current_call.get() is None
