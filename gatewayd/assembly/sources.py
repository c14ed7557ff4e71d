"""The model sources that the settings name, and the built-in model."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Final

import orjson

from gatewayd.assembly.tool_servers import identity_headers
from gatewayd.builtin_model.source import BuiltinModel
from gatewayd.builtin_model.weights import find_weights
from gatewayd.catalog.interfaces import ModelSource
from gatewayd.catalog.providers.records import ManagedProvider, ProviderFamily
from gatewayd.catalog.providers.service import ManagedProviders
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.extras import PackageExtra, is_installed, missing_extra_error
from gatewayd.settings import Provider, Settings
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.sources.config import ModelListUse, ProviderConfig, SourceKind, UpstreamTimeouts
from gatewayd.upstream.sources.factory import open_source

MANAGED_CONNECTIONS: Final = 10_000
"""Maximum number of connections to a provider of the database, as by default in a `[[providers]]` table."""

# Seconds that stand for no limit.
UNLIMITED: Final = 1e9


class ConfiguredSources:
    """The configured sources; a reload keeps those that did not change."""

    def __init__(self, builtin: Sequence[ModelSource]) -> None:
        self._builtin = tuple(builtin)
        self._added: tuple[ModelSource, ...] = ()
        self._open: dict[ProviderConfig, ModelSource] = {}
        self._retired: list[ModelSource] = []

    @property
    def count(self) -> int:
        """The number of sources in use."""
        return len(self._open) + len(self._builtin)

    @property
    def has_retired(self) -> bool:
        """Whether replaced sources are open."""
        return bool(self._retired)

    def add(self, source: ModelSource) -> None:
        """Add a source of another kind, which may have no models; `close` closes it, too."""
        self._added = (*self._added, source)

    def choose(self, settings: Settings, managed: ManagedProviders | None = None) -> Sequence[ModelSource]:
        """Return the sources of the settings and of `managed`, opening new ones."""
        configs = provider_configs(settings, managed)
        chosen = {config: self._open.get(config) or open_source(config) for config in configs}
        self._retired += [source for config, source in self._open.items() if config not in chosen]
        self._open = chosen
        return (*chosen.values(), *self._added, *self._builtin)

    async def close_retired(self, seconds: float) -> None:
        """Close replaced sources; their answers have `seconds` to end."""
        leaving = list(self._retired)
        await asyncio.sleep(seconds)
        for source in leaving:
            if source in self._retired:
                self._retired.remove(source)
                await source.close()

    async def close(self) -> None:
        """Close every source."""
        for source in (*self._open.values(), *self._retired, *self._added, *self._builtin):
            await source.close()


def provider_configs(settings: Settings, managed: ManagedProviders | None = None) -> Sequence[ProviderConfig]:
    """Return the configuration of each provider; their names differ, as the settings and `managed` check.

    Runtimes are counted separately: the number of a runtime stands in its paths, see gatewayd-api(7).
    """
    places = {True: itertools.count(), False: itertools.count()}
    if managed is not None:
        settings = settings.model_copy(
            update={
                "enable_openai_api": managed.is_enabled(ProviderFamily.OPENAI),
                "enable_ollama_api": managed.is_enabled(ProviderFamily.OLLAMA),
            }
        )
    configs = [
        _provider_config(each, next(places[each.kind == "ollama"]), settings)
        for each in settings.all_providers()
    ]
    own = () if managed is None else managed.in_use()
    return [
        *configs,
        *(managed_config(each, settings, next(places[each.kind == "ollama"])) for each in own),
    ]


def managed_config(provider: ManagedProvider, settings: Settings, index: int = 0) -> ProviderConfig:
    """Return the configuration of a provider of the database; raises invalid_request for a wrong address."""
    return ProviderConfig(
        name=provider.name,
        kind=SourceKind(provider.kind),
        base_url=provider.base_url,
        key=next(iter(provider.all_keys), None),
        keys=provider.all_keys[1:],
        headers=provider.options.headers or (),
        api_version=provider.options.api_version or "",
        upstream=provider.options.upstream or "",
        families=provider.options.families or (),
        prefix=provider.prefix,
        rules=_rules_of(provider.name, settings),
        models=provider.models,
        index=index,
        connection_type=provider.connection_type or None,
        connections=MANAGED_CONNECTIONS,
        identity=identity_headers(settings),
        timeouts=UpstreamTimeouts(
            connect=settings.upstream_connect_timeout,
            first_byte=settings.upstream_first_byte_timeout,
            idle=settings.aiohttp_client_stream_idle_timeout or UNLIMITED,
            total=settings.aiohttp_client_timeout,
        ),
    )


def _rules_of(name: str, settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return the rules for a provider: patterns of models, each with its changes as JSON, in their order."""
    return tuple(
        (rule.model, orjson.dumps(rule.changes, option=orjson.OPT_SORT_KEYS).decode())
        for rule in settings.provider_rules
        if rule.provider in {"", name}
    )


def _provider_config(provider: Provider, index: int, settings: Settings) -> ProviderConfig:
    return ProviderConfig(
        name=provider.name,
        kind=SourceKind(provider.kind),
        base_url=str(provider.base_url),
        key=next(iter(provider.all_keys), None),
        keys=provider.all_keys[1:],
        headers=provider.header_pairs,
        api_version=provider.api_version,
        upstream=provider.upstream,
        families=tuple(provider.families.items()),
        prefix=provider.prefix,
        maker=provider.maker,
        rules=_rules_of(provider.name, settings),
        models=tuple(provider.models),
        model_list=ModelListUse(provider.model_list),
        denied_betas=tuple(provider.denied_betas),
        passes_batches=provider.batches == "passed",
        index=index,
        connections=provider.connections,
        identity=identity_headers(settings),
        timeouts=UpstreamTimeouts(
            connect=provider.connect_timeout or settings.upstream_connect_timeout,
            first_byte=provider.first_byte_timeout or settings.upstream_first_byte_timeout,
            idle=provider.stream_idle_timeout or settings.aiohttp_client_stream_idle_timeout or UNLIMITED,
            total=provider.timeout or settings.aiohttp_client_timeout,
        ),
    )


async def start_builtin(settings: Settings, tasks: TaskRegistry) -> Sequence[ModelSource]:
    """Start the built-in model if it is enabled and its weights are present.

    With `enable_builtin_model = "auto"` a missing engine or missing weights mean that it is not wanted; with
    "true" they are not_configured.
    """
    if settings.enable_builtin_model == "false":
        return ()
    weights = find_weights(settings.data_dir, settings.builtin_model_path)
    if weights is None or not is_installed(PackageExtra.LOCAL):
        if settings.enable_builtin_model == "auto":
            return ()
        if not is_installed(PackageExtra.LOCAL):
            raise missing_extra_error(
                "cannot run the built-in model", PackageExtra.LOCAL, param="enable_builtin_model"
            )
        raise GatewayError(
            ErrorKind.NOT_CONFIGURED,
            "cannot run the built-in model: install its weights, which gatewayd --fetch-model does",
            param="enable_builtin_model",
        )
    model = BuiltinModel(weights, settings.data_dir, tasks, threads=settings.builtin_model_threads)
    await model.start()
    return (model,)
