"""One layer of the configuration: some settings, each with its origin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from gatewayd.settings.origins import SettingOrigin

KeyPath = tuple[str | int, ...]
"""A setting, and for values within it further keys and indices: `("providers", 0, "name")`."""


@dataclass(frozen=True, slots=True)
class SettingEntry:
    """A value as it was written, the name it was written under, and where."""

    value: Any
    key: str
    origin: SettingOrigin
    place_of: Callable[[KeyPath], SettingOrigin] | None = None

    def origin_of(self, place: KeyPath) -> SettingOrigin:
        """Return the origin of a value within this one, as near as it is known."""
        return self.place_of(place) if self.place_of else self.origin


@dataclass(frozen=True, slots=True)
class SettingLayer:
    """Entries by the name of their setting."""

    entries: Mapping[str, SettingEntry] = field(default_factory=dict)

    def without(self, names: set[str]) -> "SettingLayer":
        """Return this layer less some settings."""
        return SettingLayer({name: entry for name, entry in self.entries.items() if name not in names})


class LayerSource(PydanticBaseSettingsSource):
    """Gives a layer's values to pydantic-settings."""

    def __init__(self, settings_cls: type[BaseSettings], layer: SettingLayer) -> None:
        super().__init__(settings_cls)
        self._layer = layer

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value, the key and that it needs no decoding."""
        entry = self._layer.entries.get(field_name)
        return (entry.value if entry else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the layer's values by setting."""
        return {name: entry.value for name, entry in self._layer.entries.items()}
