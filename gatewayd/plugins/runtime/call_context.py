"""Context variables of running plugin code: its plugin, its call, and the actor of the call."""

import contextvars
from dataclasses import dataclass
from typing import Final

from gatewayd.accounts.records import Actor
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.context import CallScope


@dataclass(frozen=True, slots=True)
class CallInfo:
    """The plugin whose code is running; `scope` is None while it loads and in its hooks."""

    family: PluginFamily
    plugin_id: str
    scope: CallScope | None = None


current_call: Final[contextvars.ContextVar[CallInfo | None]] = contextvars.ContextVar(
    "gatewayd_plugin", default=None
)

current_asker: Final[contextvars.ContextVar[Actor | None]] = contextvars.ContextVar(
    "gatewayd_plugin_asking", default=None
)
"""Set on the loop of the daemon: the actor of the call in which a plugin calls the host."""


def plugin_context(call: CallInfo, base: contextvars.Context | None = None) -> contextvars.Context:
    """Return a copy of `base`, or of the current context, in which code of a plugin runs."""
    context = contextvars.copy_context() if base is None else base.copy()
    context.run(current_call.set, call)
    return context
