"""The writer of the audit log: takes entries at once, stores them in order and in batches."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gatewayd import ids
from gatewayd.audit.chain import link
from gatewayd.audit.interfaces import AuditStore
from gatewayd.audit.records import (
    GATEWAY_ACTOR,
    AuditActor,
    AuditEntry,
    AuditResult,
    AuditRow,
    ChainHead,
)
from gatewayd.audit.refusal_lines import RefusalLines
from gatewayd.audit.refusals import RefusalBound
from gatewayd.errors import ErrorKind, GatewayError

log = logging.getLogger(__name__)

MAX_PENDING_ENTRIES: Final = 10_000
"""Entries that wait for the database; further ones are counted, and one row names their number."""

BATCH_ENTRIES: Final = 200
WAIT_SECONDS: Final = 10.0
"""Maximum wait of a reply for the row of its change."""

FIRST_PAUSE_SECONDS: Final = 0.1
MAX_PAUSE_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 5.0
"""Interval at which summaries of refusals are looked for."""

LOST_ACTION: Final = "entries lost"

Redaction = Callable[[str, object], object]
"""Returns the value of a named field without secrets."""

Listener = Callable[[Sequence[AuditRow]], None]


class AuditTicket:
    """The claim on the row of an entry; `stored` is set when the row is in the database."""

    __slots__ = ("is_lost", "stored")

    def __init__(self) -> None:
        self.stored = asyncio.Event()
        self.is_lost = False


class AuditTrail:
    """Records entries without waiting, and stores them.

    A row is stored before the reply to its request (`wait`), not in the transaction of the change: the chain
    has one writer, so that a transaction that holds it would make all other changes wait. While the database
    is away, entries wait in memory, in order and bounded.
    """

    def __init__(
        self,
        store: AuditStore,
        redaction: Redaction = lambda _, value: value,
        *,
        clock: Callable[[], int] = ids.now_us,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._redaction = redaction
        self._clock = clock
        self._pending: deque[tuple[int, AuditEntry, AuditTicket]] = deque()
        self._refusals = RefusalBound(monotonic)
        self.lines = RefusalLines(monotonic)
        """Which refused sign-ins are logged; the trail logs the counts of the others."""
        self._wake = asyncio.Event()
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._lost = 0
        self._listeners: list[Listener] = []

        self.head: ChainHead | None = None
        """The place of the last row that this process stored, None before the first."""

    def subscribe(self, listener: Listener) -> None:
        """Call a function with the rows of each batch after it is stored."""
        self._listeners.append(listener)

    def record(self, entry: AuditEntry) -> AuditTicket | None:
        """Take an entry and return the ticket of its row, None for a refusal that is only counted."""
        if entry.result is AuditResult.REFUSED and not self._refusals.admits(_origin(entry)):
            return None
        ticket = AuditTicket()
        if len(self._pending) >= MAX_PENDING_ENTRIES:
            self._lost += 1
            ticket.is_lost = True
            return ticket
        self._add(self._redacted(entry), ticket)
        return ticket

    async def wait(self, ticket: AuditTicket) -> None:
        """Return when the row of a ticket is stored; unavailable if the database does not take it in time."""
        try:
            if not ticket.is_lost:
                async with asyncio.timeout(WAIT_SECONDS):
                    await ticket.stored.wait()
                    return
        except TimeoutError:
            pass
        raise GatewayError(
            ErrorKind.UNAVAILABLE,
            "cannot confirm the change: it was made, but its row of the audit log cannot be written",
            code="audit_unavailable",
        )

    async def run(self) -> None:
        """Store entries for ever; a failed batch is repeated, so that the order stays."""
        failures = 0
        while True:
            self._log_counted(at_end=False)
            if not self._pending:
                await self._pause()
                self._note_counted(at_end=False)
                continue
            try:
                await self._store_batch()
                failures = 0
            except GatewayError as error:
                if not failures:
                    log.error("the audit log cannot be written, it is tried again: %s", error.full_message)
                failures += 1
                await asyncio.sleep(min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(failures, 10)))

    async def drain(self, seconds: float) -> None:
        """Store what is left at a stop; raises unavailable if that takes longer."""
        self._note_counted(at_end=True)
        self._log_counted(at_end=True)
        try:
            async with asyncio.timeout(seconds):
                await self._is_empty.wait()
        except TimeoutError as error:
            raise GatewayError(
                ErrorKind.UNAVAILABLE,
                f"cannot store {len(self._pending)} entries of the audit log: the database did not take them",
            ) from error

    async def _pause(self) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _store_batch(self) -> None:
        batch = [self._pending[place] for place in range(min(BATCH_ENTRIES, len(self._pending)))]
        rows = await self._store.append(lambda head: link([(at, entry) for at, entry, _ in batch], head))
        for _, _, ticket in batch:
            self._pending.popleft()
            ticket.stored.set()
        self.head = rows[-1].place
        if not self._pending:
            self._is_empty.set()
            self._note_counted(at_end=False)
        for listener in self._listeners:
            listener(rows)

    def _note_counted(self, *, at_end: bool) -> None:
        """Add the rows that name refusals and entries without a row."""
        summary = self._refusals.summary(at_end=at_end)
        if summary is not None:
            self._add(summary, AuditTicket())
        if self._lost and len(self._pending) < MAX_PENDING_ENTRIES:
            lost, self._lost = self._lost, 0
            detail = f"{lost} entries have no row: the database was away for too long"
            self._add(
                AuditEntry(LOST_ACTION, GATEWAY_ACTOR, after={"entries": lost}, detail=detail), AuditTicket()
            )

    def _log_counted(self, *, at_end: bool) -> None:
        for (action, address), count in self.lines.summaries(at_end=at_end):
            log.info("further in a minute: %s", action, extra={"address": address, "refusals": count})

    def _add(self, entry: AuditEntry, ticket: AuditTicket) -> None:
        self._pending.append((self._clock(), entry, ticket))
        self._is_empty.clear()
        self._wake.set()

    def _redacted(self, entry: AuditEntry) -> AuditEntry:
        return replace(
            entry,
            target=str(self._redaction("", entry.target)),
            subject=str(self._redaction("", entry.subject)),
            detail=str(self._redaction("", entry.detail)),
            before=self._without_secrets(entry.before),
            after=self._without_secrets(entry.after),
        )

    def _without_secrets(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {str(name): self._redaction(str(name), value) for name, value in values.items()}


def _origin(entry: AuditEntry) -> str:
    actor: AuditActor = entry.actor
    return entry.address or f"{actor.kind.value} {actor.id or actor.name}"
