"""Management of plugins by administrators and owners: install, change, switch, configure, remove."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.accounts.records import Actor, EnsureOutcome
from gatewayd.catalog.records import Grant
from gatewayd.cluster.freshness import ALWAYS_FRESH
from gatewayd.cluster.interfaces import Freshness
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.plugins.access import PluginAccess, check_admin
from gatewayd.plugins.interfaces import PluginStore
from gatewayd.plugins.records import (
    DERIVED_FIELDS,
    SWITCHES_KEY,
    Plugin,
    PluginFamily,
    PluginOrigin,
    log_fields,
    revision_of,
)
from gatewayd.plugins.registry import END_SECONDS, LOAD, PluginManager
from gatewayd.plugins.runtime.arguments import user_record
from gatewayd.plugins.runtime.interfaces import PluginHandle
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.runtime.loader import invalid_source
from gatewayd.plugins.source import code as source_code
from gatewayd.plugins.source import frontmatter
from gatewayd.transactions import Transactor

log = logging.getLogger(__name__)

REVISION_CHANGED: Final = "revision_changed"
CHANGE_LOCK: Final = "plugins"
"""Name of the lock that serialises changes of plugins across processes."""

GrantChange = Callable[[tuple[Grant, ...]], Sequence[Grant]]
"""Returns an access list in place of the present one."""


@dataclass(frozen=True, slots=True)
class NewPlugin:
    """A plugin to install; the header of the source supplies an empty name or description."""

    id: str
    content: str
    name: str = ""
    description: str = ""
    meta: dict[str, Any] = field(default_factory=dict)
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginChange:
    """What to change in a plugin; None leaves a field as it is.

    `revision` is that of the plugin to which the change belongs, None for any.
    """

    content: str | None = None
    name: str | None = None
    description: str | None = None
    meta: dict[str, Any] | None = None
    grants: tuple[Grant, ...] | None = None
    revision: str | None = None


class PluginService:
    """Manages plugins of both families; changes take effect at once.

    Only administrators manage functions. Installing a tool requires the permission `workspace.tools`. The
    owner of a tool, holders of a write grant and administrators may change it; changing its source requires
    `workspace.tools` as well. The rights of the actor are read again for each change.

    A change raises conflict (`revision_changed`) if another process has changed the plugin meanwhile.
    """

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
        self._clock = clock
        self._freshness = freshness
        self.access = access

    async def catch_up(self) -> None:
        """Learn of every change that another node has committed before this call; raises unavailable.

        The readers below read from memory. Who has changed something on another node calls this first.
        """
        await self._freshness.renew()

    def list(self, actor: Actor, family: PluginFamily) -> Sequence[Plugin]:
        """Return all functions, or the tools that the actor may use, sorted by id."""
        return [one for one in self._registry.list(family) if self.access.may_read(actor, one)]

    def get(self, actor: Actor, family: PluginFamily, plugin_id: str) -> Plugin:
        """Return one plugin whose source the actor may read.

        Raises not_found for an absent or unreadable plugin, forbidden for a function if not administrator.
        """
        plugin = self._find(family, plugin_id)
        if family is PluginFamily.FUNCTION:
            check_admin(actor)
        self.access.check_read(actor, plugin)
        return plugin

    async def create(self, actor: Actor, family: PluginFamily, new: NewPlugin) -> Plugin:
        """Install a plugin that loads; a function starts inactive and applies to no model.

        Raises invalid_request with exception, text and line when it does not load, conflict for a taken id.
        """
        async with self._registry.changing, AsyncExitStack() as undo:
            actor = await self.access.current(actor)
            await self._freshness.renew()
            self.access.check_create(actor, family)
            plugin_id = source_code.check_id(new.id)
            self._check_free(family, plugin_id)
            grants = self.access.granted(actor, new.grants)
            plugin = make_plugin(actor, family, replace(new, grants=grants), self._clock())
            loaded = await load_on_trial(self._registry, plugin, undo)
            stored = plugin if loaded is None else loaded.plugin
            await self._put_new(stored)
            undo.pop_all()
            await self._registry.adopt(stored, loaded)
        log.info("plugin installed", extra={**log_fields(family, plugin_id), "by": actor.user_id})
        return self._find(family, plugin_id)

    async def change(
        self, actor: Actor, family: PluginFamily, plugin_id: str, change: PluginChange
    ) -> Plugin:
        """Change a plugin; a new source must load, and replaces the instance after its open calls.

        Raises conflict for the source, name or description of a plugin from a file, invalid_request for a
        source that does not load, forbidden for the source of a tool without `workspace.tools`, and conflict
        (`revision_changed`) if the plugin has another revision than that of the change.
        """
        async with self._registry.changing, AsyncExitStack() as undo:
            actor, plugin = await self._change_by(actor, family, plugin_id)
            if change.revision is not None and change.revision != revision_of(plugin):
                sentence = f"cannot change {plugin_id!r}: it has changed since it was read"
                raise GatewayError(ErrorKind.CONFLICT, sentence, param="revision", code=REVISION_CHANGED)
            wanted = self._changed(actor, plugin, change)
            if wanted.content != plugin.content:
                self.access.check_source(actor, plugin)
            if replace(wanted, grants=plugin.grants, updated_at=plugin.updated_at) != plugin:
                _check_own(plugin)
            failed = plugin.locked is None and plugin.problem is not None and plugin.problem.doing == LOAD
            if wanted.content == plugin.content and not failed:
                await self._store_record(plugin, wanted)
                await self._registry.update(wanted)
            else:
                problem = None if wanted.locked is None else wanted.problem
                await self._replace(plugin, replace(wanted, problem=problem), undo)
        log.info("plugin changed", extra={**log_fields(family, plugin_id), "by": actor.user_id})
        return self._find(family, plugin_id)

    async def install(
        self, actor: Actor, new: NewPlugin, family: PluginFamily | None = None
    ) -> tuple[Plugin, EnsureOutcome]:
        """Create a plugin or replace its source; `family` None is read from the source."""
        family = family or source_code.detect_kind(new.content)[0]
        known = self._registry.find(family, source_code.check_id(new.id))
        if known is None:
            return await self.create(actor, family, new), EnsureOutcome.CREATED
        if known.content == new.content and known.origin is PluginOrigin.DATABASE:
            return self.get(actor, family, known.id), EnsureOutcome.UNCHANGED
        change = PluginChange(new.content, new.name or None, new.description or None)
        return await self.change(actor, family, known.id, change), EnsureOutcome.CHANGED

    async def remove(self, actor: Actor, family: PluginFamily, plugin_id: str) -> None:
        """Remove a plugin with its valves; conflict for a plugin from a file."""
        async with self._registry.changing:
            _, plugin = await self._change_by(actor, family, plugin_id)
            _check_own(plugin)
            async with self._transactor.exclusive(CHANGE_LOCK):
                self._check_current(plugin)
                await self._store.remove(family, plugin.id)
            self._registry.drop(family, plugin.id)
        log.info("plugin removed", extra={**log_fields(family, plugin_id), "by": actor.user_id})

    async def set_active(
        self, actor: Actor, family: PluginFamily, plugin_id: str, is_active: bool | None = None
    ) -> Plugin:
        """Activate or deactivate a plugin, None to toggle; a failure to load becomes its last problem."""
        async with self._registry.changing:
            _, plugin = await self._change_by(actor, family, plugin_id)
            wanted = not plugin.is_active if is_active is None else is_active
            changed = _switched(replace(plugin, is_active=wanted), "is_active", wanted)
            await self._save(plugin, changed)
        if wanted and self._registry.is_running:
            await self._try(family, plugin_id)
        return self._find(family, plugin_id)

    async def set_global(
        self, actor: Actor, family: PluginFamily, plugin_id: str, is_global: bool | None = None
    ) -> Plugin:
        """Apply a filter or action to all models or not, None to toggle."""
        async with self._registry.changing:
            _, plugin = await self._change_by(actor, family, plugin_id)
            wanted = not plugin.is_global if is_global is None else is_global
            await self._save(plugin, _switched(replace(plugin, is_global=wanted), "is_global", wanted))
        return self._find(family, plugin_id)

    async def set_grants(
        self, actor: Actor, family: PluginFamily, plugin_id: str, grants: Sequence[Grant]
    ) -> Plugin:
        """Replace the access list; grants that the actor may not give are dropped, as in Open WebUI."""
        return (await self.change_grants(actor, family, plugin_id, lambda _: grants))[1]

    async def change_grants(
        self, actor: Actor, family: PluginFamily, plugin_id: str, change: GrantChange
    ) -> tuple[tuple[Grant, ...], Plugin]:
        """Replace the access list by what `change` returns for the present one, as `set_grants` does.

        Returns the former list and the plugin.
        """
        async with self._registry.changing:
            actor, plugin = await self._change_by(actor, family, plugin_id)
            wanted = self.access.granted(actor, change(plugin.grants), plugin.grants)
            if wanted != plugin.grants:
                await self._save(plugin, replace(plugin, grants=wanted))
        return plugin.grants, self._find(family, plugin_id)

    def valves(self, actor: Actor, family: PluginFamily, plugin_id: str) -> dict[str, Any]:
        """Return the stored valves without defaults; not_configured when they cannot be decrypted."""
        plugin = self._writable(actor, family, plugin_id)
        check_unlocked(plugin)
        return dict(plugin.valves)

    async def valves_schema(
        self, actor: Actor, family: PluginFamily, plugin_id: str
    ) -> dict[str, Any] | None:
        """Return the JSON schema of the valves; None for a plugin without valves."""
        self._writable(actor, family, plugin_id)
        loaded = await self._registry.loaded(family, plugin_id)
        return await loaded.valves_schema(user_record(actor.user))

    async def set_valves(
        self, actor: Actor, family: PluginFamily, plugin_id: str, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Merge values into the valves and return the result; None removes a value.

        Valves that cannot be decrypted are replaced, which unlocks the plugin. Raises invalid_request that
        names the faulty field.
        """
        async with self._registry.changing:
            _, plugin = await self._change_by(actor, family, plugin_id)
            if plugin.locked is not None:
                changed = await self._unlock(plugin, values)
            else:
                loaded = await self._registry.loaded(family, plugin_id)
                changed = await loaded.changed_valves(plugin.valves, values)
                await self._save(plugin, replace(self._find(family, plugin_id), valves=changed))
        log.info("valves changed", extra={**log_fields(family, plugin_id), "by": actor.user_id})
        return changed

    async def reload(self, actor: Actor) -> Mapping[str, Any]:
        """Read database and directory again, as `PluginManager.reload`; only for administrators."""
        check_admin(actor)
        return await self._registry.reload()

    def _find(self, family: PluginFamily, plugin_id: str) -> Plugin:
        plugin = self._registry.find(family, plugin_id)
        if plugin is None:
            raise not_found(family.value, plugin_id)
        return plugin

    async def _change_by(self, actor: Actor, family: PluginFamily, plugin_id: str) -> tuple[Actor, Plugin]:
        """Return the actor with its current rights, and the plugin that it may change."""
        actor = await self.access.current(actor)
        await self._freshness.renew()
        return actor, self._writable(actor, family, plugin_id)

    def _writable(self, actor: Actor, family: PluginFamily, plugin_id: str) -> Plugin:
        if family is PluginFamily.FUNCTION:
            check_admin(actor)
        plugin = self._find(family, plugin_id)
        self.access.check_write(actor, plugin)
        return plugin

    def _check_free(self, family: PluginFamily, plugin_id: str) -> None:
        known = self._registry.find(family, plugin_id)
        if known is not None:
            origin = (
                f": it comes from {describe_origin(known)}"
                if known.origin is not PluginOrigin.DATABASE
                else ""
            )
            raise _taken(family, plugin_id, origin)

    def _changed(self, actor: Actor, plugin: Plugin, change: PluginChange) -> Plugin:
        content = plugin.content if change.content is None else change.content
        meta = (
            plugin.meta
            if change.meta is None
            else {**_switches_meta(plugin.meta), **_client_meta(change.meta)}
        )
        grants = plugin.grants
        if change.grants is not None:
            grants = self.access.granted(actor, change.grants, plugin.grants)
        return replace(
            plugin,
            content=content,
            manifest=frontmatter.parse_frontmatter(content),
            kind=plugin.kind if content == plugin.content else source_code.guess_kind(content, plugin.family),
            name=plugin.name if change.name is None else change.name,
            description=plugin.description if change.description is None else change.description,
            meta=meta,
            grants=grants,
            updated_at=self._clock(),
        )

    async def _replace(self, before: Plugin, plugin: Plugin, undo: AsyncExitStack) -> None:
        """Store a plugin with a new source in place of `before`.

        `undo` ends the new instance when it cannot be stored.
        """
        loaded = await load_on_trial(self._registry, plugin, undo)
        stored = plugin if loaded is None else loaded.plugin
        await self._store_record(before, stored)
        undo.pop_all()
        await self._registry.adopt(stored, loaded)

    async def _unlock(self, plugin: Plugin, values: Mapping[str, Any]) -> dict[str, Any]:
        """Replace valves that cannot be decrypted, and return the new ones."""
        async with AsyncExitStack() as undo:
            loaded = await self._registry.probe(replace(plugin, locked=None, problem=None))
            undo.push_async_callback(loaded.end, END_SECONDS)
            changed = await loaded.changed_valves({}, values)
            stored = replace(loaded.plugin, valves=changed, updated_at=self._clock())
            await self._store_record(plugin, stored)
            undo.pop_all()
            await self._registry.adopt(stored, loaded)
        return changed

    async def _put_new(self, plugin: Plugin) -> None:
        async with self._transactor.exclusive(CHANGE_LOCK):
            stored = await self._store.find(plugin.family, plugin.id)
            if stored is not None and stored.origin is PluginOrigin.DATABASE:
                raise _taken(plugin.family, plugin.id)
            # Remove the stored state of a deleted file that had this id.
            await self._store.remove(plugin.family, plugin.id)
            await self._store.put(plugin)

    async def _save(self, before: Plugin, plugin: Plugin) -> None:
        changed = replace(plugin, updated_at=self._clock())
        await self._store_record(before, changed)
        await self._registry.update(changed)

    async def _store_record(self, before: Plugin, plugin: Plugin) -> None:
        """Store a plugin in place of `before`, without its source if that is in a file."""
        is_own = plugin.origin is PluginOrigin.DATABASE
        async with self._transactor.exclusive(CHANGE_LOCK):
            self._check_current(before)
            await self._store.put(plugin if is_own else replace(plugin, content=""))

    def _check_current(self, plugin: Plugin) -> None:
        """Raise conflict if another process has changed a plugin since it was read, inside the lock."""
        if not self._registry.is_current(plugin):
            sentence = f"cannot change {plugin.id!r}: another process has changed it meanwhile, try again"
            raise GatewayError(ErrorKind.CONFLICT, sentence, code=REVISION_CHANGED)

    async def _try(self, family: PluginFamily, plugin_id: str) -> None:
        try:
            await self._registry.loaded(family, plugin_id)
        except PluginError as failure:
            log.info("cannot load active plugin", extra=log_fields(family, plugin_id))
            log.debug("exception of the plugin", exc_info=failure)


def make_plugin(actor: Actor, family: PluginFamily, new: NewPlugin, now: int) -> Plugin:
    """Return the record of a plugin to install, from its source alone; invalid_request for a bad id."""
    plugin_id = source_code.check_id(new.id)
    manifest = frontmatter.parse_frontmatter(new.content)
    return Plugin(
        id=plugin_id,
        family=family,
        kind=source_code.guess_kind(new.content, family),
        user_id=actor.user_id,
        name=new.name or manifest.get("title") or plugin_id,
        content=new.content,
        description=new.description or manifest.get("description", ""),
        manifest=manifest,
        meta=_client_meta(new.meta),
        is_active=family is PluginFamily.TOOL,
        grants=new.grants,
        updated_at=now,
        created_at=now,
    )


async def load_on_trial(registry: PluginManager, plugin: Plugin, undo: AsyncExitStack) -> PluginHandle | None:
    """Load a plugin on trial, and let `undo` end it; None in safe mode, in which plugins are not loaded.

    Raises invalid_request with exception, text and line when it does not load.
    """
    if registry.is_enabled and not registry.is_running:
        return None
    try:
        loaded = await registry.probe(plugin)
    except PluginError as failure:
        raise invalid_source(failure) from failure
    undo.push_async_callback(loaded.end, END_SECONDS)
    return loaded


def _switched(plugin: Plugin, name: str, value: bool) -> Plugin:
    """Return a plugin from a file with the switch recorded in its `meta`; any other unchanged."""
    if plugin.origin is PluginOrigin.DATABASE:
        return plugin
    switches = {**plugin.meta.get(SWITCHES_KEY, {}), name: value}
    return replace(plugin, meta={**plugin.meta, SWITCHES_KEY: switches})


def _client_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return `meta` without the derived members, which clients send back as they were rendered."""
    return {key: value for key, value in meta.items() if key not in DERIVED_FIELDS}


def _switches_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {SWITCHES_KEY: meta[SWITCHES_KEY]} if SWITCHES_KEY in meta else {}


def describe_origin(plugin: Plugin) -> str:
    """Return the origin of a plugin from a file or of a built-in function, for error sentences."""
    return f"the file {plugin.path}" if plugin.origin is PluginOrigin.FILE else "the gateway itself"


def check_unlocked(plugin: Plugin) -> None:
    """Raise not_configured for a plugin whose valves cannot be decrypted."""
    if plugin.locked is not None:
        raise GatewayError(ErrorKind.NOT_CONFIGURED, plugin.locked, code="valves_sealed")


def _check_own(plugin: Plugin) -> None:
    if plugin.origin is not PluginOrigin.DATABASE:
        raise GatewayError(
            ErrorKind.CONFLICT,
            f"cannot change {plugin.kind.value} {plugin.id!r}: it comes from {describe_origin(plugin)}",
        )


def _taken(family: PluginFamily, plugin_id: str, origin: str = "") -> GatewayError:
    return GatewayError(
        ErrorKind.CONFLICT, f"cannot create {family.value} {plugin_id!r}: the id is taken{origin}", param="id"
    )
