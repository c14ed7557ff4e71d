"""Metering: the meter of all calls of models, prices, and the recorder and reports of usage."""

from collections.abc import Sequence
from dataclasses import dataclass

from gatewayd.dialects.providers.family import canonical_name
from gatewayd.http.public.administration.usage import UsageRoutes
from gatewayd.http.routes import Route
from gatewayd.metering.load import LoadWatch
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.prices import MAX_CALL_COST, ModelPrice, PriceRule, PriceTable, nano_price
from gatewayd.metering.recorder import UsageRecorder
from gatewayd.metering.usage_records import UsageStore
from gatewayd.settings import Settings
from gatewayd.storage.engine.readers import QueryReader
from gatewayd.storage.limits.usage import TortoiseUsage
from gatewayd.tasks import TaskRegistry


@dataclass(frozen=True, slots=True)
class MeteringServices:
    """The meter with its observers and admissions, the prices, and stored usage."""

    meter: CallMeter
    prices: PriceTable
    recorder: UsageRecorder
    usage: UsageStore
    load: LoadWatch


def make_metering(
    settings: Settings, recorder: UsageRecorder, reader: QueryReader, tasks: TaskRegistry
) -> MeteringServices:
    """Return the services; the recorder writes until the tasks are closed."""
    prices = PriceTable(price_rules(settings), canonical_name)
    load = LoadWatch()
    meter = CallMeter([recorder, load], pricing=prices.cost)
    tasks.spawn("usage", recorder.run())
    return MeteringServices(meter, prices, recorder, TortoiseUsage(reader), load)


def usage_rows(services: MeteringServices) -> Sequence[Route]:
    """Return the rows of the public application."""
    return UsageRoutes(services.usage).routes()


def price_rules(settings: Settings) -> Sequence[PriceRule]:
    """Return the prices of the settings."""
    return [
        PriceRule(
            each.provider,
            each.model,
            ModelPrice(
                nano_price(each.prompt),
                nano_price(each.completion),
                None if each.cached is None else nano_price(each.cached),
                None if each.cache_written is None else nano_price(each.cache_written),
                min(MAX_CALL_COST, nano_price(each.request)),
            ),
        )
        for each in settings.model_prices
    ]
