"""Makes a plugin of its source, in a home of its own and within a bound of time."""

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
from gatewayd.plugins.runtime.event_loop_thread import PluginLoop
from gatewayd.plugins.runtime.handles import PluginIsolation
from gatewayd.plugins.runtime.instance import InstanceParts, PluginInstance
from gatewayd.plugins.runtime.invoke import CallOutcome, FailureDetails, PluginError, read_failure
from gatewayd.plugins.runtime.output import LoggingGuard
from gatewayd.plugins.runtime.runner import ProblemRecorder
from gatewayd.plugins.runtime.threads import SwitchIntervalGuard
from gatewayd.plugins.runtime.turns import ImportTurns
from gatewayd.plugins.source import code as source_code
from gatewayd.plugins.source import frontmatter
from gatewayd.plugins.source.requirements import RequirementsInstaller

log = logging.getLogger(__name__)

STOP_SECONDS: Final = 1.0
"""Seconds for the thread of a plugin that did not load to end."""

MAX_IMPORT_SECONDS: Final = 10.0
"""Seconds after which the module of the next plugin runs although that of the one before has not ended."""


@dataclass(frozen=True, slots=True)
class LoadingOptions:
    """How plugins are loaded; `timeout` is in seconds. Without `isolation` all live in the gateway."""

    requirements: RequirementsInstaller
    timeout: float = 60.0
    isolation: PluginIsolation | None = None


class PluginLoader:
    """Loads plugins, each apart from the others."""

    def __init__(self, around: CallServices, options: LoadingOptions) -> None:
        self._around = around
        self._options = options
        self._guard = LoggingGuard()
        self._short_turns = SwitchIntervalGuard()
        self._imports = ImportTurns(MAX_IMPORT_SECONDS)

    async def load(self, plugin: Plugin, noting: ProblemRecorder) -> PluginInstance:
        """Return a plugin that has run and has its instance.

        `PluginInstance.plugin` has kind, manifest, specs and missing names as they were found. Raises
        PluginError with the sentence to show.
        """
        if not plugin.id.isidentifier():
            raise _failure(plugin, FailureDetails(f"the id {plugin.id!r} is no Python identifier"))
        not_installed = await self._options.requirements.ensure(plugin)
        async with AsyncExitStack() as undo:
            home = PluginLoop(f"{plugin.family.value} {plugin.id}", log_fields(plugin.family, plugin.id))
            self._short_turns.begin()
            home.ended.add_done_callback(lambda _: self._short_turns.end())
            home.start()
            undo.push_async_callback(home.stop, STOP_SECONDS)
            outcome = await self._run(plugin, home)
            if outcome.error is not None:
                raise await self._explain(plugin, outcome.error, not_installed) from outcome.error
            loaded = self._loaded(plugin, home, outcome.value, noting)
            await loaded.refresh()
            undo.pop_all()
        return loaded

    def _loaded(
        self, plugin: Plugin, home: PluginLoop, parts: InstanceParts, noting: ProblemRecorder
    ) -> PluginInstance:
        found = replace(
            plugin,
            kind=parts.kind,
            manifest=frontmatter.parse_frontmatter(plugin.content),
            specs=parts.specs,
            missing=parts.missing,
        )
        return PluginInstance(found, home, parts, self._around, noting)

    async def _run(self, plugin: Plugin, home: PluginLoop) -> CallOutcome:
        """Run the module, alone, and make the instance.

        Modules that are imported in two threads at the same time may be seen half made.
        """
        context = plugin_context(CallInfo(plugin.family, plugin.id), self._around.context)
        async with self._imports.turn() as turn:
            make = partial(_make, plugin, self._guard, turn.end_soon)
            try:
                async with asyncio.timeout(self._options.timeout):
                    return await home.attempt(make, context)
            except TimeoutError:
                home.interrupt()
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
        log.info("a plugin did not load", extra={**log_fields(plugin.family, plugin.id), "error": text})
        return _failure(plugin, replace(failed, text=text))


def module_name(family: PluginFamily, plugin_id: str) -> str:
    """Return the name under which the module of a plugin is found in `sys.modules` (peer-compatible)."""
    return f"{family.value}_{plugin_id}"


async def _make(plugin: Plugin, guard: LoggingGuard, imported: Callable[[], None]) -> InstanceParts:
    """Run the module, call `imported`, and make the instance, on the running loop of the home."""
    with tempfile.TemporaryDirectory(prefix="gatewayd-plugin-") as folder, guard():
        path = plugin.path
        if path is None:
            path = str(Path(folder) / _own_path(plugin))
            Path(path).write_text(plugin.content, "utf-8", "surrogatepass")  # noqa: ASYNC240 - in its home
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
    with ExitStack() as undo, collect_missing_names(plugin.id) as noted:
        undo.callback(_put_back, name, sys.modules.get(name))
        sys.modules[name] = module
        exec(prepared.code, vars(module))  # noqa: S102 - running plugins is what this is for
        imported()
        kind, cls = source_code.kind_of(module, plugin.family)
        instance = cls()
        described = tool_schema.describe_all(instance) if plugin.family is PluginFamily.TOOL else []
        undo.pop_all()
    return InstanceParts(kind, instance, module, filename, described, tuple(noted.missing))


def _put_back(name: str, former: types.ModuleType | None) -> None:
    if former is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = former


def _own_path(plugin: Plugin) -> str:
    return f"{module_name(plugin.family, plugin.id)}.py"


def _failure(plugin: Plugin, failed: FailureDetails) -> PluginError:
    return PluginError(plugin.kind.value, plugin.id, failed)


def invalid_source(failure: PluginError) -> GatewayError:
    """Return a failure to load as the fault of whoever sent the source."""
    return invalid(f"cannot load {failure.message}", param="content", code=failure.code)
