"""Loader of plugins: runs the source on a new event loop thread, within a time limit."""

import asyncio
import linecache
import logging
import sys
import tempfile
import types
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from gatewayd.errors import GatewayError, invalid
from gatewayd.plugins import tool_schema
from gatewayd.plugins.open_webui.import_rewriter import collect_missing_names
from gatewayd.plugins.records import Plugin, PluginFamily, log_fields
from gatewayd.plugins.runtime.arguments import CallServices
from gatewayd.plugins.runtime.call_context import CallInfo, plugin_context
from gatewayd.plugins.runtime.call_threads import SwitchIntervalGuard
from gatewayd.plugins.runtime.event_loop_thread import PluginLoop
from gatewayd.plugins.runtime.import_turns import ImportTurns
from gatewayd.plugins.runtime.instance import InstanceParts, PluginInstance
from gatewayd.plugins.runtime.interfaces import PluginIsolation
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError, PluginOutcome, read_failure
from gatewayd.plugins.runtime.output import LoggingGuard
from gatewayd.plugins.runtime.runner import ProblemRecorder
from gatewayd.plugins.source import code as source_code
from gatewayd.plugins.source import frontmatter
from gatewayd.plugins.source.requirements import RequirementsInstaller

log = logging.getLogger(__name__)

STOP_SECONDS: Final = 1.0
"""Seconds for the thread to end when the plugin did not load."""

MAX_IMPORT_SECONDS: Final = 10.0
"""Seconds after which the module of the next plugin runs although the previous one has not finished."""


@dataclass(frozen=True, slots=True)
class LoadingOptions:
    """Options of loading; `timeout` is in seconds. Without `isolation` all plugins run in the gateway."""

    requirements: RequirementsInstaller
    timeout: float = 60.0
    isolation: PluginIsolation | None = None


class PluginLoader:
    """Loads plugins into the gateway, each on its own event loop thread."""

    def __init__(self, services: CallServices, options: LoadingOptions) -> None:
        self._services = services
        self._options = options
        self._guard = LoggingGuard()
        self._switch_interval = SwitchIntervalGuard()
        self._imports = ImportTurns(MAX_IMPORT_SECONDS)

    async def load(self, plugin: Plugin, recorder: ProblemRecorder) -> PluginInstance:
        """Run the source of a plugin and return its instance.

        `PluginInstance.plugin` has the detected kind, manifest, specs and missing names. Raises PluginError
        with the error sentence.
        """
        if not plugin.id.isidentifier():
            raise _failure(plugin, FailureDetails(f"the id {plugin.id!r} is not a Python identifier"))
        not_installed = await self._options.requirements.ensure(plugin)
        async with AsyncExitStack() as undo:
            plugin_loop = PluginLoop(
                f"{plugin.family.value} {plugin.id}", log_fields(plugin.family, plugin.id)
            )
            self._switch_interval.begin()
            plugin_loop.ended.add_done_callback(lambda _: self._switch_interval.end())
            plugin_loop.start()
            undo.push_async_callback(plugin_loop.stop, STOP_SECONDS)
            outcome = await self._run(plugin, plugin_loop)
            if outcome.error is not None:
                raise await self._explain(plugin, outcome.error, not_installed) from outcome.error
            loaded = self._loaded(plugin, plugin_loop, outcome.value, recorder)
            await loaded.refresh()
            undo.pop_all()
        return loaded

    def _loaded(
        self, plugin: Plugin, plugin_loop: PluginLoop, parts: InstanceParts, recorder: ProblemRecorder
    ) -> PluginInstance:
        found = replace(
            plugin,
            kind=parts.kind,
            manifest=frontmatter.parse_frontmatter(plugin.content),
            specs=parts.specs,
            missing=parts.missing,
        )
        return PluginInstance(found, plugin_loop, parts, self._services, recorder)

    async def _run(self, plugin: Plugin, plugin_loop: PluginLoop) -> PluginOutcome:
        """Run the module, one plugin at a time, and make the instance.

        Concurrent imports of one package in two threads may see it partially initialised.
        """
        context = plugin_context(CallInfo(plugin.family, plugin.id), self._services.context)
        async with self._imports.turn() as turn:
            make = partial(_make, plugin, self._guard, turn.end_soon)
            try:
                async with asyncio.timeout(self._options.timeout):
                    return await plugin_loop.attempt(make, context)
            except TimeoutError:
                plugin_loop.interrupt()
                late = FailureDetails(f"it did not load within {self._options.timeout:g} s")
                raise _failure(plugin, late) from None

    async def _explain(self, plugin: Plugin, error: BaseException, not_installed: str) -> PluginError:
        failed = read_failure(error, plugin.path or _own_path(plugin))
        text = failed.text
        if isinstance(error, ImportError):
            hint = not_installed or await asyncio.to_thread(self._options.requirements.hint, plugin, error)
            text = f"{text}; {hint}" if hint else text
        if failed.line is not None:
            text = f"{text} (line {failed.line})"
        log.info("cannot load plugin", extra={**log_fields(plugin.family, plugin.id), "error": text})
        return _failure(plugin, replace(failed, text=text))


def module_name(family: PluginFamily, plugin_id: str) -> str:
    """Return the name of the module of a plugin in `sys.modules`, as in Open WebUI."""
    return f"{family.value}_{plugin_id}"


async def _make(plugin: Plugin, guard: LoggingGuard, imported: Callable[[], None]) -> InstanceParts:
    """Run the module, call `imported`, and make the instance; runs on the plugin loop."""
    with tempfile.TemporaryDirectory(prefix="gatewayd-plugin-") as folder, guard():
        path = plugin.path
        if path is None:
            path = str(Path(folder) / _own_path(plugin))
            Path(path).write_text(plugin.content, "utf-8", "surrogatepass")  # noqa: ASYNC240 - on its own loop
        return _execute(plugin, path, imported)


def _execute(plugin: Plugin, path: str, imported: Callable[[], None]) -> InstanceParts:
    filename = plugin.path or _own_path(plugin)
    prepared = source_code.prepare(plugin.content, filename)
    source_code.refuse_pipelines(prepared.classes)
    name = module_name(plugin.family, plugin.id)
    module = types.ModuleType(name)
    module.__file__ = path
    vars(module)[source_code.AWAIT_NAME] = source_code.make_awaitable
    lines = plugin.content.splitlines(keepends=True)
    linecache.cache[filename] = (len(plugin.content), None, lines, filename)
    with ExitStack() as undo, collect_missing_names(plugin.id) as names:
        undo.callback(_restore_module, name, sys.modules.get(name))
        sys.modules[name] = module
        exec(prepared.code, vars(module))  # noqa: S102 - this runs the plugin
        imported()
        kind, cls = source_code.kind_of(module, plugin.family)
        instance = cls()
        described = tool_schema.describe_all(instance) if plugin.family is PluginFamily.TOOL else []
        undo.pop_all()
    return InstanceParts(kind, instance, module, filename, described, tuple(names.missing))


def _restore_module(name: str, former: types.ModuleType | None) -> None:
    if former is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = former


def _own_path(plugin: Plugin) -> str:
    return f"{module_name(plugin.family, plugin.id)}.py"


def _failure(plugin: Plugin, failed: FailureDetails) -> PluginError:
    return PluginError(plugin.kind.value, plugin.id, failed)


def invalid_source(failure: PluginError) -> GatewayError:
    """Return invalid_request for a source that does not load."""
    return invalid(f"cannot load {failure.message}", param="content", code=failure.code)
