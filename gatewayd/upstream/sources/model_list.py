"""Conversion of the model list of a provider into models of the gateway."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from yarl import URL

from gatewayd.catalog.model_list import MAX_MODELS
from gatewayd.catalog.records import Model
from gatewayd.dialects.providers.family import family_of, is_hosted, known_family
from gatewayd.errors import GatewayError
from gatewayd.time_slices import LoopPacer
from gatewayd.upstream.sources.config import ModelListUse, ProviderConfig
from gatewayd.upstream.sources.provider_client import lacks_listing

MAX_ID_CHARACTERS = 256
"""Maximum number of characters of a model id; models with longer ids are not listed."""

MAX_TIMESTAMP = 253_402_300_799
"""Maximum creation time: the end of the year 9999 in epoch seconds."""

Detail = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns the extra fields of a model for one object of the provider."""


async def find_listed(
    config: ProviderConfig, fetch: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]
) -> Sequence[Mapping[str, Any]]:
    """Return the objects of the provider's list, which `fetch` reads, with those that the settings name.

    A provider without a list (404) has the models of the settings, if there are any; raises the errors of
    `fetch` otherwise.
    """
    named: list[Mapping[str, Any]] = [{"id": model_id} for model_id in config.models]
    if config.model_list is ModelListUse.REPLACE:
        return named
    try:
        found = await fetch()
    except GatewayError as error:
        if not lacks_listing(error) or not named:
            raise
        return named
    # Of two objects with one id the last counts.
    return [*named, *found] if config.model_list is ModelListUse.ADD else found


async def select_models(
    config: ProviderConfig,
    found: Iterable[Mapping[str, Any]],
    owned_by: str,
    detail: Detail,
    *,
    connection_type: str = "external",
) -> Sequence[Model]:
    """Return the models that the provider is to offer, once each, with the prefix before their ids.

    Objects without a usable `id` are skipped, and so is everything after the first model over MAX_MODELS.
    """
    models: dict[str, Model] = {}
    is_filtered = bool(config.models) and config.model_list is ModelListUse.FILTER
    families = dict(config.families)
    maker = _maker(config)
    pace = LoopPacer()
    for item in found:
        await pace.turn()
        if len(models) > MAX_MODELS:
            break
        upstream_id = item.get("id")
        if not isinstance(upstream_id, str) or not _is_usable(upstream_id):
            continue
        if is_filtered and upstream_id not in config.models:
            continue
        name, created = item.get("name"), item.get("created")
        models[upstream_id] = Model(
            id=config.prefix + upstream_id,
            name=name if isinstance(name, str) and name else upstream_id,
            owned_by=config.owned_by or owned_by,
            source=config.name,
            upstream_id=upstream_id,
            created=_time(created),
            connection_type=config.connection_type or connection_type,
            detail=detail(item),
            family=families.get(upstream_id) or known_family(upstream_id),
            maker=maker,
        )
    return list(models.values())


def _maker(config: ProviderConfig) -> str:
    host = URL(config.base_url).host or ""
    maker = family_of(config.kind.value, host, "", maker=config.maker).maker
    return maker if is_hosted(maker) else ""


def _time(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value <= MAX_TIMESTAMP else 0


def _is_usable(upstream_id: str) -> bool:
    return 0 < len(upstream_id) <= MAX_ID_CHARACTERS and upstream_id.isprintable()
