"""The layers of the configuration: settings by name, each with the origin of its value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource


class OriginKind(StrEnum):
    """Kind of origin, one for each layer of the configuration, lowest first."""

    # A built-in default, or a directory that the service manager created for the daemon.
    DEFAULT = "default"
    # A TOML file.
    FILE = "file"
    # An environment variable.
    ENVIRONMENT = "environment"
    # A file in the credentials directory, or one that an environment variable NAME_FILE points to.
    CREDENTIAL = "credential"
    # An option of the command that started the daemon.
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Origin of a value; `text` is for people, `file` and `line` are None outside files."""

    kind: OriginKind
    text: str
    file: Path | None = None
    line: int | None = None

    @property
    def explicit(self) -> bool:
        """Whether the value is configured, as opposed to a default."""
        return self.kind is not OriginKind.DEFAULT


BUILT_IN = SettingOrigin(OriginKind.DEFAULT, "default")


def from_service_manager(variable: str) -> SettingOrigin:
    """Return the origin of a default that follows a directory variable of the service manager."""
    return SettingOrigin(OriginKind.DEFAULT, f"default in {variable}")


def from_file(path: Path, line: int | None) -> SettingOrigin:
    """Return the origin of a value in a TOML file."""
    text = f"file {path}" if line is None else f"file {path} line {line}"
    return SettingOrigin(OriginKind.FILE, text, path, line)


def from_environment(variable: str) -> SettingOrigin:
    """Return the origin of a value in an environment variable."""
    return SettingOrigin(OriginKind.ENVIRONMENT, f"environment {variable}")


def from_credential(name: str) -> SettingOrigin:
    """Return the origin of a value in the credentials directory."""
    return SettingOrigin(OriginKind.CREDENTIAL, f"credential {name}")


def from_secret_file(variable: str, path: Path) -> SettingOrigin:
    """Return the origin of a value in the file that an environment variable names."""
    return SettingOrigin(OriginKind.CREDENTIAL, f"file {path} named by environment {variable}", path)


def from_token_file(path: Path) -> SettingOrigin:
    """Return the origin of a SCIM token in its own file."""
    return SettingOrigin(OriginKind.CREDENTIAL, f"file {path}", path)


FROM_COMMAND_LINE = SettingOrigin(OriginKind.COMMAND_LINE, "command line")


KeyPath = tuple[str | int, ...]
"""A setting, and for values within it further keys and indices: `("providers", 0, "name")`."""


@dataclass(frozen=True, slots=True)
class SettingEntry:
    """One value as it is written, the name it is written under, and its origin."""

    value: Any
    key: str
    origin: SettingOrigin
    locate: Callable[[KeyPath], SettingOrigin] | None = None

    def origin_of(self, path: KeyPath) -> SettingOrigin:
        """Return the origin of a value within this one, as precisely as it is known."""
        return self.locate(path) if self.locate else self.origin


@dataclass(frozen=True, slots=True)
class SettingLayer:
    """One layer of the configuration: entries by the name of their setting."""

    entries: Mapping[str, SettingEntry] = field(default_factory=dict)

    def without(self, names: set[str]) -> "SettingLayer":
        """Return this layer without some settings."""
        return SettingLayer({name: entry for name, entry in self.entries.items() if name not in names})


class LayerSource(PydanticBaseSettingsSource):
    """A source of pydantic-settings that returns the values of one layer."""

    def __init__(self, settings_cls: type[BaseSettings], layer: SettingLayer) -> None:
        super().__init__(settings_cls)
        self._layer = layer

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value, the key, and False: the value needs no decoding."""
        entry = self._layer.entries.get(field_name)
        return (entry.value if entry else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the values of the layer by setting."""
        return {name: entry.value for name, entry in self._layer.entries.items()}
