"""Choice of the isolation mode of plugins, and loading in processes."""

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
    """Isolation mode: a thread of the gateway, or a process of its own."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class IsolationChoice:
    """Configured isolation: plugins whose ids are in `exceptions` have the other mode than `mode`.

    A header may request a process, never a thread. At most `most` processes run at a time.
    """

    mode: IsolationMode = IsolationMode.THREAD
    exceptions: frozenset[str] = frozenset()
    most: int = 64

    def of(self, plugin: Plugin) -> IsolationMode:
        """Return the mode of a plugin; PluginError when its header names an unknown mode."""
        is_process = (self.mode is IsolationMode.PROCESS) != (plugin.id in self.exceptions)
        asked = frontmatter.parse_frontmatter(plugin.content).get(HEADER, "").strip().lower()
        if asked and asked not in set(IsolationMode):
            raise make_failure(
                plugin, f"its header asks for isolation {asked!r}; the modes are thread and process"
            )
        is_process = is_process or asked == IsolationMode.PROCESS
        return IsolationMode.PROCESS if is_process else IsolationMode.THREAD


class IsolatedLoader:
    """A `runtime.handles.PluginIsolation`."""

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
        """Whether a plugin runs in a process; PluginError when its header names an unknown mode."""
        return self._choice.of(plugin) is IsolationMode.PROCESS

    async def load(self, plugin: Plugin, recorder: ProblemRecorder, not_installed: str) -> IsolatedPlugin:
        """Load a plugin in its process and return it; PluginError with the error sentence."""
        isolated = IsolatedPlugin(plugin, self._parts, recorder, not_installed)
        self._plugins.add(isolated)
        await isolated.start()
        return isolated

    def _check_room(self, plugin: Plugin) -> None:
        # A plugin with a new source replaces its own process, which is not counted.
        others = [
            one
            for one in self._plugins
            if (one.plugin.family, one.plugin.id) != (plugin.family, plugin.id) and one.supervisor.has_place
        ]
        most = self._choice.most
        if len(others) >= most:
            raise make_failure(
                plugin, f"{most} plugins have processes already, the maximum set by plugin_processes"
            )
