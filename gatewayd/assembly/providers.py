"""The providers that administrators manage, beside those of the settings."""

from collections.abc import Callable
from functools import partial
from typing import Final

from gatewayd.assembly.accounts import signing_keys
from gatewayd.assembly.sources import managed_config
from gatewayd.catalog.providers.options import ConnectionOptions
from gatewayd.catalog.providers.records import (
    SETTINGS_PREFIX,
    ConfiguredProviders,
    ConfiguredSwitch,
    ManagedProvider,
    ProviderFamily,
)
from gatewayd.catalog.providers.service import ManagedProviders
from gatewayd.settings import Provider, Settings
from gatewayd.storage.providers import TortoiseProviders
from gatewayd.transactions import Transactor
from gatewayd.upstream.sources.tester import SourceTester

PROVIDERS_LOCK: Final = "providers"
"""Name of the lock that serialises changes of providers across processes."""


def make_providers(
    settings: Settings, in_force: Callable[[], Settings], commits: Transactor
) -> ManagedProviders:
    """Return the providers, to be loaded once `in_force` can be called, which has the settings in force."""
    tester = SourceTester(
        lambda provider: managed_config(provider, in_force()),
        lambda: in_force().aiohttp_client_timeout_model_list,
    )
    store = TortoiseProviders(signing_keys(settings))
    providers = ManagedProviders(
        store,
        tester,
        persistent=settings.enable_persistent_config,
        exclusive=partial(commits.exclusive, PROVIDERS_LOCK),
    )
    providers.configure(configured_providers(settings))
    return providers


def configured_providers(settings: Settings) -> ConfiguredProviders:
    """Return the providers of the settings with their origins."""
    origins = settings.origins
    switches = {}
    for family in ProviderFamily:
        name = f"enable_{family.value}_api"
        origin = origins[name]
        value = getattr(settings, name)
        switches[family] = ConfiguredSwitch(name.upper(), value, origin.text, origin.explicit)
    found = []
    for name, provider in settings.listed_providers():
        origin = origins[name]
        if name == "openai_api_base_urls" and not origin.explicit:
            origin = origins["openai_api_keys"]
        found.append(_managed(provider, origin.text))
    return ConfiguredProviders(tuple(found), switches)


def _managed(provider: Provider, origin: str) -> ManagedProvider:
    return ManagedProvider(
        id=f"{SETTINGS_PREFIX}{provider.name}",
        name=provider.name,
        kind=provider.kind,
        base_url=str(provider.base_url),
        key=next(iter(provider.all_keys), ""),
        prefix=provider.prefix,
        models=tuple(provider.models),
        origin=origin,
        options=ConnectionOptions(
            provider.all_keys[1:],
            provider.header_pairs,
            provider.api_version,
            provider.upstream,
            tuple(provider.families.items()),
        ),
    )
