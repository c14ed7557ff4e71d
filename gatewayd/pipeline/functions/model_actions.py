"""Lists the actions and toggle filters that a client offers for a model."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.catalog.records import ModelRecord
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.errors import GatewayError
from gatewayd.pictures.icons import shown_icon
from gatewayd.pipeline.documents.model_info import assigned_ids
from gatewayd.plugins.records import Plugin, PluginFamily, PluginKind
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.runtime.interfaces import PluginHandle

log = logging.getLogger(__name__)

MAX_LOADING_SECONDS: Final = 2.0
"""Maximum time that a model list waits for plugins that are loading."""

ActionButton = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelActionSet:
    """Buttons of all active functions, by priority, each with its function."""

    actions: Sequence[tuple[Plugin, ActionButton]] = ()
    filters: Sequence[tuple[Plugin, ActionButton]] = ()

    def of(self, record: ModelRecord | None) -> Mapping[str, list[ActionButton]]:
        """Return `{"actions": [...], "filters": [...]}` for the model of a record."""
        return {
            "actions": _attached(self.actions, assigned_ids(record, "actionIds")),
            "filters": _attached(self.filters, assigned_ids(record, "filterIds")),
        }


class ModelActions:
    """Reads the buttons of plugins."""

    def __init__(self, registry: PluginManager) -> None:
        self._registry = registry
        self._may_have_any: bool | None = None
        registry.subscribe(self._invalidate)

    def may_have_any(self) -> bool:
        """Return False if no active function can have a button."""
        if self._may_have_any is None:
            plugins = self._registry.list(PluginFamily.FUNCTION) if self._registry.is_running else ()
            kinds = (PluginKind.ACTION, PluginKind.FILTER)
            self._may_have_any = any(one.is_active and one.kind in kinds for one in plugins)
        return self._may_have_any

    def _invalidate(self, _: Plugin) -> None:
        self._may_have_any = None

    async def read(self) -> ModelActionSet:
        """Return the buttons of all plugins that are loaded or load within MAX_LOADING_SECONDS."""
        if not self._registry.is_running:
            return ModelActionSet()
        actions, filters = await asyncio.gather(
            self._loaded(PluginKind.ACTION), self._loaded(PluginKind.FILTER)
        )
        return ModelActionSet(
            [(item.plugin, button) for item in actions for button in _actions(item)],
            [(item.plugin, _filter(item)) for item in filters if item.flag("toggle")],
        )

    async def _loaded(self, kind: PluginKind) -> Sequence[PluginHandle]:
        active = [plugin for plugin in self._registry.list(PluginFamily.FUNCTION, kind) if plugin.is_active]
        found = await asyncio.gather(*(self._find(plugin) for plugin in active))
        loaded = [item for item in found if item is not None]
        return sorted(loaded, key=lambda item: (item.priority(), item.plugin.id))

    async def _find(self, plugin: Plugin) -> PluginHandle | None:
        try:
            async with asyncio.timeout(MAX_LOADING_SECONDS):
                return await self._registry.loaded(plugin.family, plugin.id)
        except (GatewayError, TimeoutError) as error:
            log.debug("button not shown: %s", error, extra={"plugin": plugin.id})
            return None


def _actions(loaded: PluginHandle) -> Sequence[ActionButton]:
    """Return the button of an action, or the buttons of its sub-actions."""
    plugin = loaded.plugin
    parts = [as_mapping(item) for item in as_sequence(loaded.value("actions"))]
    named = [(part, part_id) for part in parts if (part_id := as_text(part.get("id")))]
    if not named:
        return [_button(plugin, plugin.id, plugin.name, as_text(loaded.value("icon_url")))]
    return [
        _button(
            plugin,
            f"{plugin.id}.{part_id}",
            as_text(part.get("name")) or part_id,
            as_text(part.get("icon_url")),
        )
        for part, part_id in named
    ]


def _filter(loaded: PluginHandle) -> ActionButton:
    plugin = loaded.plugin
    button = _button(plugin, plugin.id, plugin.name, as_text(loaded.value("icon")))
    return {**button, "has_user_valves": loaded.has_user_valves()}


def _button(plugin: Plugin, button_id: str, name: str, icon: str) -> ActionButton:
    icon = shown_icon(icon or plugin.manifest.get("icon_url", ""))
    return {"id": button_id, "name": name, "description": plugin.description, "icon": icon or None}


def _attached(buttons: Sequence[tuple[Plugin, ActionButton]], attached: Sequence[str]) -> list[ActionButton]:
    return [button for plugin, button in buttons if plugin.is_global or plugin.id in attached]
