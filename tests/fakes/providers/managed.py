"""Managed providers over memory, and a test of providers that answers as told."""

from gatewayd.catalog.providers.records import (
    ConfiguredProviders,
    ConfiguredSwitch,
    ManagedProvider,
    ProviderFamily,
    ProviderOffer,
    StoredProviders,
)
from gatewayd.catalog.providers.service import ManagedProviders
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind

FILE = "file /etc/gatewayd.toml line 3"
LOCKED = ManagedProvider(
    "settings:hosted", "hosted", "openai", "https://hosted.test/v1", key="file-key", origin=FILE
)


class MemoryProviderStore:
    """Implements `ProviderStore`; `saves` has who saved."""

    def __init__(self, stored: StoredProviders | None = None) -> None:
        self.stored = stored or StoredProviders()
        self.saves: list[str] = []

    async def load(self) -> StoredProviders:
        return self.stored

    async def save(self, stored: StoredProviders, *, at: int, by: str) -> None:
        self.stored = stored
        self.saves.append(by)


class FakeTester:
    """Implements `ProviderTester`; `tested` has what was tested, `doubt` is about each key."""

    def __init__(self) -> None:
        self.tested: list[ManagedProvider] = []
        self.doubt = ""

    def validate(self, provider: ManagedProvider) -> None:
        ProviderConfig(provider.name, SourceKind(provider.kind), provider.base_url, key=provider.key or None)

    async def test(self, provider: ManagedProvider) -> ProviderOffer:
        self.tested.append(provider)
        version = "0.9.1" if provider.family is ProviderFamily.OLLAMA else None
        return ProviderOffer(("m-1", "m-2"), version)

    async def find_key_doubt(self, provider: ManagedProvider) -> str:
        return self.doubt


def configured(*, enabled: bool = True, explicit: bool = False) -> ConfiguredProviders:
    """Return the provider LOCKED of the settings, and the switch of its family."""
    switch = ConfiguredSwitch("ENABLE_OPENAI_API", enabled, "environment ENABLE_OPENAI_API", explicit)
    return ConfiguredProviders((LOCKED,), {ProviderFamily.OPENAI: switch})


async def managed(
    store: MemoryProviderStore | None = None,
    tester: FakeTester | None = None,
    *,
    persistent: bool = True,
    given: ConfiguredProviders | None = None,
) -> ManagedProviders:
    """Return the loaded service."""
    made = ManagedProviders(
        store or MemoryProviderStore(), tester or FakeTester(), persistent=persistent, clock=lambda: 9
    )
    made.configure(given or configured())
    await made.load()
    return made
