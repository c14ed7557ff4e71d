"""Duties: work that one node of the cluster does at a time, under a lease with a fence."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.nodes.interfaces import LeaseStore
from gatewayd.nodes.member import MARGIN, RENEWALS, NodeMember
from gatewayd.nodes.records import HeldLease
from gatewayd.tasks import TaskRegistry

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
"""Interval at which a node looks whether a duty is free."""

Work = Callable[[], Awaitable[None]]


class Duties(Protocol):
    """Chooses the node that does a duty."""

    async def run(self, name: str, work: Work) -> None:
        """Do a duty without end whenever this node is the one; the work is cancelled when it no longer is."""
        ...

    def alone(self, name: str) -> AbstractAsyncContextManager[None]:
        """Run a block while no other node does the duty; conflict when one does, or when it takes over.

        Conflict on a node that drains, too.
        """
        ...

    def fenced(self, name: str) -> AbstractAsyncContextManager[None]:
        """Run a transaction of a duty that this node does; conflict when another node has taken it over."""
        ...


class LocalDuties:
    """Duties of a daemon without a cluster, which does all of them."""

    async def run(self, name: str, work: Work) -> None:
        """Do the work."""
        await work()

    def alone(self, name: str) -> AbstractAsyncContextManager[None]:
        """Run the block."""
        return contextlib.nullcontext()

    def fenced(self, name: str) -> AbstractAsyncContextManager[None]:
        """Run the block."""
        return contextlib.nullcontext()


class LeasedDuties:
    """Duties of a node."""

    def __init__(self, leases: LeaseStore, member: NodeMember, tasks: TaskRegistry) -> None:
        self._tasks = tasks
        self._leases = leases
        self._member = member
        self._held: dict[str, HeldLease] = {}

    async def run(self, name: str, work: Work) -> None:
        """Do the work whenever this node has the lease, for ever."""
        while True:
            try:
                async with self.alone(name):
                    await work()
            except GatewayError as error:
                if error.code != LEASE_TAKEN:
                    log.warning("cannot do the duty %s now: %s", name, error.full_message)
            await asyncio.sleep(LOOK_SECONDS * random.uniform(0.5, 1))  # noqa: S311 - spreads load

    @asynccontextmanager
    async def alone(self, name: str) -> AsyncIterator[None]:
        """Run the block under the lease; it is cancelled in time when the lease cannot be renewed."""
        sent = asyncio.get_running_loop().time()
        if self._member.is_draining:
            raise GatewayError(
                ErrorKind.CONFLICT,
                f"cannot do the duty {name}: this node drains, ask another one",
                code=LEASE_TAKEN,
            )
        is_free = self._member.is_owner and name not in self._held
        lease = await self._leases.take(name, self._member.id, self._member.seconds) if is_free else None
        if lease is None:
            raise _taken(name)
        self._held[name] = lease
        limit = asyncio.timeout_at(sent + self._duration)
        try:
            async with limit:
                renewing = self._tasks.spawn(f"lease {name}", self._renew(lease, limit))
                try:
                    yield
                finally:
                    await self._tasks.stop(renewing)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise _taken(name) from error
        finally:
            del self._held[name]
            with contextlib.suppress(GatewayError):
                # Without the database it ends by itself.
                await self._leases.release(lease)

    @asynccontextmanager
    async def fenced(self, name: str) -> AsyncIterator[None]:
        """Run the transaction."""
        lease = self._held.get(name)
        if lease is None:
            raise _taken(name)
        async with self._leases.fenced(lease):
            yield

    @property
    def _duration(self) -> float:
        return self._member.seconds * (1 - MARGIN)

    async def _renew(self, lease: HeldLease, limit: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._member.seconds / RENEWALS)
            sent = loop.time()
            try:
                is_held = not self._member.is_draining and await self._leases.renew(
                    lease, self._member.seconds
                )
            except GatewayError as error:
                log.warning("cannot renew the lease %s: %s", lease.name, error.full_message)
                continue
            if not limit.expired():
                limit.reschedule(sent + self._duration if is_held else sent)


LEASE_TAKEN: Final = "lease_taken"
"""Code of the conflict of a duty that another node does."""


def _taken(name: str) -> GatewayError:
    return GatewayError(
        ErrorKind.CONFLICT, f"cannot do the duty {name}: another node does it", code=LEASE_TAKEN
    )
