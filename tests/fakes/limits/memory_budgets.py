"""Budgets in memory: what the interface asks, in its simplest form."""

from collections.abc import Mapping, Sequence

from gatewayd.limits.records import (
    BudgetDemand,
    BudgetRefusal,
    BudgetReservation,
    BudgetSettlement,
    CounterKey,
    CounterUse,
    LedgerReport,
)


class MemoryBudgets:
    """Implements `limits.interfaces.BudgetStore` without a database."""

    def __init__(self) -> None:
        self.used: dict[CounterKey, int] = {}
        self.open: dict[str, BudgetReservation] = {}
        self.warned: set[CounterKey] = set()
        self.batches: list[tuple[int, int]] = []

    async def apply(
        self, reservations: Sequence[BudgetReservation], settlements: Sequence[BudgetSettlement]
    ) -> LedgerReport:
        self.batches.append((len(reservations), len(settlements)))
        warned = [demand for each in settlements for demand in self._settle(each)]
        return LedgerReport(
            {each.id: fault for each in reservations if (fault := self._reserve(each))}, tuple(warned)
        )

    async def uses(self, keys: Sequence[CounterKey]) -> Mapping[CounterKey, CounterUse]:
        return {key: self._use(key) for key in keys if key in self.used}

    async def close_open(self) -> int:
        count = len(self.open)
        self.open.clear()
        return count

    async def prune(self, before: int) -> int:
        old = [key for key in self.used if key.starts_at < before and not self._use(key).reserved]
        for key in old:
            del self.used[key]
        return len(old)

    def _use(self, key: CounterKey) -> CounterUse:
        held = [demand.amount for each in self.open.values() for demand in each.demands if demand.key == key]
        return CounterUse(self.used.get(key, 0), sum(held))

    def _reserve(self, reservation: BudgetReservation) -> BudgetRefusal | None:
        faults = [
            BudgetRefusal(demand, self._use(demand.key))
            for demand in reservation.demands
            if self.used.setdefault(demand.key, 0) + demand.amount > demand.most
        ]
        if faults:
            return max(faults, key=lambda fault: fault.demand.key.ends_at)
        for demand in reservation.demands:
            self.used[demand.key] += demand.amount
        self.open[reservation.id] = reservation
        return None

    def _settle(self, settlement: BudgetSettlement) -> list[BudgetDemand]:
        reservation = self.open.pop(settlement.reservation.id, None)
        if reservation is None:
            return []
        reached = []
        for demand, amount in zip(reservation.demands, settlement.amounts, strict=True):
            self.used[demand.key] += amount - demand.amount
            use = self._use(demand.key)
            is_reached = demand.warn_at is not None and use.used - use.reserved >= demand.warn_at
            if is_reached and demand.key not in self.warned:
                self.warned.add(demand.key)
                reached.append(demand)
        return reached
