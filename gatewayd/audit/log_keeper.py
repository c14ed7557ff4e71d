"""What keeps the audit log: retention, checkpoints of its end, and its verification."""

import asyncio
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TextIO

from gatewayd import ids
from gatewayd.audit.chain import MAX_PROBLEMS, ChainVerifier
from gatewayd.audit.interfaces import AuditStore
from gatewayd.audit.records import GATEWAY_ACTOR, AuditEntry, ChainHead, ChainProblem, ChainVerdict
from gatewayd.audit.trail import AuditTrail
from gatewayd.errors import ErrorKind, GatewayError

log = logging.getLogger(__name__)

CHECKPOINT: Final = re.compile(r"\baudit checkpoint ([0-9]{1,18}):([0-9a-f]{64})\b")
PRUNE_ACTION: Final = "audit rows deleted"
DAY_US: Final = 86_400_000_000
MAX_CHECKPOINTS: Final = 10_000
"""Lines of the file of checkpoints that are kept."""


@dataclass(slots=True)
class AuditRetention:
    """How long rows are kept: `days`, 0 for ever."""

    days: int


class CheckpointFile:
    """The places of the chain's end at several times, one a line, beside the database."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def add(self, place: ChainHead) -> None:
        """Append a place; raises unavailable."""
        await self._do(lambda: self._append(place))

    async def read(self) -> Mapping[int, str]:
        """Return the hashes by sequence number; raises unavailable for an unreadable file."""
        return find_checkpoints(await self._do(self._lines))

    async def trim(self, base: int) -> None:
        """Drop the places before a base, and the oldest of too many."""
        await self._do(lambda: self._keep(base))

    def _append(self, place: ChainHead) -> None:
        with _open_private(self._path, os.O_APPEND) as file:
            file.write(f"audit checkpoint {place}\n")

    def _lines(self) -> list[str]:
        try:
            return self._path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []

    def _keep(self, base: int) -> None:
        lines = self._lines()
        found = [line for line in lines if (match := CHECKPOINT.search(line)) and int(match[1]) >= base]
        if len(found[-MAX_CHECKPOINTS:]) == len(lines):
            return
        part = self._path.with_suffix(".part")
        with _open_private(part, os.O_TRUNC) as file:
            file.writelines(f"{line}\n" for line in found[-MAX_CHECKPOINTS:])
        part.replace(self._path)

    async def _do(self, work: Callable[[], list[str] | None]) -> list[str]:
        try:
            return await asyncio.to_thread(work) or []
        except OSError as error:
            raise GatewayError(
                ErrorKind.UNAVAILABLE, f"cannot use {self._path}: {error.strerror or error}"
            ) from error


class AuditLogKeeper:
    """Prunes, marks and verifies the chain."""

    def __init__(
        self,
        store: AuditStore,
        trail: AuditTrail,
        file: CheckpointFile,
        retention: AuditRetention,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self._store = store
        self._trail = trail
        self._file = file
        self.retention = retention
        self._clock = clock or _deletion_clock()
        self._marked: ChainHead | None = None

    async def mark(self) -> None:
        """Write the end of the chain to the log and to the file, if it has moved."""
        place = await self._store.head()
        if place.sequence and place != self._marked:
            await self._file.add(place)
            log.info("audit checkpoint %s", place)
            self._marked = place

    async def check_end(self) -> None:
        """Compare the end of the chain with the last checkpoints, at a start; a cut end is recorded."""
        known = await self._file.read()
        head = await self._store.head()
        beyond = max((number for number in known if number > head.sequence), default=None)
        if beyond is not None:
            detail = f"a checkpoint names row {beyond}, and the rows end with {head.sequence}"
            log.error("the end of the audit log is missing: %s", detail)
            self._trail.record(AuditEntry("audit log shortened", GATEWAY_ACTOR, detail=detail))

    async def prune(self) -> int:
        """Delete the rows that are older than the retention, and return how many were deleted.

        A row of the chain says so before. The base moves at once; the rows up to it follow in several
        transactions, also those that a killed daemon left.
        """
        place = await self._last_old()
        if place is not None:
            values = {"through": place.sequence, "head": place.hash}
            ticket = self._trail.record(AuditEntry(PRUNE_ACTION, GATEWAY_ACTOR, after=values))
            if ticket is not None:
                await self._trail.wait(ticket)
            await self._store.rebase(place)
            await self._file.trim(place.sequence)
        return await self._store.sweep()

    async def count_old(self) -> int:
        """Return how many rows the next `prune` removes from the chain."""
        place = await self._last_old()
        return 0 if place is None else place.sequence - (await self._store.base()).sequence

    async def _last_old(self) -> ChainHead | None:
        if not self.retention.days:
            return None
        return await self._store.last_before(self._clock() - self.retention.days * DAY_US)

    async def verify(self, further: Mapping[int, str]) -> ChainVerdict:
        """Return what is wrong with the chain, compared with all checkpoints and with `further` ones."""
        checkpoints = {**await self._file.read(), **further}
        if self._trail.head is not None:
            checkpoints[self._trail.head.sequence] = self._trail.head.hash
        base = await self._store.base()
        verifier = ChainVerifier(base, checkpoints)
        is_removed_by_retention = not base.sequence
        async for row in self._store.rows():
            verifier.add(row)
            if row.action == PRUNE_ACTION and row.after.get("head") == base.hash:
                is_removed_by_retention = True
        verdict = verifier.verdict()
        if is_removed_by_retention:
            return verdict
        message = f"the rows up to {base.sequence} were not removed by the retention: no row says so"
        problems = [ChainProblem(base.sequence, message), *verdict.problems]
        return replace(verdict, problems=problems[:MAX_PROBLEMS])


def find_checkpoints(lines: Iterable[str]) -> Mapping[int, str]:
    """Return the checkpoints in lines of a log, hashes by sequence number."""
    return {int(found[1]): found[2] for line in lines if (found := CHECKPOINT.search(line))}


def _deletion_clock() -> Callable[[], int]:
    """Return a clock in epoch microseconds that does not follow a wall clock that is set forward."""
    seconds = ids.retention_clock()
    return lambda: seconds() * 1_000_000


def _open_private(path: Path, flag: int) -> TextIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flag, 0o600), "w")
