"""Limits and budgets of model calls: their stores, admission and routes."""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from gatewayd.assembly.accounts import AccountServices, AccountStores
from gatewayd.assembly.events import LiveServices
from gatewayd.assembly.upkeep.nodes import ClusterServices
from gatewayd.bus.redis_rates import RedisRateOptions, RedisRates
from gatewayd.catalog.service import Catalog
from gatewayd.events.records import EventTarget
from gatewayd.events.service import EventService
from gatewayd.http.control.limits import ControlLimitRoutes
from gatewayd.http.control.transactions import WriteTransactions
from gatewayd.http.limit_fields import LimitTargets
from gatewayd.http.public.administration.limits import LimitRoutes
from gatewayd.http.routes import Route
from gatewayd.limits.admission import LimitAdmission, LimitOptions
from gatewayd.limits.amounts import format_amount
from gatewayd.limits.fair_queue import QueueRules
from gatewayd.limits.interfaces import RateStore
from gatewayd.limits.ledger import BudgetLedger
from gatewayd.limits.memory_rates import MemoryRates
from gatewayd.limits.queue_admission import QueueAdmission, QueueSetup
from gatewayd.limits.records import BudgetDemand
from gatewayd.limits.service import Limits
from gatewayd.limits.storage_quotas import StorageQuotas
from gatewayd.metering.records import MeteredCall
from gatewayd.settings import Settings
from gatewayd.storage.limits.budgets import TortoiseBudgets
from gatewayd.storage.limits.rules import TortoiseLimitRules
from gatewayd.storage.limits.stored_bytes import TortoiseStoredBytes
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 5.0
"""Maximum time at the end for the settlements of the last calls."""

ID_FIELDS: Final = ("chat_id", "id", "session_id")
"""Fields of a request with the ids of its chat."""

TOKENS_OF_PRICE: Final = 1_000_000
NANO_DOLLARS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LimitServices:
    """Limits, and their options, which a reload changes."""

    limits: Limits
    admission: LimitAdmission
    options: LimitOptions
    queues: QueueAdmission
    quotas: StorageQuotas

    def configure(self, settings: Settings) -> None:
        """Use the price and the queues of the settings."""
        self.options.unknown_price = unknown_price(settings)
        self.queues.configure(queue_options(settings))


class BudgetWarnings:
    """Warns the user whose call brought a budget to its warning, by an event and a line in the log."""

    def __init__(self, events: EventService, tasks: TaskRegistry) -> None:
        self._events = events
        self._tasks = tasks

    def warn(self, demand: BudgetDemand) -> None:
        """Warn of a budget."""
        key = demand.key
        limit = f"{format_amount(demand.most, key.unit)} a {key.period}"
        level = format_amount(demand.warn_at or 0, key.unit)
        sentence = f"The budget of {limit} of {demand.owner} has reached {level}."
        log.warning(
            "a budget has reached its warning: %s of %s", limit, demand.owner, extra={"limit": key.limit_id}
        )
        event: dict[str, object] = {"type": "notification", "data": {"type": "warning", "content": sentence}}
        self._tasks.spawn("warning of a budget", self._emit(demand.user_id, event))

    async def _emit(self, user_id: str, event: dict[str, object]) -> None:
        await self._events.emit(EventTarget(user_id), event)


class QueuePositions:
    """Tells the reader of a chat where its call stands in a queue, by status events of its message."""

    def __init__(self, events: EventService, tasks: TaskRegistry) -> None:
        self._events = events
        self._tasks = tasks

    def announce(self, call: MeteredCall, position: int) -> None:
        """Tell a position, 0 for the end of the wait."""
        ids = call.chat
        if ids is None or not ids.get("chat_id"):
            return
        chat_id, message_id, session_id = (str(ids.get(name) or "") for name in ID_FIELDS)
        waits = f"Waiting for the model: place {position} in the queue"
        data = {"description": waits if position else "The model answers", "done": not position}
        event: dict[str, object] = {"type": "status", "data": {"action": "queue", **data}}
        target = EventTarget(call.user_id, chat_id, message_id, session_id, call.request_id)
        self._tasks.spawn("position in a queue", self._emit(target, event))

    async def _emit(self, target: EventTarget, event: dict[str, object]) -> None:
        await self._events.emit(target, event)


async def groups_of(stores: AccountStores, user_id: str) -> Sequence[str]:
    """Return the ids of the groups of a user."""
    return (await stores.groups.list_group_ids([user_id])).get(user_id, ())


def make_quotas(accounts: AccountServices, stores: AccountStores) -> StorageQuotas:
    """Return the quotas of storage, in force once the limits are open."""
    return StorageQuotas(TortoiseStoredBytes(), partial(groups_of, stores), accounts.commits)


async def open_limits(
    settings: Settings,
    catalog: Catalog,
    live: LiveServices,
    quotas: StorageQuotas,
    tasks: TaskRegistry,
    stack: AsyncExitStack,
    cluster: ClusterServices,
) -> LimitServices:
    """Return the services; from now on they admit the calls of the catalogue's models."""
    budgets, rates = TortoiseBudgets(cluster.node_id), open_rates(settings, cluster, tasks, stack)
    ledger = BudgetLedger(budgets, BudgetWarnings(live.events, tasks).warn)
    options = LimitOptions(unknown_price(settings))

    def base_of(model_id: str) -> str:
        record = catalog.find_record(model_id)
        return "" if record is None else record.base_model_id or ""

    admission = LimitAdmission(rates, ledger, lambda: catalog.meter.pricing, base_of, options)
    limits = Limits(TortoiseLimitRules(), rates, budgets, admission, quotas)
    closed = await limits.load()
    if closed:
        log.warning("%s calls of processes that have ended stay charged as reserved", closed)
    tasks.spawn("ledger of budgets", ledger.run())
    stack.push_async_callback(ledger.flush, FLUSH_SECONDS)
    queues = QueueAdmission(queue_options(settings), QueuePositions(live.events, tasks).announce)
    # A call that waits for a place has its part of the limits already.
    catalog.meter.admissions += [admission, queues]
    return LimitServices(limits, admission, options, queues, quotas)


def open_rates(
    settings: Settings, cluster: ClusterServices, tasks: TaskRegistry, stack: AsyncExitStack
) -> RateStore:
    """Return the rates: in Redis for nodes, in memory for a daemon alone."""
    if cluster.redis is None:
        return MemoryRates()
    options = RedisRateOptions(settings.node_lease, cluster.refuses_without_redis)
    rates = RedisRates(cluster.redis, MemoryRates(), options)
    tasks.spawn("limits of all nodes", rates.run())
    stack.push_async_callback(rates.flush, FLUSH_SECONDS)
    return rates


def queue_options(settings: Settings) -> QueueSetup:
    """Return the queues of the settings."""

    def numbers(pairs: Sequence[str]) -> dict[str, int]:
        split = (pair.rpartition("=") for pair in pairs)
        return {name: int(number) for name, _, number in split}

    times = (settings.queue_length, settings.queue_timeout, settings.queue_hold_timeout)
    rules = {name: QueueRules(places, *times) for name, places in numbers(settings.model_queues).items()}
    return QueueSetup(rules, numbers(settings.queue_weights))


def unknown_price(settings: Settings) -> int | None:
    """Return the price of a token in nano-dollars for models without one, None to refuse them."""
    price = settings.unknown_price
    return None if price is None else round(price * NANO_DOLLARS / TOKENS_OF_PRICE)


def make_targets(accounts: AccountServices) -> LimitTargets:
    """Return the finder of keys, users and groups."""
    return LimitTargets(accounts.users, accounts.groups, accounts.keys)


def limit_rows(services: LimitServices, accounts: AccountServices) -> Sequence[Route]:
    """Return the rows of the public application."""
    return LimitRoutes(services.limits, make_targets(accounts)).routes()


def control_limit_rows(
    services: LimitServices, accounts: AccountServices, writes: WriteTransactions
) -> Sequence[Route]:
    """Return the rows of the control socket."""
    return ControlLimitRoutes(services.limits, make_targets(accounts), writes).routes()
