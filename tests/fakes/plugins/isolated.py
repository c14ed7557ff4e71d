"""A plugin that lives in a process of its own, for tests that call it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.isolation.host_calls import QuestionParts
from gatewayd.plugins.isolation.loader import IsolatedLoader, IsolationChoice, IsolationMode
from gatewayd.plugins.isolation.plugin import IsolatedPlugin
from gatewayd.plugins.isolation.process import ProcessOptions
from gatewayd.plugins.isolation.supervisor import IsolationOptions
from gatewayd.plugins.runtime.arguments import CallServices
from gatewayd.plugins.source.check import make_host
from gatewayd.tasks import TaskRegistry
from tests.fakes.plugins.memory import Plugged, make_registry, plugin_of, scope_of


@dataclass
class Isolating:
    """Makes the loader of a registry; `host` is what plugins reach."""

    folder: Path
    memory: int = 1 << 30
    seconds: float = 10.0
    most: int = 8
    mode: IsolationMode = IsolationMode.PROCESS
    environment: Mapping[str, str] = field(default_factory=dict)
    host: PluginHost | None = None
    debug_loggers: Sequence[str] = ()

    def __call__(self, around: CallServices, tasks: TaskRegistry) -> IsolatedLoader:
        bounds = ProcessOptions(self.memory, self.seconds, self.environment)
        options = IsolationOptions(bounds, None, 20.0, self.debug_loggers)
        answering = QuestionParts(around, lambda: self.host or make_host({}, self.folder))
        return IsolatedLoader(IsolationChoice(self.mode, most=self.most), answering, options, tasks)


@asynccontextmanager
async def isolated(
    content: str, isolating: Isolating, plugin_id: str = "p", events: Any = None, **fields: Any
) -> AsyncIterator[tuple[IsolatedPlugin, Plugged]]:
    """Load a source in a process."""
    plugin = plugin_of(plugin_id, content, **fields)
    async with make_registry(plugin, isolation=isolating, events=events) as plugged:
        loaded = await plugged.registry.loaded(plugin.family, plugin_id)
        assert isinstance(loaded, IsolatedPlugin)
        yield loaded, plugged


async def result_of(
    content: str,
    isolating: Isolating,
    method: str = "pipe",
    arguments: dict[str, Any] | None = None,
    **scope: Any,
) -> Any:
    """Return what one call gives."""
    async with isolated(content, isolating) as (loaded, _):
        return await loaded.call(method, scope_of(**scope), arguments or {})
