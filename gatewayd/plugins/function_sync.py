"""Synchronisation of functions: replaces all functions of the database by a list, in one transaction."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

from gatewayd import ids
from gatewayd.accounts.records import Actor
from gatewayd.cluster.freshness import ALWAYS_FRESH
from gatewayd.cluster.interfaces import Freshness
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.plugins.access import PluginAccess, check_admin
from gatewayd.plugins.interfaces import PluginStore
from gatewayd.plugins.records import Plugin, PluginFamily, PluginOrigin
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.interfaces import PluginHandle
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.loader import invalid_source
from gatewayd.plugins.service import CHANGE_LOCK, NewPlugin, describe_origin, load_on_trial, make_plugin
from gatewayd.plugins.source import code as source_code
from gatewayd.transactions import Transactor

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WantedFunction:
    """A function of the list; `valves` None keeps the stored valves."""

    new: NewPlugin
    is_active: bool = False
    is_global: bool = False
    valves: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A function ready to be stored, with its new instance; `is_kept` keeps the running instance."""

    plugin: Plugin
    loaded: PluginHandle | None = None
    is_kept: bool = False


class FunctionSync:
    """Replaces the functions of the database by a list; functions from files stay as they are."""

    def __init__(
        self,
        registry: PluginManager,
        store: PluginStore,
        transactor: Transactor,
        access: PluginAccess,
        clock: ids.Clock = ids.now,
        freshness: Freshness = ALWAYS_FRESH,
    ) -> None:
        self._registry = registry
        self._store = store
        self._transactor = transactor
        self._access = access
        self._clock = clock
        self._freshness = freshness

    async def replace_all(self, actor: Actor, wanted: Sequence[WantedFunction]) -> Sequence[Plugin]:
        """Install, change and remove functions until the database equals the list; return the functions.

        All changes happen or none. Raises invalid_request for a function that does not load, that has
        invalid valves or that is listed twice, conflict for the id of a function from a file.
        """
        async with self._registry.changing, AsyncExitStack() as undo:
            actor = await self._access.current(actor)
            check_admin(actor)
            await self._freshness.renew()
            ready: list[_Ready] = []
            for item in self._checked(wanted):
                ready.append(await self._prepare(actor, item, undo))
            names = {one.plugin.id for one in ready}
            gone = [one.id for one in self._own() if one.id not in names]
            async with self._transactor.exclusive(CHANGE_LOCK):
                for plugin_id in gone:
                    await self._store.remove(PluginFamily.FUNCTION, plugin_id)
                for one in ready:
                    await self._store.put(one.plugin)
            undo.pop_all()
            await self._use(ready, gone)
        log.info("functions replaced", extra={"by": actor.user_id, "count": len(ready), "gone": len(gone)})
        return [one for one in self._own() if one.id in names]

    def _own(self) -> Sequence[Plugin]:
        return [
            one for one in self._registry.list(PluginFamily.FUNCTION) if one.origin is PluginOrigin.DATABASE
        ]

    def _checked(self, wanted: Sequence[WantedFunction]) -> Sequence[WantedFunction]:
        seen: set[str] = set()
        for item in wanted:
            plugin_id = source_code.check_id(item.new.id)
            known = self._registry.find(PluginFamily.FUNCTION, plugin_id)
            if plugin_id in seen:
                raise invalid(
                    f"cannot replace the functions: {plugin_id!r} is listed twice", param="functions"
                )
            if known is not None and known.origin is not PluginOrigin.DATABASE:
                message = f"cannot replace function {plugin_id!r}: it comes from {describe_origin(known)}"
                raise GatewayError(ErrorKind.CONFLICT, message, param="functions")
            seen.add(plugin_id)
        return wanted

    async def _prepare(self, actor: Actor, item: WantedFunction, undo: AsyncExitStack) -> _Ready:
        plugin = make_plugin(actor, PluginFamily.FUNCTION, item.new, self._clock())
        plugin = replace(plugin, is_active=item.is_active, is_global=item.is_global)
        known = self._registry.find(PluginFamily.FUNCTION, plugin.id)
        if known is not None:
            plugin = replace(
                plugin,
                user_id=known.user_id,
                valves=known.valves,
                created_at=known.created_at,
            )
            if item.valves is None:
                plugin = replace(plugin, locked=known.locked, problem=known.problem if known.locked else None)
        present = self._registry.find_loaded(PluginFamily.FUNCTION, plugin.id)
        if known is not None and present is not None and known.content == plugin.content:
            found = replace(plugin, kind=known.kind, missing=known.missing, problem=known.problem)
            return _Ready(await _set_up(found, present, item), is_kept=True)
        loaded = await load_on_trial(self._registry, plugin, undo)
        if loaded is None:
            return _Ready(plugin if item.valves is None else replace(plugin, valves=dict(item.valves)))
        return _Ready(await _set_up(loaded.plugin, loaded, item), loaded)

    async def _use(self, ready: Sequence[_Ready], gone: Sequence[str]) -> None:
        for plugin_id in gone:
            self._registry.drop(PluginFamily.FUNCTION, plugin_id)
        for one in ready:
            if one.is_kept:
                await self._registry.update(one.plugin)
            else:
                await self._registry.adopt(one.plugin, one.loaded)


async def _set_up(plugin: Plugin, loaded: PluginHandle, item: WantedFunction) -> Plugin:
    """Return the plugin with the wanted valves, validated by its class."""
    if item.valves is None:
        return plugin
    if not item.valves:
        return replace(plugin, valves={})
    try:
        return replace(plugin, valves=await loaded.changed_valves({}, item.valves))
    except PluginError as failure:
        raise invalid_source(failure) from failure
