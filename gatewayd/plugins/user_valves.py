"""Service for the valves that users set for themselves."""

from collections.abc import Mapping
from typing import Any

from gatewayd.accounts.records import Actor
from gatewayd.errors import not_found
from gatewayd.plugins.access import PluginAccess
from gatewayd.plugins.interfaces import UserValvesStore
from gatewayd.plugins.records import Plugin, PluginFamily
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.arguments import user_record
from gatewayd.plugins.runtime.interfaces import PluginHandle


class UserValves:
    """Reads and changes the user valves of an actor, never those of another user.

    Schema and changes run code of the plugin; of an inactive plugin only for actors that may change it.
    """

    def __init__(self, registry: PluginManager, store: UserValvesStore, access: PluginAccess) -> None:
        self._registry = registry
        self._store = store
        self._access = access

    async def find(self, actor: Actor, family: PluginFamily, plugin_id: str) -> dict[str, Any] | None:
        """Return the stored valves of the actor; None when nothing is set."""
        self._check(actor, family, plugin_id)
        return await self._store.find(actor.user_id, family, plugin_id)

    async def schema(self, actor: Actor, family: PluginFamily, plugin_id: str) -> dict[str, Any] | None:
        """Return the JSON schema of the user valves; None for a plugin without them."""
        loaded = await self._loaded(actor, family, plugin_id)
        return await loaded.user_valves_schema(user_record(actor.user))

    async def change(
        self, actor: Actor, family: PluginFamily, plugin_id: str, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Merge values into the valves of the actor and return the result; None removes a value.

        Raises invalid_request that names the faulty field.
        """
        loaded = await self._loaded(actor, family, plugin_id)
        stored = await self._store.find(actor.user_id, family, plugin_id) or {}
        changed = await loaded.changed_valves(stored, values, of_user=True)
        await self._store.put(actor.user_id, family, plugin_id, changed)
        return changed

    async def _loaded(self, actor: Actor, family: PluginFamily, plugin_id: str) -> PluginHandle:
        plugin = self._check(actor, family, plugin_id)
        if not (plugin.is_active or self._access.may_write(actor, plugin)):
            raise not_found(family.value, plugin_id)
        return await self._registry.loaded(family, plugin_id)

    def _check(self, actor: Actor, family: PluginFamily, plugin_id: str) -> Plugin:
        plugin = self._registry.find(family, plugin_id)
        if plugin is None:
            raise not_found(family.value, plugin_id)
        self._access.check_read(actor, plugin)
        return plugin
