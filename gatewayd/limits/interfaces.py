"""Interfaces of the stores of limits: rules, rates and budgets."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatewayd.limits.records import (
    BudgetReservation,
    BudgetSettlement,
    CounterKey,
    CounterUse,
    LedgerReport,
    LimitRule,
    LimitSubject,
    RatePot,
    RateRefusal,
    RateUse,
)


class RuleStore(Protocol):
    """Rules of limits; each change is committed on return, or with the transaction around it."""

    async def list(self) -> Sequence[LimitRule]:
        """Return all rules, oldest first."""
        ...

    async def find(self, rule_id: str) -> LimitRule | None:
        """Return one rule."""
        ...

    async def find_of(self, subject: LimitSubject, subject_id: str, model: str) -> LimitRule | None:
        """Return the rule of a subject and a model ("" for all models)."""
        ...

    async def put(self, rule: LimitRule) -> None:
        """Insert a rule, or replace the one with its id; the counters of its budgets stay.

        Raises conflict if another rule has the same subject and model.
        """
        ...

    async def remove(self, rule_id: str) -> bool:
        """Delete a rule with its counters and their reservations."""
        ...

    async def remove_orphans(self) -> int:
        """Delete the rules of keys, users and groups that are deleted."""
        ...


class StorageSizes(Protocol):
    """Sizes of the stored files, those of batches included."""

    async def stored_bytes(self, *, user_id: str | None = None, group_id: str | None = None) -> int:
        """Return the bytes of the files of a user, of all present members of a group, or of everybody."""
        ...


class RateTicket(Protocol):
    """What one call took of its pots, until it is given back."""


class RateStore(Protocol):
    """Use of pots in the last 60 seconds, and at the moment; it may be lost at a restart.

    Never more than the limit of a pot is taken within any 60 seconds, to the second; what a call used beyond
    its estimate is counted too, so that later calls wait.
    """

    async def take(self, pots: Sequence[RatePot], tokens: int) -> "RateTicket | RateRefusal":
        """Take one request, `tokens` and a place from each pot, or nothing from any.

        Returns the refusal of the pot whose wait is longest. A pot counts at most its limit for one call, so
        that an estimate above the limit can run alone.
        """
        ...

    def give_back(self, ticket: "RateTicket", tokens: int) -> None:
        """Free the place of a call, and correct its tokens to what it really used; later calls do nothing."""
        ...

    def undo(self, ticket: "RateTicket") -> None:
        """Give back everything, as if the call had not been."""
        ...

    def use(self, pot: RatePot) -> RateUse:
        """Return the use of a pot, as far as it is known here; without I/O."""
        ...

    async def look(self, pots: Sequence[RatePot]) -> None:
        """Learn the present use of pots, for `use`."""
        ...


class BudgetStore(Protocol):
    """Counters of budgets, and the open reservations; durable on return.

    A counter never exceeds the `most` of a demand by a reservation, whatever other processes do at the same
    time; a settlement may exceed it, by what a call used beyond its reservation.
    """

    async def apply(
        self, reservations: Sequence[BudgetReservation], settlements: Sequence[BudgetSettlement]
    ) -> LedgerReport:
        """Settle calls, then reserve for others in their order, in one transaction.

        A reservation is stored whole or refused. A settlement replaces the amounts of its reservation by the
        real ones; one whose reservation is settled already, or whose rule is deleted, does nothing. The first
        settlement that brings a counter to its `warn_at` reports it, once in its period.
        """
        ...

    async def uses(self, keys: Sequence[CounterKey]) -> Mapping[CounterKey, CounterUse]:
        """Return the uses of counters that exist."""
        ...

    async def close_open(self) -> int:
        """Count the open reservations of processes that have ended as used; return their number.

        They are those of nodes whose lease is over, or for a daemon alone all. A node that was only silent
        settles its calls later all the same.
        """
        ...

    async def prune(self, before: int) -> int:
        """Delete the counters of periods that began before a time, without open reservations."""
        ...
