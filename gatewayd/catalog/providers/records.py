"""Records of the providers that administrators manage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gatewayd.catalog.providers.options import NO_OPTIONS, ConnectionOptions

OLLAMA_KIND: Final = "ollama"

SETTINGS_PREFIX: Final = "settings:"
"""Beginning of the id of a provider of the settings; its name follows."""


class ProviderFamily(StrEnum):
    """Which list of Open WebUI a provider is in."""

    # Hosted providers, of the OpenAI and of the Anthropic protocol.
    OPENAI = "openai"
    # Local runtimes.
    OLLAMA = "ollama"


@dataclass(frozen=True, slots=True)
class ManagedProvider:
    """One provider of the settings or of the database.

    `kind` is the protocol, a value of `SourceKind`. `prefix` is put directly before the id of each model,
    `models` is the allow list of the provider's own ids, empty for all. `connection_type` is what listings
    tell, empty for the value of the kind. `origin` names the place in the settings and is empty for a
    provider of the database. `problem` is the reason why the provider is not used, empty for none.
    `unreadable_key` and `unreadable_options` cannot be decrypted; they are stored again as they are.
    """

    id: str
    name: str
    kind: str
    base_url: str
    key: str = field(default="", repr=False)
    prefix: str = ""
    models: tuple[str, ...] = ()
    connection_type: str = ""
    is_active: bool = True
    origin: str = ""
    problem: str = ""
    unreadable_key: str = field(default="", repr=False)
    options: ConnectionOptions = NO_OPTIONS
    unreadable_options: str = field(default="", repr=False)

    @property
    def has_key(self) -> bool:
        """Whether a key is known or stored."""
        return bool(self.key or self.unreadable_key)

    @property
    def all_keys(self) -> tuple[str, ...]:
        """The key and the further ones."""
        return tuple(filter(None, (self.key, *(self.options.keys or ()))))

    @property
    def family(self) -> ProviderFamily:
        """The list that shows the provider."""
        return ProviderFamily.OLLAMA if self.kind == OLLAMA_KIND else ProviderFamily.OPENAI


@dataclass(frozen=True, slots=True)
class StoredProviders:
    """The stored providers of both families; `revision` counts their changes.

    `enabled` has the stored switches of the families; one that is absent has the value of the settings.
    """

    providers: tuple[ManagedProvider, ...] = ()
    enabled: Mapping[ProviderFamily, bool] = field(default_factory=dict)
    revision: int = 0


@dataclass(frozen=True, slots=True)
class ConfiguredSwitch:
    """The switch of a family in the settings; `explicit` is False for a default."""

    name: str
    value: bool = True
    origin: str = "default"
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class ConfiguredProviders:
    """The providers of the settings, those of a family that is switched off included."""

    providers: tuple[ManagedProvider, ...] = ()
    switches: Mapping[ProviderFamily, ConfiguredSwitch] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProviderForm:
    """What an administrator sends for one family: None for a value that stays as it is.

    The ids are empty for entries without one, the keys MASK for keys that stay.
    """

    family: ProviderFamily
    providers: tuple[ManagedProvider, ...]
    enabled: bool | None = None
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderOffer:
    """What a provider answered to a test: its own ids of models, and the version of a runtime.

    `key_doubt` is why the answer does not show that a new key works, "" if it does or if nothing asked.
    """

    models: tuple[str, ...]
    version: str | None = None
    key_doubt: str = ""
