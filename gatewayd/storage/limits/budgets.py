"""Store of the counters of budgets and of open reservations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd import ids
from gatewayd.limits.records import (
    BudgetDemand,
    BudgetRefusal,
    BudgetReservation,
    BudgetSettlement,
    CounterKey,
    CounterUse,
    LedgerReport,
)
from gatewayd.storage.engine.failures import translate_errors
from gatewayd.storage.engine.statements import SqlStatement
from gatewayd.storage.engine.transactions import placeholder, write_transaction
from gatewayd.storage.engine.upserts import insert_rows
from gatewayd.storage.nodes.nodes import ALIVE
from gatewayd.storage.tables.limits import LimitCounterRow, LimitReservationRow

MAX_USED: Final = 2**62
"""Maximum amount of a counter; more is not counted."""

CLOSED: Final = "-"
"""Node of reservations that are charged because their node is dead. A node that was only silent still settles
them."""

CLOSED_SECONDS: Final = 86_400
"""Time for which a node that was silent can settle a call."""


@dataclass(slots=True)
class _Counter:
    """A locked counter, and its changes in this transaction."""

    used: int = 0
    reserved: int = 0
    is_warned: bool = False
    more_used: int = 0
    more_reserved: int = 0
    warns: bool = False

    @property
    def use(self) -> CounterUse:
        return CounterUse(self.used + self.more_used, self.reserved + self.more_reserved)

    @property
    def is_changed(self) -> bool:
        return bool(self.more_used or self.more_reserved or self.warns)


class TortoiseBudgets:
    """Implements `limits.interfaces.BudgetStore`; `node` is the id of this node, "" for a daemon alone."""

    def __init__(self, node: str = "", clock: ids.Clock = ids.now) -> None:
        self._node = node
        self._clock = clock

    async def apply(
        self, reservations: Sequence[BudgetReservation], settlements: Sequence[BudgetSettlement]
    ) -> LedgerReport:
        """Settle and reserve in one transaction; the counters are locked in the order of their keys."""
        demands = [demand for each in reservations for demand in each.demands]
        demands += [demand for each in settlements for demand in each.reservation.demands]
        async with write_transaction("count the budgets") as client:
            held = await _take_held(client, [each.reservation.id for each in settlements])
            counters = await _lock(client, demands)
            warned = _settle(counters, settlements, held)
            refused = _reserve(counters, reservations)
            await _write(client, counters)
            await self._hold(counters, [each for each in reservations if each.id not in refused])
        return LedgerReport(refused, tuple(warned))

    async def uses(self, keys: Sequence[CounterKey]) -> Mapping[CounterKey, CounterUse]:
        """Return the uses of counters that exist."""
        by_text = {key.text: key for key in keys}
        statement = SqlStatement(LimitCounterRow._meta.db)
        with translate_errors("read budgets"):
            rows = await statement.run(
                f"SELECT id, used, reserved FROM limit_counters WHERE id {statement.among(list(by_text))}"  # noqa: S608
            )
        return {by_text[row["id"]]: CounterUse(row["used"], row["reserved"]) for row in rows}

    async def close_open(self) -> int:
        """Count the open reservations of processes that have ended as used."""
        async with write_transaction("close the reservations") as client:
            rows = await (self._close_dead(client) if self._node else self._close_all(client))
            freed: dict[str, int] = {}
            for row in rows:
                freed[row["counter_id"]] = freed.get(row["counter_id"], 0) + row["amount"]
            one, two = placeholder(client, 1), placeholder(client, 2)
            if freed:
                await client.execute_many(
                    f"UPDATE limit_counters SET reserved = reserved - {one} WHERE id = {two}",  # noqa: S608
                    [[amount, counter_id] for counter_id, amount in sorted(freed.items())],
                )
        return len({row["call_id"] for row in rows})

    async def _close_all(self, client: Any) -> Sequence[Any]:
        """Delete the reservations of former processes; return those that were open."""
        statement = SqlStatement(client)
        rows = await statement.run(
            "DELETE FROM limit_reservations RETURNING call_id, counter_id, amount, node"
        )
        return [row for row in rows if row["node"] != CLOSED]

    async def _close_dead(self, client: Any) -> Sequence[Any]:
        """Mark the reservations of dead nodes, and return them; delete those that were marked long ago."""
        old = SqlStatement(client)
        limit = old.bind(self._clock() - CLOSED_SECONDS)
        await old.run(
            "DELETE FROM limit_reservations"  # noqa: S608 - no values
            f" WHERE node = {old.bind(CLOSED)} AND created_at < {limit} RETURNING id"
        )
        statement = SqlStatement(client)
        closed = statement.bind(CLOSED)
        return await statement.run(
            f"UPDATE limit_reservations SET node = {closed} WHERE node NOT IN {ALIVE}"  # noqa: S608
            f" AND node <> {statement.bind(CLOSED)} AND node <> {statement.bind(self._node)}"
            " RETURNING call_id, counter_id, amount"
        )

    async def prune(self, before: int) -> int:
        """Delete the counters of old periods."""
        async with write_transaction("delete old counters"):
            return int(await LimitCounterRow.filter(starts_at__lt=before, reserved=0).delete())

    async def _hold(
        self, counters: Mapping[str, _Counter], reservations: Sequence[BudgetReservation]
    ) -> None:
        """Store the reservations that were granted."""
        now = self._clock()
        await insert_rows(
            LimitReservationRow,
            [
                {
                    "call_id": each.id,
                    "counter_id": demand.key.text,
                    "node": self._node,
                    "amount": demand.amount,
                    "created_at": now,
                }
                for each in reservations
                for demand in each.demands
                if demand.key.text in counters
            ],
        )


async def _take_held(client: Any, call_ids: Sequence[str]) -> Mapping[tuple[str, str], tuple[int, int]]:
    """Delete the reservations of calls.

    Returns what each has charged, and what of it is still held, by the ids of call and counter.
    """
    if not call_ids:
        return {}
    statement = SqlStatement(client)
    rows = await statement.run(
        f"DELETE FROM limit_reservations WHERE call_id {statement.among(call_ids)}"  # noqa: S608 - no values
        " RETURNING call_id, counter_id, amount, node"
    )
    return {
        (row["call_id"], row["counter_id"]): (row["amount"], 0 if row["node"] == CLOSED else row["amount"])
        for row in rows
    }


async def _lock(client: Any, demands: Sequence[BudgetDemand]) -> dict[str, _Counter]:
    """Return the counters of the demands by id, made if need be; those of deleted rules are absent."""
    keys = {demand.key.text: demand.key for demand in demands}
    found = await _select(client, keys)
    missing = [key for text, key in keys.items() if text not in found]
    if not missing:
        return found
    statement = SqlStatement(client)
    lock = " FOR KEY SHARE" if statement.is_postgres else ""
    wanted = statement.among(sorted({key.limit_id for key in missing}))
    rows = await statement.run(f"SELECT id FROM limits WHERE id {wanted} ORDER BY id{lock}")  # noqa: S608
    known = {row["id"] for row in rows}
    made = sorted((key for key in missing if key.limit_id in known), key=lambda key: key.text)
    if made:
        await _insert(client, made)
        found |= await _select(client, [key.text for key in made])
    return found


async def _select(client: Any, texts: Iterable[str]) -> dict[str, _Counter]:
    statement = SqlStatement(client)
    lock = " FOR UPDATE" if statement.is_postgres else ""
    rows = await statement.run(
        "SELECT id, used, reserved, warned FROM limit_counters"  # noqa: S608 - no values
        f" WHERE id {statement.among(list(texts))} ORDER BY id{lock}"
    )
    return {row["id"]: _Counter(row["used"], row["reserved"], bool(row["warned"])) for row in rows}


async def _insert(client: Any, keys: Sequence[CounterKey]) -> None:
    statement = SqlStatement(client)
    rows = ", ".join(
        f"({statement.bind_all([key.text, key.limit_id, 0, 0, 0, key.starts_at])})" for key in keys
    )
    await statement.run(
        "INSERT INTO limit_counters (id, limit_id, used, reserved, warned, starts_at)"  # noqa: S608
        f" VALUES {rows} ON CONFLICT (id) DO NOTHING RETURNING id"
    )


def _settle(
    counters: Mapping[str, _Counter],
    settlements: Sequence[BudgetSettlement],
    held: Mapping[tuple[str, str], tuple[int, int]],
) -> list[BudgetDemand]:
    """Replace held amounts by real ones; return the demands whose counters reached their warning."""
    warned = []
    for settlement in settlements:
        for demand, amount in zip(settlement.reservation.demands, settlement.amounts, strict=True):
            counter = counters.get(demand.key.text)
            found = held.get((settlement.reservation.id, demand.key.text))
            if counter is None or found is None:
                continue
            charged, reserved = found
            room = MAX_USED - counter.use.used
            counter.more_used += min(amount - charged, room)
            counter.more_reserved -= reserved
            settled = counter.use.used - counter.use.reserved
            if demand.warn_at is not None and settled >= demand.warn_at and not counter.is_warned:
                counter.is_warned = counter.warns = True
                warned.append(demand)
    return warned


def _reserve(
    counters: Mapping[str, _Counter], reservations: Sequence[BudgetReservation]
) -> dict[str, BudgetRefusal]:
    """Reserve for each call all of its demands or nothing; return the refusals by the id of the call."""
    refused = {}
    for reservation in reservations:
        wanted = [
            (demand, counters[demand.key.text])
            for demand in reservation.demands
            if demand.key.text in counters
        ]
        faults = [
            BudgetRefusal(demand, counter.use)
            for demand, counter in wanted
            if counter.use.used + demand.amount > demand.most
        ]
        if faults:
            # The one that stays full for longest.
            refused[reservation.id] = max(faults, key=lambda fault: fault.demand.key.ends_at)
            continue
        for demand, counter in wanted:
            counter.more_used += demand.amount
            counter.more_reserved += demand.amount
    return refused


async def _write(client: Any, counters: Mapping[str, _Counter]) -> None:
    one, two, three, four = (placeholder(client, position) for position in range(1, 5))
    changed = [
        [counter.more_used, counter.more_reserved, int(counter.warns), text]
        for text, counter in sorted(counters.items())
        if counter.is_changed
    ]
    if changed:
        await client.execute_many(
            f"UPDATE limit_counters SET used = used + {one}, reserved = reserved + {two},"  # noqa: S608
            f" warned = warned + {three} WHERE id = {four}",
            changed,
        )
