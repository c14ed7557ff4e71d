"""Which plugin the running code belongs to, which call it serves, and who asks through it."""

import contextvars
from dataclasses import dataclass
from typing import Final

from gatewayd.accounts.records import Actor
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.context import CallScope


@dataclass(frozen=True, slots=True)
class CallInfo:
    """The plugin whose code runs; `scope` is None while it loads and in its hooks."""

    family: PluginFamily
    plugin_id: str
    scope: CallScope | None = None


current_call: Final[contextvars.ContextVar[CallInfo | None]] = contextvars.ContextVar(
    "gatewayd_plugin", default=None
)

current_asker: Final[contextvars.ContextVar[Actor | None]] = contextvars.ContextVar(
    "gatewayd_plugin_asking", default=None
)
"""On the daemon's loop: who the call is for in which a plugin asks the gateway for something."""


def plugin_context(now: CallInfo, base: contextvars.Context | None = None) -> contextvars.Context:
    """Return a copy of a context, the present one if none is given, in which code of a plugin runs."""
    context = contextvars.copy_context() if base is None else base.copy()
    context.run(current_call.set, now)
    return context
