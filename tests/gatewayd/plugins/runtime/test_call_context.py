"""Whose code runs."""

import contextvars

from gatewayd.plugins.records import Family
from gatewayd.plugins.runtime.call_context import Calling, calling, context_of


def test_a_context_names_the_plugin_and_leaves_the_present_one() -> None:
    mine = Calling(Family.TOOL, "t")
    other: contextvars.ContextVar[int] = contextvars.ContextVar("other", default=0)
    base = contextvars.copy_context()
    base.run(other.set, 5)
    context = context_of(mine, base)
    assert context.run(calling.get) is mine
    assert context.run(other.get) == 5
    assert base.run(calling.get) is None
    assert context_of(mine).run(other.get) == 0
    assert calling.get() is None
