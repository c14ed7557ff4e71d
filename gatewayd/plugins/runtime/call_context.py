"""Which plugin the running code belongs to, which call it serves, and who asks through it."""

import contextvars
from dataclasses import dataclass
from typing import Final

from gatewayd.accounts.records import Actor
from gatewayd.plugins.records import Family
from gatewayd.plugins.runtime.context import CallScope


@dataclass(frozen=True, slots=True)
class Calling:
    """The plugin whose code runs; `scope` is None while it loads and in its hooks."""

    family: Family
    plugin_id: str
    scope: CallScope | None = None


calling: Final[contextvars.ContextVar[Calling | None]] = contextvars.ContextVar(
    "gatewayd_plugin", default=None
)

asking: Final[contextvars.ContextVar[Actor | None]] = contextvars.ContextVar(
    "gatewayd_plugin_asking", default=None
)
"""On the daemon's loop: who the call is for in which a plugin asks the gateway for something."""


def context_of(now: Calling, base: contextvars.Context | None = None) -> contextvars.Context:
    """Return a copy of a context, the present one if none is given, in which code of a plugin runs."""
    context = contextvars.copy_context() if base is None else base.copy()
    context.run(calling.set, now)
    return context
