"""Tries of sign-ins, counted on this node and together with those of other nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gatewayd import ids
from gatewayd.accounts.attempts import AttemptCounter, AttemptLimit

AttemptCounts = Sequence[tuple[AttemptCounter, str]]
"""Counters, each with the name under which a try is counted."""


@dataclass(frozen=True, slots=True)
class SharedCount:
    """A counter of all nodes: what it counts, for whom, and its limit."""

    kind: str
    name: str
    limit: AttemptLimit


class SharedAttempts(Protocol):
    """Counters of all nodes. Nothing raises: what cannot be counted here is counted by each node."""

    async def claim(self, try_id: str, counts: Sequence[SharedCount]) -> int:
        """Count a try in all counters, or in none and return the seconds to wait."""
        ...

    async def release(self, try_id: str, counts: Sequence[SharedCount]) -> None:
        """Uncount a try."""
        ...

    async def forget(self, count: SharedCount) -> None:
        """Uncount every try of a counter."""
        ...

    async def remember(self, pair: str) -> None:
        """Store a pair of an account and a network from which it signed in."""
        ...

    async def is_known(self, pair: str) -> bool:
        """Return whether a pair is stored."""
        ...


@dataclass(frozen=True, slots=True)
class ClaimedTry:
    """A try that is counted."""

    id: str
    counts: AttemptCounts


class AttemptDesk:
    """Counts each try before its check, so that concurrent tries are limited.

    A try is counted on this node, which limits it also while `shared`, the counters of all nodes, fail.
    """

    def __init__(self, shared: SharedAttempts | None = None) -> None:
        self.shared = shared

    async def claim(self, counts: AttemptCounts) -> ClaimedTry | int:
        """Count a try, or return the seconds to wait."""
        wait = max(counter.wait(name) for counter, name in counts)
        if wait:
            return wait
        for counter, name in counts:
            counter.add(name)
        claimed = ClaimedTry(ids.new_id(), counts)
        if self.shared is None:
            return claimed
        is_counted = False
        try:
            wait = await self.shared.claim(claimed.id, _shared(counts))
            is_counted = not wait
        finally:
            if not is_counted:
                _uncount(counts)
        return wait or claimed

    async def release(self, claimed: ClaimedTry) -> None:
        """Uncount a try: it succeeded, or nothing was checked."""
        _uncount(claimed.counts)
        if self.shared is not None:
            await self.shared.release(claimed.id, _shared(claimed.counts))

    async def forget(self, counter: AttemptCounter, name: str) -> None:
        """Uncount every try of a name."""
        counter.forget(name)
        if self.shared is not None:
            await self.shared.forget(SharedCount(counter.kind, name, counter.limit))


def _uncount(counts: AttemptCounts) -> None:
    for counter, name in counts:
        counter.uncount_latest(name)


def _shared(counts: AttemptCounts) -> Sequence[SharedCount]:
    return [SharedCount(counter.kind, name, counter.limit) for counter, name in counts]
