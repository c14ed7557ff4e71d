"""Short-lived tickets for clients that cannot send a header, such as EventSource of a browser."""

import time
from collections.abc import Callable
from typing import Final

from gatewayd import ids

LIFE_SECONDS: Final = 30
MAX_TICKETS: Final = 10_000


class Tickets:
    """Stores a credential for 30 s under a ticket that is valid once.

    The credential is checked when the ticket is used: an expired or revoked one gives no access.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[str, float]] = {}

    async def issue(self, credential: str) -> str:
        """Return a new ticket for a credential; drop the oldest ticket if there are 10,000."""
        self._prune()
        if len(self._kept) >= MAX_TICKETS:
            del self._kept[next(iter(self._kept))]
        ticket = ids.new_secret()
        # Only the digest is stored, as for every secret that the gateway issues.
        self._kept[ids.digest(ticket)] = (credential, self._clock() + LIFE_SECONDS)
        return ticket

    async def redeem(self, ticket: str) -> str | None:
        """Consume a ticket and return its credential; None for an invalid or expired ticket."""
        credential, ends = self._kept.pop(ids.digest(ticket), ("", 0.0))
        return credential if ends > self._clock() else None

    def _prune(self) -> None:
        now = self._clock()
        # A dictionary keeps insertion order: the oldest ticket is first.
        while self._kept and self._kept[oldest := next(iter(self._kept))][1] <= now:
            del self._kept[oldest]
