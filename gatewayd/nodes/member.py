"""Membership of this process in the cluster: its lease, renewed on a connection of its own."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import Final

from gatewayd import ids
from gatewayd.errors import GatewayError
from gatewayd.nodes.interfaces import NodeSession, NodeStore
from gatewayd.nodes.records import Node, NodePulse

log = logging.getLogger(__name__)

RENEWALS: Final = 4
"""Number of renewals in the duration of a lease."""

MARGIN: Final = 0.1
"""Share of a lease by which the node stops to own before its end."""

MIN_JITTER: Final = 0.8

CONTRACTING: Final = "_contract"
"""End of the name of a migration after which an earlier version cannot work."""


class NodeMember:
    """Implements `interfaces.NodeMembership`.

    Durations are measured by the clock since boot, which neither a step of the wall clock nor a pause of the
    process or the machine can fool.
    """

    def __init__(
        self,
        node: Node,
        store: NodeStore,
        session: NodeSession,
        seconds: float,
        known: Sequence[str] = (),
        elapsed: Callable[[], float] = ids.since_boot,
    ) -> None:
        self.node = node
        self._store = store
        self._session = session
        self._seconds = seconds
        self._known = frozenset(known)
        self._elapsed = elapsed
        self._until = float("-inf")
        self._steady_since: float | None = None
        self._offset = 0.0
        self._is_draining = False
        self._reported: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """The id of the node."""
        return self.node.id

    @property
    def seconds(self) -> float:
        """Duration of the leases."""
        return self._seconds

    @property
    def is_owner(self) -> bool:
        """Whether the lease of the node certainly runs."""
        return self._elapsed() < self._until

    @property
    def is_steady(self) -> bool:
        """Whether the node has renewed its lease for long enough that other living nodes have, too."""
        since = self._steady_since
        return self.is_owner and since is not None and self._elapsed() - since > self._seconds / RENEWALS

    @property
    def is_draining(self) -> bool:
        """Whether the node is to begin nothing new."""
        return self._is_draining

    def clock(self) -> int:
        """Return the time of the database in epoch seconds, or a little less, never more."""
        return int(self._offset + self._elapsed())

    async def join(self) -> None:
        """Enter the cluster; raises unavailable."""
        await self._store.add(self.node, self._seconds)
        await self.renew()

    async def leave(self) -> None:
        """Leave the cluster at once: what the node still had is free."""
        self._until = float("-inf")
        try:
            await self._store.remove(self.node.id)
        except GatewayError as error:
            log.warning("the node leaves at the end of its lease: %s", error.full_message)
        await self._session.close()

    async def run(self) -> None:
        """Renew the lease, for ever."""
        pause = self._seconds / RENEWALS
        while True:
            await asyncio.sleep(pause * random.uniform(MIN_JITTER, 1))  # noqa: S311 - spreads load
            try:
                await self.renew()
            except GatewayError as error:
                log.warning("cannot renew the lease of this node: %s", error.full_message)
                # The next one comes sooner: the lease runs on.
                pause = min(1.0, self._seconds / RENEWALS)
            else:
                pause = self._seconds / RENEWALS

    async def renew(self) -> None:
        """Extend the lease; raises unavailable."""
        sent = self._elapsed()
        was_owner = sent < self._until
        pulse = await self._session.renew(self.node.id, self._seconds)
        if pulse is None:
            # An operator removed a node that was silent.
            await self._store.add(self.node, self._seconds)
            log.warning("this node was removed while it was silent, and joins again")
            self._steady_since = None
            return
        # The reply was made before now: the estimate of the database's time is never ahead of it.
        received = self._elapsed()
        self._offset = pulse.now - received
        if not was_owner and self._steady_since is not None:
            log.warning("this node owned nothing for a while: its lease had ended")
        if not was_owner or self._steady_since is None:
            self._steady_since = received
        self._until = sent + self._seconds * (1 - MARGIN)
        self._apply(pulse)

    def _apply(self, pulse: NodePulse) -> None:
        unknown = frozenset(pulse.migrations) - self._known if self._known else frozenset()
        if unknown - self._reported:
            self._reported = unknown
            log.warning(
                "the schema of the database is newer than this version: %s", ", ".join(sorted(unknown))
            )
        is_draining = pulse.is_draining or any(name.endswith(CONTRACTING) for name in unknown)
        if is_draining is not self._is_draining:
            self._is_draining = is_draining
            log.warning("this node drains: it begins nothing new" if is_draining else "this node works again")
