"""The ledger of budgets: reservations are stored before a call is sent, many in one transaction."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.interfaces import BudgetStore
from gatewayd.limits.records import (
    BudgetDemand,
    BudgetRefusal,
    BudgetReservation,
    BudgetSettlement,
    LedgerReport,
)

log = logging.getLogger(__name__)

MAX_BATCH_CALLS: Final = 500
"""Maximum number of reservations, and of settlements, in one transaction."""

MAX_WAITING_CALLS: Final = 10_000
"""Maximum number of calls that wait for their reservation; further ones are refused."""

MAX_OPEN_SETTLEMENTS: Final = 100_000
"""Maximum number of settlements that wait for the database; the reservations of further ones stay charged."""

RETRY_SECONDS: Final = 2
"""Wait that a refusal names if the database tells none."""

FIRST_PAUSE_SECONDS: Final = 0.1
MAX_PAUSE_SECONDS: Final = 5.0
"""Pause after a failed transaction that had settlements only; each failure doubles it."""

ENDED: Final = "the writer of budgets has ended"

Warn = Callable[[BudgetDemand], None]


@dataclass(slots=True)
class _Waiting:
    """A reservation and the future of its caller."""

    reservation: BudgetReservation
    result: asyncio.Future[BudgetRefusal | None]


class BudgetLedger:
    """Writes reservations and settlements in the order of their arrival, all that wait in one transaction.

    `run` is the one writer. A reservation that cannot be stored fails its call. A settlement is repeated;
    one that is lost with the process leaves its reservation charged.
    """

    def __init__(self, store: BudgetStore, warn: Warn = lambda demand: None) -> None:
        self._store = store
        self._warn = warn
        self._waiting: list[_Waiting] = []
        self._settlements: list[BudgetSettlement] = []
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._has_ended = False

    async def reserve(self, reservation: BudgetReservation) -> BudgetRefusal | None:
        """Return None once the reservation is stored, or why it is refused.

        Raises unavailable if the database cannot store it. A cancelled caller reserves nothing in the end.
        """
        if len(self._waiting) >= MAX_WAITING_CALLS:
            raise GatewayError(
                ErrorKind.UNAVAILABLE, "cannot reserve a budget: too many calls wait for it", retry_after=1
            )
        if self._has_ended:
            raise _refused(ENDED)
        waiting = _Waiting(reservation, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake()
        try:
            return await waiting.result
        except asyncio.CancelledError:
            if _is_granted(waiting.result):
                # It was stored just before the caller was cancelled.
                self.settle(_void(reservation))
            raise

    def settle(self, settlement: BudgetSettlement) -> None:
        """Replace a reservation by what was really used, soon."""
        if len(self._settlements) >= MAX_OPEN_SETTLEMENTS:
            log.error("the reservation of a call stays charged: too many settlements wait for the database")
            return
        self._settlements.append(settlement)
        self._wake()

    async def run(self) -> None:
        """Write until cancelled; nobody waits for a writer that has ended."""
        pause = FIRST_PAUSE_SECONDS
        try:
            while True:
                await self._work.wait()
                if await self._write():
                    pause = FIRST_PAUSE_SECONDS
                    continue
                await asyncio.sleep(pause)
                pause = min(2 * pause, MAX_PAUSE_SECONDS)
        finally:
            self._has_ended = True
            waiting, self._waiting = self._waiting, []
            self._fail(waiting, ENDED)

    async def flush(self, seconds: float) -> bool:
        """Wait until everything is stored, `seconds` at most; return whether it is."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            log.error("%s reservations of calls stay charged", len(self._settlements))
            return False
        return True

    def _wake(self) -> None:
        self._idle.clear()
        self._work.set()

    async def _write(self) -> bool:
        """Write one batch; return False if settlements must be written again later."""
        waiting, self._waiting = self._waiting[:MAX_BATCH_CALLS], self._waiting[MAX_BATCH_CALLS:]
        settlements = self._settlements[:MAX_BATCH_CALLS]
        # A caller that went away reserves nothing.
        waiting = [each for each in waiting if not each.result.done()]
        reason, retry_after = ENDED, None
        report: LedgerReport | None = None
        try:
            report = await self._store.apply([each.reservation for each in waiting], settlements)
        except GatewayError as error:
            log.warning("cannot store reservations of budgets: %s", error.full_message)
            reason, retry_after = error.message, error.retry_after
        finally:
            if report is None:
                self._fail(waiting, reason, retry_after)
        if report is None:
            return False
        # Only this method removes settlements, and new ones are added at the end.
        del self._settlements[: len(settlements)]
        self._answer(waiting, report)
        if not self._waiting and not self._settlements:
            self._rest()
        return True

    def _rest(self) -> None:
        self._work.clear()
        self._idle.set()

    def _fail(self, waiting: Sequence[_Waiting], reason: str, retry_after: int | None = None) -> None:
        for each in waiting:
            # Whether the transaction was stored is unknown: nothing is charged for a call that is not made.
            self.settle(_void(each.reservation))
            if not each.result.done():
                each.result.set_exception(_refused(reason, retry_after))

    def _answer(self, waiting: Sequence[_Waiting], report: LedgerReport) -> None:
        for each in waiting:
            refusal = report.refused.get(each.reservation.id)
            if not each.result.done():
                each.result.set_result(refusal)
            elif refusal is None:
                self.settle(_void(each.reservation))
        for demand in report.warned:
            self._warn(demand)


def _refused(reason: str, retry_after: int | None = None) -> GatewayError:
    return GatewayError(
        ErrorKind.UNAVAILABLE, f"cannot reserve a budget: {reason}", retry_after=retry_after or RETRY_SECONDS
    )


def _is_granted(result: asyncio.Future[BudgetRefusal | None]) -> bool:
    has_result = result.done() and not result.cancelled() and result.exception() is None
    return has_result and result.result() is None


def _void(reservation: BudgetReservation) -> BudgetSettlement:
    return BudgetSettlement(reservation, (0,) * len(reservation.demands))
