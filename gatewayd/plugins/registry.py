"""Registry of all plugins and their loaded instances."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from gatewayd import ids
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.measurement.cells import counters
from gatewayd.plugins import directory
from gatewayd.plugins.interfaces import PluginStore
from gatewayd.plugins.records import (
    SWITCHES_KEY,
    Plugin,
    PluginFamily,
    PluginKind,
    PluginOrigin,
    PluginProblem,
)
from gatewayd.plugins.runtime.arguments import CallServices
from gatewayd.plugins.runtime.interfaces import PluginHandle
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError
from gatewayd.plugins.runtime.loader import LoadingOptions, PluginLoader
from gatewayd.plugins.runtime.output import capture_output
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

Key = tuple[PluginFamily, str]

Listener = Callable[[Plugin], None]
"""Called with a plugin that was added, changed, removed or loaded, or that failed to load."""

LOAD: Final = "load"
MAX_CONCURRENT_LOADS: Final = 4
END_SECONDS: Final = 5.0
NOTE_INTERVAL_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class PluginSources:
    """Sources of plugins, and whether plugins may run.

    Without `is_enabled` the registry is empty. With `is_safe` plugins are listed and changed, but not loaded.
    """

    directory: Path | None = None
    has_builtin: bool = True
    is_enabled: bool = True
    is_safe: bool = False


@dataclass(slots=True, eq=False)
class _Entry:
    plugin: Plugin
    loaded: PluginHandle | None = None
    failure: PluginError | None = None
    pending: asyncio.Event | None = None
    is_started: bool = False
    noted: PluginProblem | None = None


@dataclass(slots=True)
class _Reading:
    plugins: dict[Key, Plugin] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


class PluginManager:
    """Holds the plugins of the database, of a directory and of the gateway, and loads them on demand.

    A plugin that failed to load is retried after a change of its source or valves, and by `reload`. For equal
    ids the database precedes the directory, and the directory precedes the built-in functions.
    """

    def __init__(
        self,
        store: PluginStore,
        services: CallServices,
        loading: LoadingOptions,
        sources: PluginSources,
        tasks: TaskRegistry,
    ) -> None:
        self._store = store
        self._loader = PluginLoader(services, loading)
        self._requirements = loading.requirements
        self._isolation = loading.isolation
        self._sources = sources
        self._tasks = tasks
        self._entries: dict[Key, _Entry] = {}
        self._exits = ExitStack()
        self._listeners: list[Listener] = []

        self.calls = services.counted
        """Number of calls of plugins by family."""

        self.failures = counters()
        """Number of failures of plugins by family."""

        self.changing = asyncio.Lock()
        """Lock of changes, from reading a plugin until its change is stored and in effect."""

    @property
    def is_enabled(self) -> bool:
        """Whether plugins are enabled."""
        return self._sources.is_enabled

    @property
    def is_running(self) -> bool:
        """Whether plugins are loaded."""
        return self._sources.is_enabled and not self._sources.is_safe

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` for each plugin added, changed, removed, loaded or failed; it must not block."""
        self._listeners.append(listener)

    async def open(self) -> None:
        """Read all plugins and start to load the active ones; returns before they are loaded."""
        if not self.is_enabled:
            return
        if self.is_running:
            self._requirements.open()
            self._exits.callback(self._requirements.close)
            self._exits.enter_context(capture_output())
        for key, plugin in (await self._read()).plugins.items():
            self._entries[key] = _Entry(plugin)
        if self.is_running:
            self._tasks.spawn("load plugins", self._load_active())

    async def close(self) -> None:
        """Run `on_shutdown` of every loaded plugin and end it."""
        entries = list(self._entries.values())
        self._entries.clear()
        await asyncio.gather(*(one.loaded.end(END_SECONDS) for one in entries if one.loaded is not None))
        self._exits.close()

    def list(self, family: PluginFamily | None = None, kind: PluginKind | None = None) -> Sequence[Plugin]:
        """Return the plugins sorted by id, with their last problems, active or not."""
        plugins = (entry.plugin for entry in self._entries.values())
        wanted = [one for one in plugins if family in (None, one.family) and kind in (None, one.kind)]
        return sorted(wanted, key=lambda one: (one.id, one.family))

    def find(self, family: PluginFamily, plugin_id: str) -> Plugin | None:
        """Return one plugin; None when absent."""
        entry = self._entries.get((family, plugin_id))
        return None if entry is None else entry.plugin

    def is_current(self, plugin: Plugin) -> bool:
        """Whether a record is that of its plugin, apart from its last problem and what loading finds out."""
        entry = self._entries.get((plugin.family, plugin.id))
        return entry is not None and _stored_part(entry.plugin) == _stored_part(plugin)

    def left_behind(self, family: PluginFamily, plugin_id: str) -> int:
        """Return the number of synchronous calls of a plugin that still run after they were stopped."""
        entry = self._entries.get((family, plugin_id))
        return 0 if entry is None or entry.loaded is None else entry.loaded.left_behind

    async def loaded(self, family: PluginFamily, plugin_id: str) -> PluginHandle:
        """Return the loaded plugin; load it first when necessary.

        Raises not_found, not_configured when plugins are off, unavailable while it is being replaced, and
        PluginError when it did not load; that error is repeated until the plugin changes.
        """
        self.check_running()
        entry = self._entries.get((family, plugin_id))
        if entry is None:
            raise not_found(family.value, plugin_id)
        _check_unlocked(entry.plugin)
        if entry.loaded is None and entry.failure is None:
            if entry.pending is None:
                entry.pending = asyncio.Event()
                self._tasks.spawn("load plugin", self._load(entry, entry.pending))
            await entry.pending.wait()
        if entry.loaded is not None:
            return entry.loaded
        if entry.failure is not None:
            raise entry.failure.with_traceback(None)
        raise GatewayError(
            ErrorKind.UNAVAILABLE, f"cannot use {family.value} {plugin_id!r}: it is being replaced"
        )

    def find_loaded(self, family: PluginFamily, plugin_id: str) -> PluginHandle | None:
        """Return the plugin if it is loaded and not locked; None otherwise."""
        entry = self._entries.get((family, plugin_id))
        return None if entry is None or entry.plugin.locked is not None else entry.loaded

    async def probe(self, plugin: Plugin) -> PluginHandle:
        """Load a plugin outside the registry; pass it to `adopt`, or call its `end`."""
        self.check_running()
        return await self._make(plugin)

    def check_running(self) -> None:
        """Raise not_configured when plugins are not loaded."""
        if not self.is_enabled:
            raise GatewayError(ErrorKind.NOT_CONFIGURED, "cannot use plugins: enable_plugins is off")
        if self._sources.is_safe:
            raise GatewayError(ErrorKind.NOT_CONFIGURED, "cannot run plugins: safe_mode is on")

    async def adopt(self, plugin: Plugin, loaded: PluginHandle | None) -> None:
        """Add a plugin or replace its source; the previous instance ends after its open calls."""
        key = (plugin.family, plugin.id)
        former = self._entries.get(key)
        entry = _Entry(plugin, loaded)
        self._entries[key] = entry
        self._retire(former)
        await self._use_record(entry)
        self._start(entry)
        self._notify(plugin)
        if former is not None and former.plugin.kind is not plugin.kind:
            self._notify(former.plugin)

    async def update(self, plugin: Plugin) -> None:
        """Replace the record of a plugin whose source is unchanged: valves, switches, name, grants."""
        entry = self._entries.get((plugin.family, plugin.id))
        if entry is None:
            return
        if plugin.valves != entry.plugin.valves:
            entry.failure = None
        entry.plugin = plugin
        if entry.is_started and not plugin.is_active:
            self._retire(entry)
            self._entries[plugin.family, plugin.id] = _Entry(plugin)
        else:
            await self._use_record(entry)
            self._start(entry)
        self._notify(plugin)

    def drop(self, family: PluginFamily, plugin_id: str) -> None:
        """Remove a plugin from the registry; its instance ends after its open calls."""
        entry = self._entries.pop((family, plugin_id), None)
        self._retire(entry)
        if entry is not None:
            self._notify(entry.plugin)

    async def reload(self) -> Mapping[str, Any]:
        """Read all plugins again, load those that changed or failed, and end those that were removed.

        Returns `{"loaded": [...], "failed": {name: sentence}, "removed": [...], "unchanged": count}` with
        names such as `filter x`; `failed` contains unusable files too, by path.
        """
        if not self.is_enabled:
            return {"loaded": [], "failed": {}, "removed": [], "unchanged": 0}
        async with self.changing:
            reading = await self._read()
            removed = [key for key in self._entries if key not in reading.plugins]
            names = [_name(self._entries[key].plugin) for key in removed]
            for key in removed:
                self.drop(*key)
            changed = [plugin for plugin in reading.plugins.values() if await self._is_changed(plugin)]
            failed: dict[str, str] = dict(reading.faults)
            if self.is_running:
                failed |= await self._load_again([plugin for plugin in changed if plugin.is_active])
        loaded = [_name(plugin) for plugin in changed if _name(plugin) not in failed]
        unchanged = len(reading.plugins) - len(changed)
        return {"loaded": loaded, "failed": failed, "removed": names, "unchanged": unchanged}

    async def refresh(self, keys: Collection[Key] | None = None) -> None:
        """Apply what another process has changed in the database: these plugins, or all with None.

        Active plugins with a new source are loaded in the background; who needs one waits for it. Files are
        not read again.
        """
        if not self.is_enabled:
            return
        before = self._state(keys)
        while True:
            rows = {(row.family, row.id): row for row in await self._store.list()}
            now = self._state(keys)
            if now == before:
                break
            # Another change took effect meanwhile, and the rows may be older than it.
            before = now
        for key in self._entries.keys() | rows.keys() if keys is None else keys:
            await self._refresh(key, rows.get(key))

    def note(self, plugin: Plugin, doing: str, sentence: str) -> None:
        """Record the last problem; an equal one is stored again after 60 seconds, or after a failed write."""
        self.failures.at(plugin.family.value).value += 1
        entry = self._entries.get((plugin.family, plugin.id))
        if entry is None:
            return
        noted, problem = entry.noted, PluginProblem(ids.now(), doing, sentence)
        entry.plugin = replace(entry.plugin, problem=problem)
        if noted and noted.sentence == sentence and problem.at - noted.at < NOTE_INTERVAL_SECONDS:
            return
        entry.noted = problem
        self._tasks.spawn("store a plugin problem", self._note(entry, problem, noted))

    async def _note(self, entry: _Entry, problem: PluginProblem, before: PluginProblem | None) -> None:
        try:
            await self._store.note(entry.plugin.family, entry.plugin.id, problem)
        except GatewayError:
            entry.noted = before
            raise

    async def _is_changed(self, plugin: Plugin) -> bool:
        """Apply a plugin that was read; return whether it has to be loaded again."""
        entry = self._entries.get((plugin.family, plugin.id))
        if entry is not None and entry.failure is None and entry.plugin.content == plugin.content:
            found = entry.plugin
            stored_state = replace(plugin, kind=found.kind, specs=found.specs, missing=found.missing)
            await self.update(replace(stored_state, problem=found.problem))
            return False
        await self.adopt(plugin, None)
        return True

    def _state(self, keys: Collection[Key] | None) -> Mapping[Key, Plugin]:
        wanted = self._entries if keys is None else keys
        return {key: _stored_part(self._entries[key].plugin) for key in wanted if key in self._entries}

    async def _refresh(self, key: Key, row: Plugin | None) -> None:
        """Apply the row of one plugin, None for a plugin that is in no row."""
        entry = self._entries.get(key)
        is_stored = row is not None and row.origin is PluginOrigin.DATABASE
        if is_stored and row is not None:
            plugin = row
        elif entry is None or entry.plugin.origin is PluginOrigin.DATABASE:
            self.drop(*key)
            return
        else:
            plugin = _with_stored_state(entry.plugin, row)
        if entry is not None and _stored_part(plugin) == _stored_part(entry.plugin):
            return
        if await self._is_changed(plugin) and plugin.is_active and self.is_running:
            self._tasks.spawn("load a changed plugin", self._load_in_background(plugin))

    async def _load_in_background(self, plugin: Plugin) -> None:
        await self._load_again([plugin])

    async def _load_again(self, plugins: Sequence[Plugin]) -> dict[str, str]:
        failed: dict[str, str] = {}
        results = await asyncio.gather(
            *(self.loaded(one.family, one.id) for one in plugins), return_exceptions=True
        )
        for plugin, result in zip(plugins, results, strict=True):
            if isinstance(result, GatewayError):
                failed[_name(plugin)] = result.message
            elif isinstance(result, BaseException):
                raise result
        return failed

    async def _load_active(self) -> None:
        limit = asyncio.Semaphore(MAX_CONCURRENT_LOADS)

        async def load(plugin: Plugin) -> None:
            async with limit:
                await self._load_again([plugin])

        await asyncio.gather(*(load(plugin) for plugin in self.list() if plugin.is_active))

    async def _load(self, entry: _Entry, pending: asyncio.Event) -> None:
        plugin = entry.plugin
        try:
            loaded = await self._make(plugin)
        except PluginError as failure:
            failure.__cause__ = None
            entry.failure = failure
            self.note(plugin, LOAD, failure.message)
            self._notify(entry.plugin)
            return
        finally:
            entry.pending = None
            pending.set()
        if self._entries.get((plugin.family, plugin.id)) is not entry:
            await loaded.end(END_SECONDS)
            return
        found = loaded.plugin
        entry.plugin = replace(
            entry.plugin,
            kind=found.kind,
            manifest=found.manifest,
            specs=found.specs,
            missing=found.missing,
        )
        entry.loaded = loaded
        await self._use_record(entry)
        self._forget_load_problem(entry)
        self._start(entry)
        self._notify(entry.plugin)

    async def _make(self, plugin: Plugin) -> PluginHandle:
        if self._isolation is None or not self._isolation.applies_to(plugin):
            return await self._loader.load(plugin, self.note)
        not_installed = await self._requirements.ensure(plugin)
        return await self._isolation.load(plugin, self.note, not_installed)

    def _notify(self, plugin: Plugin) -> None:
        for listener in self._listeners:
            listener(plugin)

    def _forget_load_problem(self, entry: _Entry) -> None:
        plugin = entry.plugin
        if plugin.problem is not None and plugin.problem.doing == LOAD:
            entry.plugin = replace(plugin, problem=None)
            self._tasks.spawn("clear a plugin problem", self._store.note(plugin.family, plugin.id, None))

    async def _use_record(self, entry: _Entry) -> None:
        if entry.loaded is not None and await entry.loaded.take(entry.plugin):
            self._tasks.spawn("run on_valves_updated", entry.loaded.run_hook("on_valves_updated"))

    def _start(self, entry: _Entry) -> None:
        if entry.loaded is None or entry.is_started:
            return
        if entry.plugin.is_active and entry.plugin.locked is None:
            entry.is_started = True
            # The hook runs in the background, since it may change plugins itself.
            self._tasks.spawn("run on_startup", entry.loaded.run_hook("on_startup"))

    def _retire(self, entry: _Entry | None) -> None:
        if entry is not None and entry.loaded is not None:
            self._tasks.spawn("unload plugin", entry.loaded.retire(END_SECONDS))

    async def _read(self) -> _Reading:
        """Read the database, the directory and the built-in functions; each id once in each family."""
        reading = _Reading()
        stored_state: dict[Key, Plugin] = {}
        for row in await self._store.list():
            known = reading.plugins if row.origin is PluginOrigin.DATABASE else stored_state
            known[row.family, row.id] = row
        found = directory.PluginFiles((), {})
        if self._sources.directory is not None:
            found = await asyncio.to_thread(directory.read_directory, self._sources.directory)
        builtin = await asyncio.to_thread(directory.read_builtin) if self._sources.has_builtin else ()
        reading.faults = found.faults
        for plugin in found.plugins:
            if (plugin.family, plugin.id) in reading.plugins:
                fault = (
                    f"cannot use the file: {plugin.family.value} {plugin.id!r} of the database precedes it"
                )
                reading.faults[str(plugin.path)] = fault
        for plugin in [*found.plugins, *builtin]:
            key = (plugin.family, plugin.id)
            reading.plugins.setdefault(key, _with_stored_state(plugin, stored_state.get(key)))
        for path, fault in reading.faults.items():
            log.warning("cannot use plugin file", extra={"path": path, "error": fault})
        return reading


def _stored_part(plugin: Plugin) -> Plugin:
    """Return a plugin without what loading finds out, and without its last problem."""
    return replace(plugin, kind=PluginKind.TOOL, manifest={}, specs=[], missing=(), problem=None)


def _with_stored_state(plugin: Plugin, row: Plugin | None) -> Plugin:
    """Return a plugin of a file with its stored state: valves, switches, grants, last problem."""
    if row is None:
        return plugin
    switches = row.meta.get(SWITCHES_KEY, {})
    return replace(
        plugin,
        valves=row.valves,
        meta=row.meta,
        grants=row.grants,
        problem=row.problem,
        locked=row.locked,
        is_active=switches.get("is_active", plugin.is_active),
        is_global=switches.get("is_global", plugin.is_global),
    )


def _check_unlocked(plugin: Plugin) -> None:
    if plugin.locked is not None:
        raise PluginError(plugin.kind.value, plugin.id, FailureDetails(plugin.locked))


def _name(plugin: Plugin) -> str:
    return f"{plugin.kind.value} {plugin.id}"
