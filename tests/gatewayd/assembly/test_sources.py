"""Tests for gatewayd.assembly.sources."""

import pytest

from gatewayd.assembly.sources import ConfiguredSources, managed_config, provider_configs
from gatewayd.catalog.providers.options import ConnectionOptions
from gatewayd.catalog.providers.records import ManagedProvider
from gatewayd.errors import GatewayError
from gatewayd.settings import load
from gatewayd.upstream.sources.config import SourceKind
from tests.fakes.providers.models import FakeSource


async def test_unchanged_providers_keep_their_source_over_a_reload() -> None:
    first = load(None, {"OPENAI_API_BASE_URLS": "http://127.0.0.1:1/v1", "OPENAI_API_KEYS": "k"})
    second = load(
        None,
        {
            "OPENAI_API_BASE_URLS": "http://127.0.0.1:1/v1",
            "OPENAI_API_KEYS": "k",
            "OLLAMA_BASE_URLS": "http://127.0.0.1:2",
        },
    )
    sources = ConfiguredSources(())
    (before,) = sources.choose(first)
    kept, added = sources.choose(second)
    assert kept is before
    assert added is not before
    assert sources.count == 2
    await sources.close()


def test_general_times_fill_in_for_a_provider_without_its_own() -> None:
    settings = load(
        None,
        {
            "OLLAMA_BASE_URLS": "http://127.0.0.1:2",
            "UPSTREAM_CONNECT_TIMEOUT": "2",
            "AIOHTTP_CLIENT_TIMEOUT": "9",
        },
    )
    (config,) = provider_configs(settings)
    assert config.kind is SourceKind.OLLAMA
    assert config.key is None
    assert (config.timeouts.connect, config.timeouts.total) == (2.0, 9.0)


def test_betas_that_a_provider_does_not_get() -> None:
    table = {"name": "claude", "kind": "anthropic", "denied_betas": ["effort", "context-management-*"]}
    (config,) = provider_configs(load(None, {}, {"providers": [table]}))
    assert config.denied_betas == ("effort", "context-management-*")


FIELDS = {"upstream": "responses", "api_version": "2025-04-01"}


def test_keys_headers_and_protocol_of_a_table() -> None:
    table = {
        "name": "acme",
        "kind": "azure",
        "base_url": "https://acme.openai.azure.com",
        "keys": ["k1", "k2"],
        "headers": {"X-Team": "red"},
        "families": {"prod": "gpt-5"},
        "models": ["prod"],
        **FIELDS,
    }
    (config,) = provider_configs(load(None, {}, {"providers": [table]}))
    assert (config.key, config.keys, config.headers) == ("k1", ("k2",), (("X-Team", "red"),))
    assert (config.families, config.upstream, config.api_version) == ((("prod", "gpt-5"),), *FIELDS.values())
    assert "k2" not in repr(config)
    assert "red" not in repr(config)


def test_keys_headers_and_protocol_of_a_stored_provider() -> None:
    options = ConnectionOptions(("k2",), (("X-Team", "red"),), families=(("prod", "gpt-5"),), **FIELDS)
    provider = ManagedProvider(
        "p1", "acme", "azure", "https://acme.test", key="k1", models=("prod",), options=options
    )
    config = managed_config(provider, load(None, {}))
    assert (config.key, config.keys, config.headers) == ("k1", ("k2",), (("X-Team", "red"),))
    assert (config.families, config.upstream, config.api_version) == ((("prod", "gpt-5"),), *FIELDS.values())
    assert "k2" not in repr(provider)


def test_runtimes_are_counted_by_themselves() -> None:
    tables = [
        {"name": "near", "kind": "ollama"},
        {"name": "claude", "kind": "anthropic"},
    ]
    settings = load(
        None,
        {
            "OPENAI_API_BASE_URLS": "http://127.0.0.1:1/v1",
            "OPENAI_API_KEYS": "k",
            "OLLAMA_BASE_URLS": "http://127.0.0.1:2;http://127.0.0.1:3",
        },
        {"providers": tables},
    )
    assert [(config.name, config.index) for config in provider_configs(settings)] == [
        ("openai", 0),
        ("near", 0),
        ("claude", 1),
        ("ollama", 1),
        ("ollama-2", 2),
    ]


async def test_a_provider_that_cannot_be_is_refused_before_anything_changes() -> None:
    settings = load(None, {}, {"providers": [{"name": "a", "base_url": "http://x/v1"}] * 1})
    sources = ConfiguredSources(())
    assert len(sources.choose(settings)) == 1
    await sources.close()
    with pytest.raises(GatewayError):
        load(None, {}, {"providers": [{"name": "a", "base_url": "http://x/v1"}] * 2})


def test_providers_are_told_who_asks_where_it_is_set() -> None:
    url = {"OPENAI_API_BASE_URLS": "http://127.0.0.1:1/v1", "OPENAI_API_KEYS": "k"}
    assert provider_configs(load(None, url))[0].identity is None
    told = load(None, {**url, "ENABLE_FORWARD_USER_INFO_HEADERS": "true"})
    assert provider_configs(told)[0].identity is not None


async def test_added_sources_are_chosen_and_closed_and_not_counted() -> None:
    ended: list[str] = []

    class Added(FakeSource):
        async def close(self) -> None:
            ended.append(self.name)

    added = Added("functions")
    sources = ConfiguredSources(())
    sources.add(added)
    assert sources.choose(load(None, {})) == (added,)
    assert sources.count == 0
    await sources.close()
    assert ended == ["functions"]
