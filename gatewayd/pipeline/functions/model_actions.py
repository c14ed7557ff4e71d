"""What a page may show at a model: the actions under its answers, and the filters that can be switched on."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.catalog.records import ModelRecord
from gatewayd.completions.json_access import mapping, sequence, text
from gatewayd.errors import GatewayError
from gatewayd.pipeline.documents.model_info import assigned
from gatewayd.plugins.records import Family, Plugin, PluginKind
from gatewayd.plugins.registry import Registry
from gatewayd.plugins.runtime.handles import PluginHandle

log = logging.getLogger(__name__)

SECONDS: Final = 2.0
"""How long a list of models waits for plugins that are being loaded."""

Button = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ButtonSet:
    """The buttons of all active functions, by priority, each with the function that it is of."""

    actions: Sequence[tuple[Plugin, Button]] = ()
    filters: Sequence[tuple[Plugin, Button]] = ()

    def of(self, record: ModelRecord | None) -> Mapping[str, list[Button]]:
        """Return `{"actions": [...], "filters": [...]}` of the model that a record is about (2.4)."""
        return {
            "actions": _on(self.actions, assigned(record, "actionIds")),
            "filters": _on(self.filters, assigned(record, "filterIds")),
        }


class Buttons:
    """Reads the buttons off the plugins."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def read(self) -> ButtonSet:
        """Return the buttons of what is loaded; what is not, and cannot be in a short time, has none."""
        if not self._registry.is_running:
            return ButtonSet()
        actions, filters = await asyncio.gather(
            self._loaded(PluginKind.ACTION), self._loaded(PluginKind.FILTER)
        )
        return ButtonSet(
            [(item.plugin, button) for item in actions for button in _actions(item)],
            [(item.plugin, _filter(item)) for item in filters if item.flag("toggle")],
        )

    async def _loaded(self, kind: PluginKind) -> Sequence[PluginHandle]:
        active = [plugin for plugin in self._registry.list(Family.FUNCTION, kind) if plugin.is_active]
        found = await asyncio.gather(*(self._find(plugin) for plugin in active))
        loaded = [item for item in found if item is not None]
        return sorted(loaded, key=lambda item: (item.priority(), item.plugin.id))

    async def _find(self, plugin: Plugin) -> PluginHandle | None:
        try:
            async with asyncio.timeout(SECONDS):
                return await self._registry.loaded(plugin.family, plugin.id)
        except (GatewayError, TimeoutError) as error:
            log.debug("no button is shown: %s", error, extra={"plugin": plugin.id})
            return None


def _actions(loaded: PluginHandle) -> Sequence[Button]:
    """Return the button of an action, or those of its sub-actions."""
    plugin = loaded.plugin
    parts = [mapping(item) for item in sequence(loaded.value("actions"))]
    named = [(part, part_id) for part in parts if (part_id := text(part.get("id")))]
    if not named:
        return [_button(plugin, plugin.id, plugin.name, text(loaded.value("icon_url")))]
    return [
        _button(
            plugin,
            f"{plugin.id}.{part_id}",
            text(part.get("name")) or part_id,
            text(part.get("icon_url")),
        )
        for part, part_id in named
    ]


def _filter(loaded: PluginHandle) -> Button:
    plugin = loaded.plugin
    button = _button(plugin, plugin.id, plugin.name, text(loaded.value("icon")))
    return {**button, "has_user_valves": loaded.has_user_valves()}


def _button(plugin: Plugin, button_id: str, name: str, icon: str) -> Button:
    icon = icon or plugin.manifest.get("icon_url", "")
    return {"id": button_id, "name": name, "description": plugin.description, "icon": icon or None}


def _on(buttons: Sequence[tuple[Plugin, Button]], attached: Sequence[str]) -> list[Button]:
    return [button for plugin, button in buttons if plugin.is_global or plugin.id in attached]
