"""Decides which plugins live in processes of their own, and loads them there."""

import weakref
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatewayd.plugins.isolation.host_calls import QuestionParts
from gatewayd.plugins.isolation.plugin import IsolatedPlugin
from gatewayd.plugins.isolation.process import make_failure
from gatewayd.plugins.isolation.supervisor import IsolationOptions, IsolationParts
from gatewayd.plugins.records import Plugin
from gatewayd.plugins.runtime.runner import ProblemRecorder
from gatewayd.plugins.source import frontmatter
from gatewayd.tasks import TaskRegistry

HEADER: Final = "isolation"


class IsolationMode(StrEnum):
    """Where a plugin lives: in the gateway, in a thread of its own, or in a process."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class IsolationChoice:
    """Where plugins live unless their headers ask for a process: `exceptions` are ids with the other mode.

    There are at most `most` processes at a time.
    """

    mode: IsolationMode = IsolationMode.THREAD
    exceptions: frozenset[str] = frozenset()
    most: int = 64

    def of(self, plugin: Plugin) -> IsolationMode:
        """Return the mode of a plugin; PluginError when its header names none."""
        is_process = (self.mode is IsolationMode.PROCESS) != (plugin.id in self.exceptions)
        asked = frontmatter.parse_frontmatter(plugin.content).get(HEADER, "").strip().lower()
        if asked and asked not in set(IsolationMode):
            raise make_failure(
                plugin, f"its header asks for isolation {asked!r}; there are thread and process"
            )
        is_process = is_process or asked == IsolationMode.PROCESS
        return IsolationMode.PROCESS if is_process else IsolationMode.THREAD


class IsolatedLoader:
    """A `plugins.handles.PluginIsolation`."""

    def __init__(
        self,
        choice: IsolationChoice,
        answering: QuestionParts,
        options: IsolationOptions,
        tasks: TaskRegistry,
    ) -> None:
        self._choice = choice
        self._parts = IsolationParts(answering, options, tasks, self._check_room)
        self._plugins: weakref.WeakSet[IsolatedPlugin] = weakref.WeakSet()

    def applies_to(self, plugin: Plugin) -> bool:
        """Tell whether a plugin lives in a process; PluginError when its header names no mode."""
        return self._choice.of(plugin) is IsolationMode.PROCESS

    async def load(self, plugin: Plugin, noting: ProblemRecorder, not_installed: str) -> IsolatedPlugin:
        """Return a plugin that has run in its process; PluginError with the sentence to show."""
        isolated = IsolatedPlugin(plugin, self._parts, noting, not_installed)
        self._plugins.add(isolated)
        await isolated.start()
        return isolated

    def _check_room(self, plugin: Plugin) -> None:
        # A plugin that takes the place of its former source has the place of that.
        others = [
            one
            for one in self._plugins
            if (one.plugin.family, one.plugin.id) != (plugin.family, plugin.id) and one.keeper.has_place
        ]
        most = self._choice.most
        if len(others) >= most:
            raise make_failure(
                plugin, f"{most} plugins have processes already, which plugin_processes permits"
            )
