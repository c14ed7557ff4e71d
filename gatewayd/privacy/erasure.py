"""Erasure of a person: deletes what belongs to them, and takes them out of what stays."""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gatewayd.accounts.records import User, UserChange
from gatewayd.accounts.users import Users
from gatewayd.audit.records import GATEWAY_ACTOR, AuditEntry
from gatewayd.audit.trail import AuditTrail
from gatewayd.batches.files import BatchFiles
from gatewayd.chats.interfaces import ChatStore
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.ingest.interfaces import FileStore
from gatewayd.limits.records import LimitSubject
from gatewayd.limits.service import Limits
from gatewayd.privacy.interfaces import OwnedCollections, PersonRowStore, PersonUsage, RemovedFiles
from gatewayd.tasks import TaskRegistry
from gatewayd.transactions import Transactor

log = logging.getLogger(__name__)

PAGE_SIZE: Final = 100
MAX_PASSES: Final = 5
"""Passes over everything; a further one deletes what came while the one before ran."""

PSEUDONYM_DIGITS: Final = 20


def pseudonym_of(user_id: str) -> str:
    """Return the name that replaces a person where something stays; it is the same each time."""
    return f"erased-{hashlib.sha256(user_id.encode()).hexdigest()[:PSEUDONYM_DIGITS]}"


@dataclass(frozen=True, slots=True)
class ErasureParts:
    """The services and stores of what belongs to people."""

    users: Users
    rows: PersonRowStore
    chats: ChatStore
    files: FileStore
    removal: RemovedFiles
    collections: OwnedCollections
    batches: BatchFiles
    limits: Limits
    usage: PersonUsage
    transactor: Transactor


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """Who was erased, and the numbers of rows by kind; kinds without any are left out."""

    user_id: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Person:
    id: str
    email: str
    account: User | None


class PersonErasure:
    """Erases people.

    The account is deactivated first and deleted last, so that nothing new comes in between, and an erasure
    that was interrupted can be repeated with the same reference. An account that is deleted already is found
    by its id.
    """

    def __init__(self, parts: ErasureParts, tasks: TaskRegistry, trail: AuditTrail) -> None:
        self._parts = parts
        self._tasks = tasks
        self._trail = trail

    async def count(self, ref: str) -> ErasureReport:
        """Return what `erase` would report, and change nothing; raises as it does."""
        person = await self._find(ref)
        if person.account is not None:
            async with self._parts.transactor.rehearsal():
                await self._parts.users.change(person.id, UserChange(active=False), None)
        return await self._report(person)

    async def erase(self, ref: str) -> ErasureReport:
        """Erase the person with this id or e-mail address, and return what there was.

        Raises not_found if nothing belongs to them, conflict for the last active administrator.
        """
        person = await self._find(ref)
        if person.account is not None:
            await self._parts.users.change(person.id, UserChange(active=False), None)
        report = await self._report(person)
        # What follows may be cut off by a kill.
        ticket = self._trail.record(AuditEntry("user erasure begun", GATEWAY_ACTOR, subject=person.id))
        if ticket is not None:
            await self._trail.wait(ticket)
        await self._stop_answers(person.id)
        for _ in range(MAX_PASSES):
            await self._erase(person)
            if not any((await self._parts.rows.counts(person.id, person.email)).values()):
                log.info("a user was erased", extra={"user": person.id})
                return report
        raise GatewayError(
            ErrorKind.CONFLICT, f"cannot erase user {person.id!r}: new rows keep coming; repeat it later"
        )

    async def _find(self, ref: str) -> _Person:
        try:
            user = await self._parts.users.resolve(ref)
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
        else:
            return _Person(user.id, user.email, user)
        counts = await self._parts.rows.counts(ref, "") if self._parts.rows.may_be_id(ref) else {}
        if not any(counts.values()):
            raise not_found("user", ref)
        return _Person(ref, "", None)

    async def _report(self, person: _Person) -> ErasureReport:
        counts = await self._parts.rows.counts(person.id, person.email)
        return ErasureReport(person.id, {kind: count for kind, count in counts.items() if count})

    async def _stop_answers(self, user_id: str) -> None:
        for task in self._tasks.started():
            if task.purpose.user_id == user_id:
                await self._tasks.stop(task.id)

    async def _erase(self, person: _Person) -> None:
        parts, pseudonym = self._parts, pseudonym_of(person.id)
        await parts.chats.purge(await parts.chats.hide_all(person.id))
        await self._erase_files(person.id)
        for collection_id in await parts.rows.collections(person.id):
            await parts.collections.remove_any(collection_id)
        for rule in await parts.limits.list():
            if (rule.subject, rule.subject_id) == (LimitSubject.USER, person.id):
                await parts.limits.remove(rule.id)
        await parts.rows.remove(person.id, person.email)
        await parts.rows.rename(person.id, pseudonym)
        await parts.usage.rename(person.id, pseudonym)
        if await parts.users.find(person.id) is not None:
            await parts.users.remove(person.id, None)

    async def _erase_files(self, user_id: str) -> None:
        parts = self._parts
        while True:
            found, _ = await parts.files.list(user_id=user_id, limit=PAGE_SIZE)
            for file in found:
                await parts.removal.remove(file.id)
            if len(found) < PAGE_SIZE:
                break
        while True:
            mine = await parts.batches.list(user_id, None, after=None, limit=PAGE_SIZE)
            for each in mine:
                await parts.batches.remove(each)
            if len(mine) < PAGE_SIZE:
                return
