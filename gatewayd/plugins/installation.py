"""Idempotent installation of plugins, with a dry run."""

from dataclasses import dataclass, replace

from gatewayd import ids
from gatewayd.accounts.records import Actor, EnsureOutcome
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.plugins.records import Plugin, PluginFamily, PluginOrigin
from gatewayd.plugins.registry import LOAD, PluginManager
from gatewayd.plugins.service import NewPlugin, PluginChange, PluginService, describe_origin, make_plugin
from gatewayd.plugins.source import code as source_code
from gatewayd.plugins.source.check_process import SourceChecker


@dataclass(frozen=True, slots=True)
class DesiredPlugin:
    """The desired state of a plugin; None keeps a switch, or leaves the default of a new plugin."""

    new: NewPlugin
    is_active: bool | None = None
    is_global: bool | None = None


class PluginInstaller:
    """Brings a plugin into the desired state and reports whether that changed anything."""

    def __init__(
        self,
        plugins: PluginService,
        registry: PluginManager,
        checker: SourceChecker,
        clock: ids.Clock = ids.now,
    ) -> None:
        self._plugins = plugins
        self._registry = registry
        self._checker = checker
        self._clock = clock

    async def install(
        self, actor: Actor, family: PluginFamily, wanted: DesiredPlugin
    ) -> tuple[Plugin, EnsureOutcome]:
        """Create a plugin or change what differs; raises as `PluginService.create` and `change`."""
        known = self._registry.find(family, source_code.check_id(wanted.new.id))
        if known is None:
            plugin, outcome = await self._plugins.create(actor, family, wanted.new), EnsureOutcome.CREATED
        else:
            plugin, outcome = await self._change(actor, known, wanted.new)
        switched = await self.switch(actor, plugin, wanted.is_active, wanted.is_global)
        if switched != plugin and outcome is EnsureOutcome.UNCHANGED:
            outcome = EnsureOutcome.CHANGED
        return switched, outcome

    async def rehearse(
        self, actor: Actor, family: PluginFamily, wanted: DesiredPlugin
    ) -> tuple[Plugin, EnsureOutcome]:
        """Return the result that `install` would have; a new source is loaded in another process."""
        new = wanted.new
        known = self._registry.find(family, source_code.check_id(new.id))
        if known is None:
            self._plugins.access.check_create(actor, family)
            plugin, outcome = await self._made(actor, family, new), EnsureOutcome.CREATED
        else:
            self._plugins.access.check_write(actor, known)
            plugin, outcome = known, EnsureOutcome.UNCHANGED
            if _difference(known, new) is not None:
                check_is_stored(known)
                self._plugins.access.check_source(actor, known)
                made = await self._made(actor, family, new)
                plugin, outcome = replace(known, content=made.content, kind=made.kind), EnsureOutcome.CHANGED
        switched = rehearse_switch(plugin, wanted.is_active, wanted.is_global)
        if switched != plugin and outcome is EnsureOutcome.UNCHANGED:
            outcome = EnsureOutcome.CHANGED
        return switched, outcome

    async def switch(
        self, actor: Actor, plugin: Plugin, is_active: bool | None, is_global: bool | None
    ) -> Plugin:
        """Set the switches of a plugin that differ; None keeps a switch."""
        if is_global is not None and is_global != plugin.is_global:
            plugin = await self._plugins.set_global(actor, plugin.family, plugin.id, is_global)
        if is_active is not None and (is_active != plugin.is_active or (is_active and _failed(plugin))):
            plugin = await self._plugins.set_active(actor, plugin.family, plugin.id, is_active)
        return plugin

    async def _change(self, actor: Actor, known: Plugin, new: NewPlugin) -> tuple[Plugin, EnsureOutcome]:
        difference = _difference(known, new)
        if difference is None:
            return self._plugins.get(actor, known.family, known.id), EnsureOutcome.UNCHANGED
        changed = await self._plugins.change(actor, known.family, known.id, difference)
        return changed, EnsureOutcome.CHANGED

    async def _made(self, actor: Actor, family: PluginFamily, new: NewPlugin) -> Plugin:
        grants = self._plugins.access.granted(actor, new.grants)
        plugin = make_plugin(actor, family, replace(new, grants=grants), self._clock())
        report = await self._checker.check(new.id, new.content, family)
        if report.error is not None:
            raise invalid(_sentence(report.error), param="content")
        return plugin


def rehearse_switch(plugin: Plugin, is_active: bool | None, is_global: bool | None) -> Plugin:
    """Return a plugin with the switches set; None keeps a switch."""
    return replace(
        plugin,
        is_active=plugin.is_active if is_active is None else is_active,
        is_global=plugin.is_global if is_global is None else is_global,
    )


def check_is_stored(plugin: Plugin) -> None:
    """Raise conflict for a plugin whose source is not stored in the database."""
    if plugin.origin is not PluginOrigin.DATABASE:
        raise GatewayError(
            ErrorKind.CONFLICT,
            f"cannot change {plugin.kind.value} {plugin.id!r}: it comes from {describe_origin(plugin)}",
        )


def _difference(known: Plugin, new: NewPlugin) -> PluginChange | None:
    """Return the changes; None when name, description and source are equal and the plugin loads."""
    named = new.name in ("", known.name) and new.description in ("", known.description)
    if named and new.content == known.content and not _failed(known):
        return None
    return PluginChange(content=new.content, name=new.name or None, description=new.description or None)


def _failed(plugin: Plugin) -> bool:
    return plugin.problem is not None and plugin.problem.doing == LOAD


def _sentence(error: str) -> str:
    return error if error.startswith("cannot") else f"cannot load {error}"
