"""Tests for gatewayd.assembly.providers."""

from gatewayd.assembly.providers import configured_providers
from gatewayd.assembly.sources import ConfiguredSources, provider_configs
from gatewayd.catalog.providers.records import ManagedProvider, ProviderFamily, ProviderForm, StoredProviders
from gatewayd.settings import load
from tests.fakes.providers.managed import MemoryProviderStore, managed

ENVIRONMENT = {
    "OPENAI_API_BASE_URLS": "http://127.0.0.1:1/v1",
    "OPENAI_API_KEYS": "k",
    "OLLAMA_BASE_URLS": "http://127.0.0.1:2",
    "ENABLE_OLLAMA_API": "false",
}


def test_each_provider_of_the_settings_has_its_origin() -> None:
    settings = load(None, ENVIRONMENT, {"providers": [{"name": "claude", "kind": "anthropic"}]})
    found = configured_providers(settings)
    assert [(each.name, each.kind) for each in found.providers] == [
        ("openai", "openai"),
        ("claude", "anthropic"),
        ("ollama", "ollama"),
    ]
    assert found.providers[0].origin == "environment OPENAI_API_BASE_URLS"
    assert found.switches[ProviderFamily.OLLAMA].value is False
    assert found.switches[ProviderFamily.OLLAMA].explicit


def test_a_key_alone_is_the_origin_of_the_vendor() -> None:
    (found,) = configured_providers(load(None, {"OPENAI_API_KEYS": "k"})).providers
    assert found.origin == "environment OPENAI_API_KEYS"


async def test_the_sources_follow_the_managed_providers() -> None:
    settings = load(None, ENVIRONMENT)
    runtime = ManagedProvider("r", "near", "ollama", "http://127.0.0.1:3")
    hosted = ManagedProvider("p", "acme", "openai", "http://127.0.0.1:4", key="secret")
    store = MemoryProviderStore(StoredProviders((runtime, hosted), {}, 1))
    service = await managed(store, given=configured_providers(settings))
    names = [(config.name, config.index) for config in provider_configs(settings, service)]
    # The settings switch the runtimes off.
    assert names == [("openai", 0), ("acme", 1)]
    sources = ConfiguredSources(())
    before = sources.choose(settings, service)
    await service.replace(ProviderForm(ProviderFamily.OLLAMA, (runtime,), enabled=True), by="a")
    chosen = sources.choose(settings, service)
    assert {source.name for source in chosen} == {"openai", "ollama", "acme", "near"}
    assert chosen[0] is before[0]
    assert not sources.has_retired
    await service.replace(ProviderForm(ProviderFamily.OPENAI, ()), by="a")
    sources.choose(settings, service)
    assert sources.has_retired
    await sources.close()
