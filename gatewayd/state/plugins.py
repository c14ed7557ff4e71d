"""Tables of functions and of tools: source, switches, valves that are no secrets, and access lists."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.plugins.installation import PluginInstaller, check_is_stored
from gatewayd.plugins.records import Plugin, PluginFamily, PluginOrigin
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.service import NewPlugin, PluginChange, PluginService
from gatewayd.plugins.source import code as source_code
from gatewayd.plugins.source.check_process import SourceChecker
from gatewayd.plugins.valve_rows import check_names, list_valves
from gatewayd.state.collections import SIDES, checked_references
from gatewayd.state.interfaces import StateTable
from gatewayd.state.planner import named_once
from gatewayd.state.records import (
    Fields,
    ObjectChange,
    StateAction,
    StateObject,
    StateSnapshot,
    located,
    refused,
)
from gatewayd.state.scope import StateScope

VALVES: Final = "valves."
"""Prefix of the valves among the fields of a plugin."""

SOURCE: Final = frozenset({"content", "name", "description"})
"""Fields that a plugin from a file has there."""


class PluginTable(StateTable):
    """Plugins of one family by id. Those from files and built-in ones have switches and valves only."""

    def __init__(
        self,
        family: PluginFamily,
        plugins: PluginService,
        registry: PluginManager,
        installer: PluginInstaller,
        checker: SourceChecker,
    ) -> None:
        self.table = f"{family.value}s"
        self._family = family
        self._plugins = plugins
        self._registry = registry
        self._installer = installer
        self._checker = checker

    async def read(self, scope: StateScope) -> Mapping[str, StateObject]:
        """Return all plugins of the family, and tell `scope` their ids."""
        found = self._plugins.list(scope.actor, self._family)
        scope.plugins[self.table] = {each.id for each in found}
        return {each.id: await self._read(each, scope) for each in found}

    async def check(
        self, wanted: Mapping[str, Fields], held: Mapping[str, StateObject], scope: StateScope
    ) -> Mapping[str, Fields]:
        """Return the plugins by id; each new source is loaded in a process of its own."""
        result: dict[str, Fields] = {}
        for plugin_id, (name, fields) in (await named_once(self, wanted, self._id)).items():
            with located(self.path(name)):
                result[plugin_id] = await self._checked(plugin_id, name, fields, scope)
        return result

    def objects(self, value: Mapping[str, Any]) -> Mapping[str, Fields]:
        """Return the plugins with each valve as a field."""
        return {
            name: {each: given for each, given in fields.items() if each != "valves"}
            | {f"{VALVES}{each}": given for each, given in fields.get("valves", {}).items()}
            for name, fields in value.items()
        }

    def document(self, objects: Mapping[str, Fields]) -> dict[str, Any]:
        """Return the plugins with their valves as a table."""
        found: dict[str, Any] = {}
        for name, fields in objects.items():
            plain = {each: value for each, value in fields.items() if not each.startswith(VALVES)}
            valves = _valves(fields)
            found[name] = {**plain, "valves": valves} if valves else plain
        return found

    def announce(self, snapshot: StateSnapshot, scope: StateScope) -> None:
        """Add new plugins to the ids, and remove those that leave."""
        scope.plugins[self.table] |= set(snapshot.wanted)
        scope.plugins[self.table] -= set(snapshot.leaving)

    async def write(self, change: ObjectChange, scope: StateScope) -> None:
        """Install, change or remove a plugin. One that does not take its valves is as it was before."""
        actor, values = scope.actor, change.values
        if change.action is StateAction.DELETE:
            await self._plugins.remove(actor, self._family, change.name)
            return
        before = self._registry.find(self._family, change.name)
        plugin = await self._store(change, before, scope)
        valves = _valves(values)
        if valves:
            try:
                await self._plugins.set_valves(actor, self._family, plugin.id, valves)
            except GatewayError:
                await self._restore(actor, before, plugin)
                raise
        await self._installer.switch(actor, plugin, values.get("active"), values.get("global"))

    async def _store(self, change: ObjectChange, before: Plugin | None, scope: StateScope) -> Plugin:
        values = change.values
        text = {each: values.get(each) for each in ("content", "name", "description")}
        if before is None:
            owner = values.get("owner")
            owner_id = scope.primary_id if owner is None else scope.users[owner]
            # The operator has all permissions; the owner gets the new plugin.
            actor = replace(scope.actor, user=replace(scope.actor.user, id=owner_id))
            new = NewPlugin(
                change.name,
                values["content"],
                name=values.get("name", ""),
                description=values.get("description", ""),
                grants=scope.grants(values),
            )
            return await self._plugins.create(actor, self._family, new)
        grants = scope.grants(values, before.grants) if any(side in values for side in SIDES) else None
        if grants is None and not any(each is not None for each in text.values()):
            return before
        wanted = PluginChange(**text, grants=grants)
        return await self._plugins.change(scope.actor, self._family, before.id, wanted)

    async def _restore(self, actor: Actor, before: Plugin | None, plugin: Plugin) -> None:
        """Undo the change of a plugin whose valves were refused."""
        if before is None:
            await self._plugins.remove(actor, self._family, plugin.id)
        elif _texts(before) != _texts(plugin):
            former = PluginChange(before.content, before.name, before.description, grants=before.grants)
            await self._plugins.change(actor, self._family, plugin.id, former)

    async def _read(self, plugin: Plugin, scope: StateScope) -> StateObject:
        stored: Mapping[str, Any] = {} if plugin.locked is not None else plugin.valves
        schema = await self._schema(plugin, scope.actor) if stored else None
        fields: dict[str, Any] = {
            "name": plugin.name,
            "description": plugin.description,
            "content": plugin.content,
            "active": plugin.is_active,
            **{f"{VALVES}{name}": value for name, value in sorted(stored.items())},
        }
        if self._family is PluginFamily.FUNCTION:
            fields["global"] = plugin.is_global
        else:
            fields |= {"owner": scope.emails.get(plugin.user_id), **scope.sides(plugin.grants)}
        secrets = secret_fields(schema, stored)
        return StateObject(fields, secrets, is_own=plugin.origin is PluginOrigin.DATABASE)

    async def _schema(self, plugin: Plugin, actor: Actor) -> dict[str, Any] | None:
        """Return the schema of the valves, None for a plugin that does not load."""
        try:
            return await self._plugins.valves_schema(actor, self._family, plugin.id)
        except GatewayError as error:
            if error.kind not in {ErrorKind.PLUGIN_FAILED, ErrorKind.NOT_CONFIGURED}:
                raise
            return None

    async def _checked(self, plugin_id: str, name: str, fields: Fields, scope: StateScope) -> Fields:
        known = self._registry.find(self._family, plugin_id)
        content = fields.get("content")
        if known is None and content is None:
            raise refused(self.path(name, "content"), "a new plugin needs its source")
        if known is not None and any(
            getattr(known, each) != fields.get(each, getattr(known, each)) for each in SOURCE
        ):
            check_is_stored(known)
        result = {**fields, **checked_references(self, name, fields, scope)}
        held_owner = None if known is None else scope.emails.get(known.user_id)
        if known is not None and result.get("owner", held_owner) != held_owner:
            raise refused(self.path(name, "owner"), "a tool keeps its owner")
        valves = _valves(fields)
        if known is None or (content is not None and content != known.content):
            held = {} if known is None or known.locked is not None else known.valves
            schema = await self._check_source(plugin_id, name, str(content), valves, held)
            hidden = secret_fields(schema, valves)
            scope.secrets |= {(self.table, plugin_id, each) for each in hidden}
        elif valves:
            result |= await self._checked_valves(scope.actor, known, name, valves)
        return result

    async def _check_source(
        self, plugin_id: str, name: str, content: str, valves: Fields, held: Fields
    ) -> dict[str, Any] | None:
        """Return the schema of the valves of a source that loads and accepts them beside the held ones."""
        values = {**held, **valves} if valves else None
        report = await self._checker.check(plugin_id, content, self._family, values)
        if report.error is not None:
            raise refused(self.path(name, "content"), f"it does not load: {report.error}")
        with located(self.path(name, "valves"), {each: each for each in valves}):
            if valves and report.valves is None:
                raise invalid("the plugin has none")
            check_names(report.valves, valves)
            if report.values_error is not None:
                raise invalid(report.values_error, param=report.values_field)
        return report.valves

    async def _checked_valves(self, actor: Actor, known: Plugin, name: str, valves: Fields) -> dict[str, Any]:
        """Return the valves as the plugin stores them."""
        with located(self.path(name, "valves"), {each: each for each in valves}):
            check_names(await self._schema(known, actor), valves)
            loaded = await self._registry.loaded(self._family, known.id)
            stored = {} if known.locked is not None else known.valves
            changed = await loaded.changed_valves(stored, valves)
        return {f"{VALVES}{each}": changed.get(each, value) for each, value in valves.items()}

    def _id(self, name: str) -> str:
        with located(self.path(name)):
            return source_code.check_id(name)


def secret_fields(schema: Mapping[str, Any] | None, values: Mapping[str, Any]) -> frozenset[str]:
    """Return the fields of the valves that are secret; without a schema all of them."""
    rows = list_valves(schema, values)
    return frozenset(f"{VALVES}{row.name}" for row in rows if row.is_secret and row.is_set)


def _valves(fields: Fields) -> dict[str, Any]:
    return {name.removeprefix(VALVES): value for name, value in fields.items() if name.startswith(VALVES)}


def _texts(plugin: Plugin) -> tuple[Any, ...]:
    return plugin.content, plugin.name, plugin.description, plugin.grants
